#!/usr/bin/env bash
# build.sh: build fills the cache once; a damaged object is compiled again with one warning.
. "$(dirname "$0")/common.bash"

build=(afdep-compile build --layout 1A1F --hidden 64 --capacity 64)

# The sim device needs a C++ compiler, cuda needs NVRTC; neither needs a GPU.
run 0 afdep-compile env --json
devices=()
if python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(0 if
d["host_compiler"]["path"] and not d["host_compiler"]["note"] else 1)' "$work/stdout"; then
    devices+=(sim)
fi
if python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(0 if
d["nvrtc"]["path"] and not d["nvrtc"]["note"] else 1)' "$work/stdout"; then
    devices+=(cuda)
fi
if [[ ${#devices[@]} -eq 0 ]]; then
    echo "skipped: no C++ compiler and no NVRTC"
    exit 77
fi
echo "devices: ${devices[*]}"

for device in "${devices[@]}"; do
    export AFDEP_JIT_CACHE=$work/cache-$device
    run 0 "${build[@]}" --device "$device" --json
    json 'd["schema"] == "afdep-compile-build/1" and d["version"] and d["commit"]'
    json 'd["compiled"] == len(d["kernels"]) > 0 and d["hits"] == 0 and d["failed"] == 0'
    json 'all(k["status"] == "compiled" and k["origin"] == "compiler" for k in d["kernels"])'
    json 'all(len(k["key"]) == 32 and k["bytes"] > 0 and k["entry"] for k in d["kernels"])'
    json 'd["cache"]["dir"].startswith("'"$work"'") and d["cache"]["origin"] == "AFDEP_JIT_CACHE"'
    json '{k["duty"] for k in d["kernels"]} == {"source", "expert"}'
    json 'len({k["key"] for k in d["kernels"]}) == len(d["kernels"])'
    is_empty stderr

    run 0 "${build[@]}" --device "$device" --json
    json 'd["compiled"] == 0 and d["hits"] == len(d["kernels"]) and d["failed"] == 0'
    json 'all(k["status"] == "hit" and k["origin"] == "local" for k in d["kernels"])'
    is_empty stderr

    # Rank, capacity and token counts are not part of a kernel.
    run 0 afdep-compile build --layout 1A1F --hidden 64 --capacity 128 --device "$device" --json
    json 'd["compiled"] == 0'

    run 0 "${build[@]}" --device "$device"
    has stdout 'nothing compiled: '
    has stdout ' kernels found in the cache'
    is_empty stderr

    # Four bytes in the middle of one object: one kernel compiled again, one warning, once.
    object=$(find "$AFDEP_JIT_CACHE" -name '*.afo' | sort | head -n 1)
    [[ $object ]] || fail "the cache holds no object"
    chmod u+w "$object"
    printf '\377\000\377\000' |
        dd of="$object" bs=1 seek=$(($(stat -c %s "$object") / 2)) conv=notrunc status=none
    run 0 "${build[@]}" --device "$device" --json
    json 'd["compiled"] == 1 and d["hits"] == len(d["kernels"]) - 1 and d["failed"] == 0'
    [[ $(wc -l <"$work/stderr") -eq 1 ]] || fail "not one line of warning"
    run 0 "${build[@]}" --device "$device" --json
    json 'd["compiled"] == 0'
    is_empty stderr

    # One duty alone.
    run 0 "${build[@]}" --device "$device" --duty source --json
    json '{k["duty"] for k in d["kernels"]} == {"source"} and d["compiled"] == 0'
done

AFDEP_JIT_CACHE=off run 0 "${build[@]}" --device "${devices[0]}" --duty source --json
json 'd["hits"] == 0 and d["compiled"] == len(d["kernels"])'

# A cache whose path is no UTF-8 is told all the same, in a whole document.
AFDEP_JIT_CACHE=$work/$'caf\xe9' run 0 "${build[@]}" --device "${devices[0]}" --duty source --json
json 'd["compiled"] == len(d["kernels"]) > 0 and d["cache"]["dir"] == "'"$work"'/caf?"'

# A pipe gets no control characters.
run 0 "${build[@]}" --device "${devices[0]}"
! grep -q $'[\r\033]' "$work/stdout" "$work/stderr" || fail "control characters in a pipe"

# A cache that cannot be written costs compiles, not the build.
run 0 env AFDEP_JIT_CACHE=/proc/nowhere "${build[@]}" --device "${devices[0]}" --duty source --json
json 'd["failed"] == 0 and d["compiled"] == len(d["kernels"])'

# A compiler that does not exist is the machine's fault: 5.
if [[ " ${devices[*]} " == *' sim '* ]]; then
    run 5 env AFDEP_JIT_CACHE="$work/fresh" AFDEP_HOST_CXX=/nowhere/c++ "${build[@]}" --device sim
    has stderr '/nowhere/c++'
fi
finish
