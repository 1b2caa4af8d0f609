/*
 * check.h
 *     An assertion that stays in every build: a false one is a crash for the fuzzer.
 */
#pragma once

#include <cstdlib>

#define CHECK(condition)                \
    do {                                \
        if (!(condition)) std::abort(); \
    } while (false)
