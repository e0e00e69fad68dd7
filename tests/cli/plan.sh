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

# Every field of a config has a flag and a name in files; what few ask for is said where it is asked.
all=(--layout 8B --dtype opaque --payload-bytes 64 --ids 64 --receive expert-major --alignment 16
    --counts-first --host-counts --reply-weights)
run 0 afdep-compile plan "${all[@]}"
has stdout '8B: hidden 2048 opaque, top-8 of 128 experts'
has stdout ', payload_bytes 64, ids 64, receive expert-major, alignment 16, counts_first, host_counts, reply_weights'
run 0 afdep-compile plan "${all[@]}" --json
cp "$work/stdout" "$work/flags.json"
json '[r["role"] for r in d["deployments"][0]["roles"]] == ["both"]'
cat >"$work/all.jsonl" <<'LINE'
{"layout": "8B", "dtype": "opaque", "payload_bytes": 64, "ids": 64, "receive": "expert-major", "alignment": 16, "counts_first": true, "host_counts": 1, "reply_weights": true, "collect_view": false}
LINE
run 0 afdep-compile plan "$work/all.jsonl" --json
cmp "$work/flags.json" "$work/stdout" || fail "a file and flags give two plans"

# A deployment as plan prints it is a line of a file again.
run 0 afdep-compile plan --layout 2A1F,3B --dtype fp8,fp8-ue8m0 --receive view --reply-weights=0,1 \
    --json
json 'len(d["deployments"]) == 8'
json '{(x["layout"], x["dtype"], x["reply_weights"]) for x in d["deployments"]} == {(l, t, w)
    for l in ("2A1F", "3B") for t in ("fp8", "fp8-ue8m0") for w in (True, False)}'
cp "$work/stdout" "$work/first.json"
python3 - "$work/first.json" >"$work/again.jsonl" <<'CODE'
import json, sys
for line in json.load(open(sys.argv[1]))["deployments"]:
    del line["roles"]
    print(json.dumps(line))
CODE
run 0 afdep-compile plan "$work/again.jsonl" --json
cmp "$work/first.json" "$work/stdout" || fail "what plan prints means something else in a file"

# A switch without a value is on; 0 is off; collected rows stay in place only with one FFN rank.
run 0 afdep-compile plan --layout 2A1F --collect-view --counts-first=0 --json
json 'd["deployments"][0]["collect_view"] is True and d["deployments"][0]["counts_first"] is False'
run 0 afdep-compile plan --layout 2A1F --collect-view 1 --counts-first - --json \
    <<<'{"top_k": 4}'
json 'd["deployments"][0]["counts_first"] is True and d["deployments"][0]["top_k"] == 4'
finish
