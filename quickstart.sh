#!/usr/bin/env bash
# quickstart.sh: set up, build, compile the kernels of one deployment, run an exchange, and say what
# happened. Works without a GPU: the exchange then runs on the simulated device alone.
set -euo pipefail
cd "$(dirname "$0")"
export LC_ALL=C # numbers with a decimal point

usage() {
    cat <<'TEXT'
Usage: quickstart.sh [--preset NAME] [--no-build]
Compiles the kernels of 2 attention and 2 FFN ranks (hidden 2048, BF16, top-8 of 128 experts) for an
H200-class GPU and for the simulated device, then runs one checked exchange on the simulated device
and, where there is a GPU, on the GPU. A second run finds every kernel in the cache.
  --preset NAME   the build to use, build/NAME (default release)
  --no-build      use the programs that are there; install and build nothing
TEXT
}

preset=release
build=yes
while [[ $# -gt 0 ]]; do
    case $1 in
    --preset)
        [[ $# -ge 2 ]] || { usage >&2; exit 2; }
        preset=$2
        shift
        ;;
    --no-build) build=no ;;
    --help | -h)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done

bin=build/$preset
deployment=(--layout 2A2F --hidden 2048 --dtype bf16 --experts 128 --top-k 8)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "quickstart: $*" >&2
    exit 1
}

have_programs() { [[ -x $bin/afdep-compile && -x $bin/afdep-bench ]]; }

# Set up and build. Where that is impossible, for instance without a network, programs that an
# earlier build left are used as they are.
build_programs() {
    if ! bash src/cmake/setup.sh; then
        have_programs || fail "the set-up failed, and there are no programs in $bin yet"
        echo "set-up failed; using the programs in $bin as they are"
        return
    fi
    echo "build: preset $preset in $bin"
    if ! { cmake --preset "$preset" &&
        cmake --build --preset "$preset" --target afdep-compile afdep-bench; } \
        >"$work/build.log" 2>&1; then
        tail -n 40 "$work/build.log" >&2
        fail "the build failed"
    fi
}

# number FILE KEY [OBJECT]: the first number with that key in a JSON document, or in an object of it.
number() {
    awk -v key="\"$2\": *" -v object="${3:+\"$3\": *[{]}" '
        { text = text $0 }
        END {
            if (object != "") {
                if (!match(text, object "[^}]*"))
                    exit 1
                text = substr(text, RSTART, RLENGTH)
            }
            if (!match(text, key "[0-9.]+"))
                exit 1
            found = substr(text, RSTART, RLENGTH)
            sub(key, "", found)
            print found
        }' "$1"
}

row() { printf '%-28s %-10s %s\n' "$1" "$2" "$3"; }

compiled_here=0
found_here=0

# What each rank registers with its peers.
show_plan() {
    "$bin/afdep-compile" plan "${deployment[@]}" >"$work/plan.txt" ||
        fail "afdep-compile plan failed with status $?"
    awk '$1 == "ffn," || $1 == "attention," { role = substr($1, 1, length($1) - 1) }
         $1 == "registered" { sub(/^ *registered */, ""); print role " ranks: " $0 }' \
        "$work/plan.txt" | while read -r line; do row "plan of 2A2F" "" "$line"; done
}

# Have the kernels of a device kind in the cache.
compile_kernels() {
    local device=$1 status=0 compiled hits failed ms what
    "$bin/afdep-compile" build "${deployment[@]}" --device "$device" --json \
        >"$work/compile.json" || status=$?
    [[ $status -eq 0 ]] || fail "afdep-compile build --device $device failed with status $status"
    compiled=$(number "$work/compile.json" compiled)
    hits=$(number "$work/compile.json" hits)
    failed=$(number "$work/compile.json" failed)
    ms=$(number "$work/compile.json" ms)
    [[ $failed == 0 && $((compiled + hits)) -gt 0 ]] ||
        fail "afdep-compile build --device $device: $compiled compiled, $hits found, $failed failed"
    compiled_here=$((compiled_here + compiled))
    found_here=$((found_here + hits))
    what="$compiled compiled, $hits found in the cache, $(printf '%.0f' "$ms") ms"
    row "kernels of 2A2F" "$device" "$what"
}

# Run one exchange and check every row of it.
run_exchange() {
    local device=$1 sent checked wrong us status=0
    "$bin/afdep-bench" exchange "${deployment[@]}" --device "$device" --tokens 32 --json \
        >"$work/bench.json" 2>"$work/bench.log" || status=$?
    if [[ $device == cuda && $status -eq 5 ]] && ! nvidia-smi -L >/dev/null 2>&1; then
        row "exchange, 32 tokens a rank" "$device" "not run: no GPU with a CUDA driver here"
        return
    fi
    if [[ $status -ne 0 ]]; then
        cat "$work/bench.log" >&2
        fail "afdep-bench exchange --device $device failed with status $status"
    fi
    sent=$(number "$work/bench.json" rows_sent)
    checked=$(number "$work/bench.json" rows_checked)
    wrong=$(number "$work/bench.json" wrong)
    [[ $wrong == 0 && $checked -gt 0 ]] ||
        fail "afdep-bench exchange --device $device: $checked rows checked, $wrong wrong"
    us=$(number "$work/bench.json" p50 graph) || us=
    row "exchange, 32 tokens a rank" "$device" \
        "$sent rows sent, $checked checked, $wrong wrong${us:+; $us us a round trip}"
}

if [[ $build == yes ]]; then
    build_programs
fi
have_programs || fail "there are no programs in $bin"

echo
show_plan
compile_kernels cuda
compile_kernels sim
run_exchange sim
run_exchange cuda
echo
if [[ $compiled_here -eq 0 ]]; then
    echo "nothing compiled: $found_here kernels found in the cache"
else
    echo "$compiled_here kernels compiled; another run finds them in the cache"
fi
