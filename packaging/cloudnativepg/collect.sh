#!/bin/sh
#
# Builds the extension and puts its files where an extension image has them:
#
#   packaging/cloudnativepg/collect.sh SOURCE DIRECTORY
#
#   DIRECTORY/lib                 the library, and the client of shared registries
#   DIRECTORY/share/extension     control file and SQL scripts
#   DIRECTORY/licenses/snowflake
set -e

pg_config=${PG_CONFIG:-pg_config}
installed=$(mktemp -d)
trap 'rm -rf "$installed"' EXIT

make -C "$1" with_llvm=no PG_CONFIG="$pg_config" all
make -C "$1" with_llvm=no PG_CONFIG="$pg_config" install DESTDIR="$installed"

mkdir -p "$2/lib" "$2/share" "$2/licenses/snowflake"
cp "$installed$("$pg_config" --pkglibdir)"/snowflake*.so "$2/lib/"
cp -R "$installed$("$pg_config" --sharedir)/extension" "$2/share/"
cp "$1/LICENSE" "$2/licenses/snowflake/"
