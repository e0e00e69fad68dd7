#!/usr/bin/env bash
# usage.sh: wrong usage exits with 2 and the usage line; help and version exit with 0.
. "$(dirname "$0")/common.bash"

run 2 afdep-compile
has stderr 'usage: afdep-compile plan|build|list|inspect|explain|env'
run 2 afdep-compile frobnicate
has stderr '"frobnicate" is not a verb'
for verb in plan build env; do
    run 2 afdep-compile "$verb" --frobnicate
    has stderr '--frobnicate'
    has stderr "usage: afdep-compile $verb"
    is_empty stdout
    run 0 afdep-compile "$verb" --help
    has stdout 'examples:'
    has stdout '--json'
done
run 2 afdep-compile plan
has stderr 'no layout was given'
run 2 afdep-compile plan --layout
has stderr 'usage: afdep-compile plan'
run 0 afdep-compile plan --layout 8B
has stdout 'both, ranks 0 to 7'
run 2 afdep-compile plan --layout 2A2F --dtype int8
has stderr 'it must be bf16, fp8, fp8-ue8m0 or opaque'
run 2 afdep-compile plan --layout 2A2F --receive sorted
has stderr 'it must be compact, view or expert-major'
run 2 afdep-compile plan --layout 2A2F --ids 48
has stderr 'id_bits is 48; it must be 32 or 64'
run 2 afdep-compile plan --layout 2A2F --dtype opaque
has stderr 'payload_bytes is 0'
run 2 afdep-compile plan --layout 2A2F --alignment 8
has stderr 'alignment is 8'
run 2 afdep-compile plan --layout 2A2F --collect-view
has stderr 'collect_view is 1'
run 2 afdep-compile plan --layout 2A2F --counts-first "$work/all.jsonl"
has stderr 'it must be 0 or 1; a FILE goes before --counts-first'
run 2 afdep-compile plan --layout 65B
has stderr 'layout 65B has 65 FFN ranks; at most 64'
run 2 afdep-compile plan --layout 8B8
has stderr '"8B8" is not of the form 2A2F or 8B'
run 2 afdep-compile plan - <<<'{"layout": "2A2F", "counts_first": 0.5}'
has stderr '"counts_first" must be a string, a whole number, true, false or a list of them'
run 2 afdep-compile plan --layout 2F2A
has stderr '"2F2A" is not of the form 2A2F'
run 2 afdep-compile plan --layout 2A2F --domains 2
has stderr 'more than one NVLink domain is not supported yet'
run 2 afdep-compile plan --layout 2A2F --hidden 2052
has stderr 'hidden is 2052; it must be a multiple of 8'
run 2 afdep-compile plan --layout 2A2F --hidden 2048,
has stderr 'an item of the list is empty'
run 2 afdep-compile plan --layout 2A2F --device sim --arch sm_90a
has stderr 'sm_90a'
run 2 afdep-compile plan --layout 2A2F --device tpu
has stderr 'it must be cuda or sim'
run 2 afdep-compile plan --layout 2A2F --duty forward
has stderr 'not supported yet'
run 2 afdep-compile plan --layout 2A3F --dtype fp8 --hidden 2056
has stderr 'hidden is 2056'
run 2 afdep-compile build --layout 2A2F -j 0
has stderr '-j is "0"'
run 2 afdep-compile env surplus
has stderr '"surplus" is one argument too many'

run 2 afdep-compile plan "$work/absent.jsonl"
has stderr "$work/absent.jsonl: No such file"
printf '{"layout": "2A2F"}\n\n{"layout": "2A2F", "hiden": 64}\n' >"$work/bad.jsonl"
run 2 afdep-compile plan "$work/bad.jsonl"
has stderr "$work/bad.jsonl:3: \"hiden\" is not a field of a deployment"
run 2 afdep-compile plan - <<<'{"layout": '
has stderr 'stdin:1: '
run 2 afdep-compile plan - <<<'["2A2F"]'
has stderr 'stdin:1: a line must be one JSON object'
run 2 afdep-compile plan - </dev/null
has stderr 'stdin: no deployment in it'

run 0 afdep-compile --version
has stdout 'afdep-compile '
has stdout '(commit '
run 0 afdep-compile --help
has stdout 'build'

run 2 afdep-bench
has stderr 'usage: afdep-bench exchange'
run 2 afdep-bench exchange --frobnicate
has stderr 'usage: afdep-bench exchange'
run 2 afdep-bench exchange --tokens 33 --capacity 32
has stderr 'tokens is 33'
run 2 afdep-bench exchange --receive odd
has stderr 'it must be compact, view or expert-major'
run 2 afdep-bench exchange --ids 48
has stderr 'id_bits is 48'
run 2 afdep-bench exchange --counts-first=no
has stderr 'counts-first is "no"'
run 2 afdep-bench exchange --routing odd
has stderr 'it must be random, skew, one or khot'
run 0 afdep-bench exchange --help
has stdout 'examples:'
run 0 afdep-bench --version
has stdout 'afdep-bench '
finish
