#!/usr/bin/env bash
# plan.sh: plan prints what it printed when plan.stdout was written, and the same as JSON.
# AFDEP_UPDATE=1 writes plan.stdout anew.
. "$(dirname "$0")/common.bash"

run 0 afdep-compile plan --layout 2A2F
[[ -z ${AFDEP_UPDATE-} ]] || cp "$work/stdout" "$here/plan.stdout"
diff -u "$here/plan.stdout" "$work/stdout" || fail "the plan of 2A2F is another"
is_empty stderr

run 0 afdep-compile plan --layout 2A2F --json
json 'd["schema"] == "afdep-compile-plan/1" and d["version"] and d["commit"]'
json 'len(d["deployments"]) == 1'
json '[r["role"] for r in d["deployments"][0]["roles"]] == ["ffn", "attention"]'
json 'd["deployments"][0]["experts"] == 128 and d["deployments"][0]["arch"] == "sm_90a"'
json 'all(k["duty"] == "expert" for k in d["deployments"][0]["roles"][0]["kernels"])'
json 'all(r["kernels"] for r in d["deployments"][0]["roles"])'

# A grid is the product of its lists, each deployment once.
run 0 afdep-compile plan --layout 2A2F,3A1F,2A2F --hidden 2048,4096 --duty source --json
json 'len(d["deployments"]) == 4'
json 'all(x["duty"] == ["source"] for x in d["deployments"])'
json 'all(not x["roles"][0]["kernels"] and x["roles"][1]["kernels"] for x in d["deployments"])'

# The default number of experts is a multiple of the FFN ranks.
run 0 afdep-compile plan --layout 1A3F --json
json 'd["deployments"][0]["experts"] == 126'

# A file gives the same as flags; lists span a grid there, too; flags fill what is left out.
printf '{"layout": "2A2F", "top_k": 4}\n{"layout": ["1A1F", "3A1F"], "hidden": 64}\n' \
    >"$work/file.jsonl"
run 0 afdep-compile plan "$work/file.jsonl" --capacity 100 --device sim --json
json '[x["layout"] for x in d["deployments"]] == ["2A2F", "1A1F", "3A1F"]'
json '[x["top_k"] for x in d["deployments"]] == [4, 8, 8]'
json 'all(x["capacity"] == 100 and x["arch"] == "x86_64" for x in d["deployments"])'
run 0 afdep-compile plan - --json <"$work/file.jsonl"
json 'len(d["deployments"]) == 3'
finish
