#!/usr/bin/env bash
# env.sh: env describes the cache, the compilers and every variable with its origin.
. "$(dirname "$0")/common.bash"

run 0 afdep-compile env --json
json 'd["schema"] == "afdep-compile-env/1" and d["version"] and d["commit"]'
json 'd["cache"]["dir"].startswith("'"$work"'") and d["cache"]["origin"] == "AFDEP_JIT_CACHE"'
json 'd["cache"]["writable"] is True'
json 'set(d["nvrtc"]) == {"path", "version", "build_id", "note"}'
json 'set(d["host_compiler"]) == {"path", "version", "note"}'
json 'len(d["templates"]) == 32 and d["driver"]'
json '{v["name"]: v["origin"] for v in d["variables"]}["AFDEP_JIT_CACHE"] == "environment"'
json '{v["name"]: v["origin"] for v in d["variables"]}["AFDEP_LOG"] == "default"'
json '{v["name"]: v["value"] for v in d["variables"]}["AFDEP_LOG"] == "warn"'
json 'all(v["text"] for v in d["variables"])'

run 0 afdep-compile env
has stdout "$work/cache"
has stdout 'AFDEP_JIT_CACHE'
AFDEP_JIT_CACHE=off run 0 afdep-compile env --json
json 'd["cache"]["dir"] == "" and d["cache"]["writable"] is False'

# Paths and values may hold any bytes: a document has "?" for what is no UTF-8, and all the rest.
AFDEP_JIT_CACHE=$work/$'caf\xe9' run 0 afdep-compile env --json
json 'd["cache"]["dir"] == "'"$work"'/caf?" and d["cache"]["writable"] is True'
json 'set(d) >= {"nvrtc", "host_compiler", "driver", "templates"} and d["variables"]'
json '{v["name"]: v["value"] for v in d["variables"]}["AFDEP_JIT_CACHE"] == "'"$work"'/caf?"'

# A full stdout is a failure that is said.
if [[ -w /dev/full ]]; then
    afdep-compile env >/dev/full 2>"$work/stderr" && fail "a full stdout is no failure"
    has stderr 'cannot write to stdout'
fi
finish
