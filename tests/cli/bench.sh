#!/usr/bin/env bash
# bench.sh: afdep-bench exchange on the sim device: every row checked, documents, sweeps, records.
. "$(dirname "$0")/common.bash"

run 0 afdep-compile env --json
if ! python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); sys.exit(0 if
d["host_compiler"]["path"] and not d["host_compiler"]["note"] else 1)' "$work/stdout"; then
    echo "skipped: no C++ compiler for the sim device"
    exit 77
fi

bench=(afdep-bench exchange --device sim --layout 2A2F --hidden 64 --experts 16 --top-k 2)
run 0 "${bench[@]}" --tokens 5 --seed 7 --json
has stderr 'seed 7'
json 'd["schema"] == "afdep-bench-exchange/1" and d["version"] and d["commit"]'
json 'd["layout"] == "2A2F" and d["hidden"] == 64 and d["dtype"] == "bf16" and d["tokens"] == 5'
json 'd["experts"] == 16 and d["top_k"] == 2 and d["capacity"] == 2048 and d["device"] == "sim"'
json 'd["domains"] == 1 and d["processes"] == 1 and d["arm"] == "afdep" and d["lanes"] == 1'
json 'd["routing"] == "random" and d["receive"] == "compact" and d["seed"] == 7 and "us" not in d'
json 'd["wrong"] == 0 and 0 < d["rows_checked"] == d["rows_expected"]'
json '10 <= d["rows_sent"] <= 20'

run 0 "${bench[@]}" --tokens 0,1,33 --routing skew,one,khot --seed 8 --record "$work/r.jsonl" --json
json 'len(d["cells"]) == 9 and all(c["wrong"] == 0 for c in d["cells"])'
json '[c["tokens"] for c in d["cells"]] == [0, 1, 33] * 3'
[[ $(wc -l <"$work/r.jsonl") -eq 9 ]] || fail "not 9 records"
head -n 1 "$work/r.jsonl" >"$work/stdout"
json 'set(d["machine"]) >= {"gpus", "driver", "nvrtc", "nccl", "cpu"}'
json 'd["command"].startswith("afdep-bench exchange --device sim") and d["tokens"] == 0'

# What few deployments ask for is passed through, checked and recorded.
run 0 "${bench[@]}" --layout 3B --tokens 4 --dtype fp8 --receive expert-major --alignment 4 --ids 64 \
    --counts-first --host-counts --reply-weights --json
json 'd["layout"] == "3B" and d["dtype"] == "fp8" and d["receive"] == "expert-major"'
json 'd["ids"] == 64 and d["alignment"] == 4 and d["counts_first"] is True'
json 'd["host_counts"] is True and d["reply_weights"] is True and d["collect_view"] is False'
json 'd["wrong"] == 0 and 0 < d["rows_checked"] == d["rows_expected"]'
run 0 "${bench[@]}" --layout 2A1F --tokens 4 --dtype opaque --payload-bytes 48 --collect-view --json
json 'd["dtype"] == "opaque" and d["payload_bytes"] == 48 and d["collect_view"] is True'
json 'd["ids"] == 32 and d["receive"] == "compact" and d["wrong"] == 0 and d["rows_checked"] > 0'

run 0 "${bench[@]}" --tokens 3
has stdout 'layout'
has stdout '2A2F'

# Without a GPU, --device cuda is the machine's fault.
if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && [[ ! -e /dev/nvidiactl ]]; then
    run 5 afdep-bench exchange --device cuda
    has stderr 'afdep-bench: '
fi
finish
