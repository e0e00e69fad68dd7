#!/usr/bin/env bash
# symbols.sh: the headers declare, the symbol map lists, and the library defines the same functions.
set -euo pipefail
source_dir=${AFDEP_SOURCE_DIR:?} build_dir=${AFDEP_BUILD_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat "$source_dir"/include/afdep/*.h | tr '\n' ' ' | grep -oE 'AFDEP_API[^;({]*\(' |
    grep -oE 'afdep_[a-z_0-9]+ *\($' | tr -d ' (' | sort -u >"$work/declared"
grep -oE '^ *afdep_[a-z_0-9]+;' "$source_dir/src/cmake/afdep-jit.map" | tr -d ' ;' |
    sort -u >"$work/listed"
[[ -s $work/declared ]] || { echo "no declaration was found"; exit 1; }
if ! diff "$work/declared" "$work/listed"; then
    echo "the headers (<) and src/cmake/afdep-jit.map (>) differ"
    exit 1
fi

if [[ -f $build_dir/libafdep-jit.so ]]; then
    nm -D --defined-only "$build_dir/libafdep-jit.so" | awk '$2 == "T" || $2 == "B" || $2 == "D" || $2 == "R" { print $3 }'
else
    # Whoever links the archive must not meet names that could be their own.
    nm -g --defined-only "$build_dir/libafdep-jit.a" | awk 'NF == 3 { print $3 }' |
        grep -vE '^(afdep|afj)_' >"$work/foreign" &&
        { echo "names in the archive without a prefix:"; cat "$work/foreign"; exit 1; }
    nm --defined-only "$build_dir/libafdep-jit.a" | awk '$2 == "T" { print $3 }' | grep '^afdep_'
fi | sed 's/@.*//' | grep -v '^AFDEP_JIT_' | sort -u >"$work/defined"
if ! diff "$work/declared" "$work/defined"; then
    echo "the headers (<) and the library (>) differ"
    exit 1
fi
echo "$(wc -l <"$work/declared") functions"
