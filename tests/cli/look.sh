#!/usr/bin/env bash
# look.sh: list, inspect and explain say what the cache holds, and why something is not in it.
. "$(dirname "$0")/common.bash"
deployment=(--layout 1A1F --hidden 64 --device sim)

afdep-compile explain "${deployment[@]}" >"$work/stdout" 2>"$work/stderr" || {
    grep -q 'no C++ compiler' "$work/stderr" && { echo "there is no C++ compiler"; exit 77; }
    fail "explain with an empty cache"
}
has stdout '0 found, 9 missing'
has stdout 'nothing of this spec is stored'
run 0 afdep-compile list
has stdout "0 kernels, 0 B in $work/cache"
AFDEP_JIT_CACHE=off run 0 afdep-compile list
has stdout 'memory only'

afdep-compile build "${deployment[@]}" >/dev/null
afdep-compile build --layout 2A1F --hidden 128 --device sim --duty source >/dev/null

# Filters, words and orders.
shows() {
    local want=$1
    shift
    run 0 afdep-compile list "$@"
    has stdout "$want kernels, "
    [[ $(grep -cE '^[0-9a-f]{32} ' "$work/stdout") -eq $want ]] ||
        fail "list $* has not $want rows"
}
arch=$(uname -m)
shows 13
shows 9 --layout 1A1F
shows 8 --duty source
shows 4 --duty source --hidden 64
shows 13 --hidden 64,128 --arch "sm_90a,$arch"
shows 0 --arch sm_90a
shows 2 entry=collect --layout 2A1F
shows 0 hidden=6
shows 0 --layout 1A1F hidden=128
for filter in '--duty writer' '--layout 2A' '--hidden many' '--sort name' '--hidden 64,'; do
    # shellcheck disable=SC2086 # two words
    run 2 afdep-compile list $filter
    has stderr 'usage: afdep-compile list'
done

run 0 afdep-compile list --json
json 'd["schema"] == "afdep-compile-list/1" and d["version"] and d["commit"]'
json 'len(d["entries"]) == 13 and d["damaged"] == 0 and d["cache"]["dir"].endswith("/cache")'
json '[e["key"] for e in d["entries"]] == sorted(e["key"] for e in d["entries"])'
json 'd["bytes"] == sum(e["bytes"] for e in d["entries"])'
json 'all(e["compile_ms"] > 0 and e["used"] > 1600000000 and e["image_bytes"] < e["bytes"] for e in d["entries"])'
json '{e["entry"] for e in d["entries"]} == {"dispatch", "collect", "receive", "receive_few", "reply", "scale"}'
run 0 afdep-compile list --sort size --json
json '[e["bytes"] for e in d["entries"]] == sorted((e["bytes"] for e in d["entries"]), reverse=True)'

afdep-compile list entry=reply shape=few >"$work/one"
key=$(sed -n 2p "$work/one" | cut -c1-32)
object=$(find "$work/cache" -name "$key.afo")
touch -d '2001-02-03 04:05:06' "$object"
run 0 afdep-compile list --sort used --json
json 'd["entries"][-1]["key"] == "'"$key"'" and d["entries"][-1]["used"] < 1000000000'
shows 1 "${key:0:12}"
has stdout '2001-02-03 04:05'

# Without a compiler on PATH, too.
compile=$(command -v afdep-compile)
PATH=/nonexistent AFDEP_NVRTC=/nonexistent run 0 "$compile" inspect "$key"
has stdout 'sums verified'
has stdout 'kernel reply: image of '
has stdout 'entry=reply shape=few layout=1A1F'
run 0 afdep-compile inspect "$key" --json
json 'd["schema"] == "afdep-compile-inspect/1" and d["key"] == "'"$key"'" and not d["damaged"]'
json 'd["manifest"]["schema"] == "1" and d["manifest"]["fact.entry"] == "reply" == d["entry"]'
json 'd["registers"] == d["spill_bytes"] == 0 and d["hidden"] == 64 and d["layout"] == "1A1F"'
run 0 afdep-compile inspect "$object"

# Hits, near misses, and single objects.
run 0 afdep-compile explain "${deployment[@]}"
has stdout '9 found, 0 missing'
run 0 afdep-compile explain --layout 1A1F,2A1F --hidden 64,128 --device sim --duty source --json
json 'd["schema"] == "afdep-compile-explain/1" and (d["hits"], d["misses"]) == (8, 8)'
json '{k["status"] for k in d["kernels"] if "layout=2A1F domains=1 hidden=128" in k["spec"]} == {"hit"}'
json 'all(k["nearest"] is None and k["differences"] == [] for k in d["kernels"])'
export AFDEP_SIM_LANES=32
run 0 afdep-compile explain "${deployment[@]}"
has stdout '0 found, 9 missing'
[[ $(grep -c ' differs in ' "$work/stdout") -eq 9 && $(grep -c '^      source: ' "$work/stdout") -eq 9 ]] ||
    fail "explain does not name the source of each kernel"
run 0 afdep-compile explain "${deployment[@]}" --duty source --json
json '[[x["field"] for x in k["differences"]] for k in d["kernels"]] == [["source"]] * 4'
json 'all(len(x["stored"]) == len(x["wanted"]) == 32 and x["stored"] != x["wanted"] for k in d["kernels"] for x in k["differences"])'
run 0 afdep-compile explain "$key"
has stdout '0 found, 1 missing'
has stdout "the object $key differs in"
unset AFDEP_SIM_LANES
run 0 afdep-compile explain "$key"
has stdout '1 found, 0 missing'
cp "$object" "$work/elsewhere.afo"
run 0 afdep-compile explain "$work/elsewhere.afo" --json
json 'd["hits"] == 1 and d["kernels"][0]["key"] == "'"$key"'"'
run 2 afdep-compile explain "$key" --layout 1A1F
has stderr 'says itself what it is of'
run 2 afdep-compile explain "$key" "$key"
run 1 afdep-compile explain 00000000000000000000000000000000
has stderr 'is no object of the cache'

# Damage is told, whatever the filter, and is no hit.
truncate -s 200 "$object"
run 4 afdep-compile inspect "$object"
has stdout 'is damaged: '
run 4 afdep-compile inspect "$key" --json
json 'd["damaged"] is True and d["error"] and d["path"].endswith("'"$key"'.afo")'
run 4 afdep-compile explain "$key"
has stderr 'is damaged'
run 4 afdep-compile list --hidden 7168
has stdout "damaged: $object: "
has stdout '0 kernels, 0 B in '
run 4 afdep-compile list --json
json 'd["damaged"] == 1 and len(d["entries"]) == 13'
run 0 afdep-compile explain "${deployment[@]}"
has stdout '8 found, 1 missing'
has stdout 'the object of this key is not taken: '
[[ -f $object ]] || fail "looking at a damaged object moved it"

run 1 afdep-compile inspect 0123
has stderr '0123 is no object of the cache'
run 2 afdep-compile inspect
run 1 afdep-compile inspect "$work"

# A directory whose name is no UTF-8 is listed all the same.
odd=$work/$(printf 'odd\xff')
mkdir -m 700 "$odd"
AFDEP_JIT_CACHE=$odd afdep-compile build "${deployment[@]}" --duty source >/dev/null
AFDEP_JIT_CACHE=$odd run 0 afdep-compile list --json
json 'len(d["entries"]) == 4 and d["cache"]["dir"].endswith("odd?")'
finish
