#!/usr/bin/env bash
# arch.sh: one build makes the kernels of several architectures.
set -euo pipefail
source "$(dirname "$0")/common.bash"
afdep-compile env --json >"$work/stdout"
if ! python3 -c 'import json, sys; sys.exit(0 if json.load(open(sys.argv[1]))["nvrtc"]["path"] else 1)' \
    "$work/stdout" 2>/dev/null; then
    grep -q 'libnvrtc' "$work/stdout" || { echo "there is no NVRTC"; exit 77; }
fi
run 0 afdep-compile build --layout 1A1F --hidden 64 --arch sm_90,sm_90a,sm_100a --json
json 'd["compiled"] == 27 and d["failed"] == 0'
json 'sorted({k["arch"] for k in d["kernels"]}) == ["sm_100a", "sm_90", "sm_90a"]'
run 0 afdep-compile build --layout 1A1F --hidden 64 --arch sm_90,sm_90a,sm_100a --json
json 'd["compiled"] == 0 and d["hits"] == 27'
finish
