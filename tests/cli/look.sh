#!/usr/bin/env bash
# look.sh: list, inspect and explain say what the cache holds, and why something is not in it.
set -euo pipefail
source "$(dirname "$0")/common.bash"
export AFDEP_JIT_CACHE=$work/cache
deployment=(--layout 1A1F --hidden 64 --device sim)

afdep-compile explain "${deployment[@]}" >"$work/before" 2>"$work/error" || {
    grep -q 'no C++ compiler' "$work/error" && { echo "there is no C++ compiler"; exit 77; }
    cat "$work/error"
    exit 1
}
grep -qx '0 found, 9 missing' "$work/before"
grep -q 'nothing of this spec is stored' "$work/before"

afdep-compile build "${deployment[@]}" >/dev/null
afdep-compile list >"$work/list"
[[ $(wc -l <"$work/list") -eq 10 ]]
grep -q '^9 kernels, ' "$work/list"
afdep-compile list entry=reply shape=few >"$work/one"
[[ $(wc -l <"$work/one") -eq 2 ]]
key=$(cut -c1-32 "$work/one" | head -n 1)
afdep-compile list --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["schema"] == "afdep-compile-list/1" and len(d["entries"]) == 9 and d["damaged"] == 0, d'

# Without a compiler on PATH, too.
compile=$(command -v afdep-compile)
PATH=/nonexistent "$compile" inspect "$key" >"$work/inspected"
grep -q 'entry=reply shape=few layout=1A1F' "$work/inspected"
afdep-compile inspect "$key" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["key"] and d["manifest"]["schema"] == "1" and d["manifest"]["fact.entry"] == "reply", d'

afdep-compile explain "${deployment[@]}" | grep -qx '9 found, 0 missing'
AFDEP_SIM_LANES=32 afdep-compile explain "${deployment[@]}" >"$work/near"
grep -qx '0 found, 9 missing' "$work/near"
[[ $(grep -c ' differs in ' "$work/near") -eq 9 && $(grep -c '^      source: ' "$work/near") -eq 9 ]]

object=$(find "$work/cache" -name "$key.afo")
truncate -s 200 "$object"
status=0
afdep-compile inspect "$object" >"$work/damaged" || status=$?
[[ $status -eq 4 ]] && grep -q 'is damaged' "$work/damaged"
status=0
afdep-compile list >"$work/list" || status=$?
[[ $status -eq 4 ]] && grep -q '^damaged: ' "$work/list"
status=0
afdep-compile inspect 0123 2>/dev/null || status=$?
[[ $status -eq 1 ]]
status=0
afdep-compile inspect 2>/dev/null || status=$?
[[ $status -eq 2 ]]
