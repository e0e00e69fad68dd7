#!/usr/bin/env bash
# package.sh: install the library, and use what was installed as a stranger would.
# Usage: package.sh static|shared|readme
set -euo pipefail
source_dir=${AFDEP_SOURCE_DIR:?} build_dir=${AFDEP_BUILD_DIR:?}
kind=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

for tool in cmake cc; do
    command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done

# Run a command; show what it said only if it fails.
quietly() {
    if ! "$@" >"$work/log" 2>&1; then
        cat "$work/log"
        echo "failed: $*"
        return 1
    fi
}

# Install this build, or, for the shared library, a second one that is kept for the next time.
install_package() {
    local from=$build_dir
    if [[ $kind == shared ]]; then
        from=$build_dir/tests/shared
        quietly cmake -S "$source_dir" -B "$from" -G Ninja -DBUILD_SHARED_LIBS=ON \
            -DCMAKE_BUILD_TYPE=RelWithDebInfo -DAFDEP_BUILD_TESTS=OFF -DAFDEP_BUILD_PROGRAMS=ON
        quietly cmake --build "$from"
    fi
    quietly cmake --install "$from" --prefix "$prefix"
}

# Flags for a compiler from the installed afdep-jit.pc.
package_flags() {
    local pc
    pc=$(find "$prefix" -name afdep-jit.pc)
    PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs "$@" afdep-jit
}

# The libraries that a program asks the loader for.
needed_by() {
    readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}

# A program has the library inside, or asks for it by its SONAME.
check_linkage() {
    local wants
    wants=$(needed_by "$1" | grep '^libafdep' || true)
    if [[ $kind == shared ]]; then
        [[ $wants == libafdep-jit.so.0 ]] || { echo "$1 needs '$wants'"; exit 1; }
    else
        [[ -z $wants ]] || { echo "$1 needs $wants although the library is static"; exit 1; }
    fi
}

# find_package, pkg-config and the installed programs.
use_package() {
    local library_dir
    library_dir=$(dirname "$(find "$prefix" -name 'libafdep-jit.a' -o -name 'libafdep-jit.so')")
    quietly cmake -S "$source_dir/tests/package/consumer" -B "$work/consumer" -G Ninja \
        -DCMAKE_PREFIX_PATH="$prefix"
    quietly cmake --build "$work/consumer"
    "$work/consumer/consumer"
    check_linkage "$work/consumer/consumer"

    if command -v pkg-config >/dev/null; then
        local static flags
        for static in '' --static; do
            # With the shared library, what --static adds need not be there.
            [[ $kind == static || -z $static ]] || continue
            # shellcheck disable=SC2086 # nothing, or one word
            flags=$(package_flags $static)
            # shellcheck disable=SC2086 # a list of flags
            quietly cc -std=c99 -o "$work/by-pkg-config" \
                "$source_dir/tests/package/consumer/consumer.c" $flags
            LD_LIBRARY_PATH=$library_dir "$work/by-pkg-config"
            check_linkage "$work/by-pkg-config"
        done
    fi

    "$prefix/bin/afdep-compile" --version
    "$prefix/bin/afdep-bench" --version
    [[ -f $prefix/share/man/man1/afdep-compile.1 ]] || { echo "no man page is installed"; exit 1; }
    if [[ $kind == shared ]]; then
        [[ -L $library_dir/libafdep-jit.so && -L $library_dir/libafdep-jit.so.0 ]] ||
            { echo "libafdep-jit.so and libafdep-jit.so.0 are not links"; exit 1; }
        [[ $(readelf -d "$library_dir/libafdep-jit.so") == *SONAME*'[libafdep-jit.so.0]'* ]] ||
            { echo "the shared library's SONAME is not libafdep-jit.so.0"; exit 1; }
        AFDEP_BUILD_DIR=$build_dir/tests/shared bash "$source_dir/tests/abi/symbols.sh"
    fi
}

# The first C program of README.md, as a reader would try it.
use_readme() {
    local lines
    awk '/^```c$/ && !done { inside = 1; next } /^```$/ { if (inside) done = 1; inside = 0 } inside' \
        "$source_dir/README.md" >"$work/readme.c"
    lines=$(wc -l <"$work/readme.c")
    if [[ $lines -eq 0 || $lines -gt 40 ]]; then
        echo "README.md's first C program has $lines lines; it must have 1 to 40"
        exit 1
    fi
    # shellcheck disable=SC2046 # a list of flags
    quietly cc -std=c11 -Wall -Wextra -Werror -o "$work/readme" "$work/readme.c" $(package_flags)
    "$work/readme"
}

case $kind in
static | shared)
    install_package
    use_package
    ;;
readme)
    [[ -f $source_dir/README.md ]] || { echo "there is no README.md"; exit 77; }
    command -v pkg-config >/dev/null || { echo "there is no pkg-config"; exit 77; }
    install_package
    use_readme
    ;;
*)
    echo "usage: package.sh static|shared|readme"
    exit 2
    ;;
esac
