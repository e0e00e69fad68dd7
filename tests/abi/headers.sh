#!/usr/bin/env bash
# headers.sh: each public header compiles on its own in every standard it promises, without a warning,
# and every struct in it is pinned by tests/unit/test_abi.c.
set -euo pipefail
source_dir=${AFDEP_SOURCE_DIR:?} build_dir=${AFDEP_BUILD_DIR:?}
cc=${CC:-cc} cxx=${CXX:-c++}
command -v "$cxx" >/dev/null || { echo "there is no C++ compiler"; exit 77; }

flags=(-Wall -Wextra -pedantic -Werror -fsyntax-only
    -I"$source_dir/include" -I"$build_dir/generated/include")
count=0
for header in "$source_dir"/include/afdep/*.h; do
    name=afdep/$(basename "$header")
    program="#include <$name>
#include <$name>
#include <afdep/config.h>
int main(void) { afdep_config config = AFDEP_CONFIG_INIT; return (int)config.reserved; }"
    for standard in c99 c11 c17; do
        "$cc" -xc -std=$standard "${flags[@]}" - <<<"$program" ||
            { echo "$name is not $standard"; exit 1; }
    done
    for standard in c++11 c++20; do
        "$cxx" -xc++ -std=$standard "${flags[@]}" - <<<"$program" ||
            { echo "$name is not $standard"; exit 1; }
    done
    count=$((count + 1))
done
[[ $count -gt 0 ]] || { echo "no header was found"; exit 1; }

pinned=$source_dir/tests/unit/test_abi.c
while read -r type; do
    grep -q "SIZE($type," "$pinned" || { echo "tests/unit/test_abi.c does not pin $type"; exit 1; }
done < <(sed -nE 's/^typedef struct (afdep_[a-z_]+) \{$/\1/p' "$source_dir"/include/afdep/*.h)
echo "$count headers"
