#!/usr/bin/env bash
# variables.sh: docs/operations.md lists every environment variable that is read, with its default and
# what it does, and no other; and it explains every warning.
. "$(dirname "$0")/common.bash"
root=$here/../..
doc=$root/docs/operations.md
env -i PATH="$PATH" AFDEP_JIT_CACHE="$work/cache" AFDEP_LOG= afdep-compile env --json >"$work/stdout"
python3 - "$work/stdout" >"$work/read" <<'CODE'
import json, sys
OWN = ("PATH", "AFDEP_JIT_CACHE")  # set above, so their defaults do not show
for v in json.load(open(sys.argv[1]))["variables"]:
    default = "" if v["name"] in OWN or not v["value"] else f"`{v['value']}`"
    print(f"| `{v['name']}` | {default} | {v['text']} |")
CODE
[[ -s $work/read ]] || fail "no variable is read"
grep -E '^\| `[A-Z_]+` \|' "$doc" >"$work/listed"
diff "$work/read" "$work/listed" || fail "what is read (<) and docs/operations.md (>) differ"

# The words of a warning before its first value must stand in the table of warnings.
sed -n '/^## Warnings/,/^## When/p' "$doc" | grep '^| `' >"$work/warnings"
count=0
while IFS= read -r format; do
    count=$((count + 1))
    case $format in
    '%s is \"%s\"'* | 'AFDEP_SIM_LANES is '*) words='… is "…"; it must be' ;;
    *) words=$(sed -E 's/:? ?%.*//' <<<"$format") ;;
    esac
    grep -qF -- "$words" "$work/warnings" || fail "docs/operations.md does not explain: $format"
done < <(cat "$root"/src/*/*.c "$root"/src/device/sim/*.c "$root"/cache/*.c | tr '\n' ' ' |
    grep -oE '(afj_log\(AFJ_LOG_WARN,|AFJ_WARN_ONCE\() *"([^"\\]|\\.)*"' | sed -E 's/^[^"]*"//; s/"$//')
[[ $count -ge 8 ]] || fail "only $count warnings were found in the sources"
finish
