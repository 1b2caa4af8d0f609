#!/usr/bin/env bash
#
# Fuzzes each text parser of the core for a number of seconds (default: 60), from
# the corpus beside this script. New inputs and crashes go to build/fuzz. To keep
# what was learned: test/fuzz/run.sh --merge
set -euo pipefail
cd "$(dirname "$0")/../.."

CXX=${FUZZ_CXX:-clang++-14}
BUILD=build/fuzz
CORPUS=test/fuzz/corpus
FUZZERS=(spec friendly radix)

mkdir -p "$BUILD"
for fuzzer in "${FUZZERS[@]}"; do
    "$CXX" -std=c++17 -O1 -g -Wall -Wextra -Werror -Isrc -Itest/fuzz \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        test/fuzz/"$fuzzer"_fuzz.cpp src/core/layout_spec.cpp src/core/text_format.cpp \
        -o "$BUILD/$fuzzer"
done

failed=0
for fuzzer in "${FUZZERS[@]}"; do
    found=$BUILD/$fuzzer.corpus
    mkdir -p "$found"
    if [ "${1-}" = --merge ]; then
        "$BUILD/$fuzzer" -set_cover_merge=1 -artifact_prefix="$BUILD/$fuzzer-" "$CORPUS/$fuzzer" "$found"
        continue
    fi
    echo "== $fuzzer"
    "$BUILD/$fuzzer" -max_total_time="${1:-60}" -max_len=256 -dict=test/fuzz/"$fuzzer".dict \
        -artifact_prefix="$BUILD/$fuzzer-" -print_final_stats=1 -verbosity=0 \
        "$found" "$CORPUS/$fuzzer" || failed=$((failed + 1))
done
[ $failed -eq 0 ]
