#!/usr/bin/env bash
# check.sh: set up, build, and run every test that this machine can run. Tests that need a GPU skip
# without one. Usage: check.sh [--long]
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'TEXT'
Usage: check.sh [--long]
Builds the presets release and asan under build/ and runs their tests.
  --long   also run the tests that take longer than CI should
TEXT
}

long=(--label-exclude '^long$')
without_gpu=(--label-exclude '^(long|gpu)$')
for argument in "$@"; do
    case $argument in
    --long)
        long=()
        without_gpu=(--label-exclude '^gpu$')
        ;;
    --help | -h)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
done

bash src/cmake/setup.sh

# Configure and build a preset, then run its tests with the ctest arguments that follow.
check_preset() {
    local preset=$1
    shift
    echo "== $preset"
    mkdir -p build
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset"; } >"build/$preset.log" 2>&1; then
        cat "build/$preset.log"
        echo "check.sh: the preset $preset does not build" >&2
        exit 1
    fi
    ctest --preset "$preset" --parallel "$(nproc)" "$@"
}

check_preset asan "${without_gpu[@]}"
check_preset release "${long[@]}"
