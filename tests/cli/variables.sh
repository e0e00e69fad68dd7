#!/usr/bin/env bash
# variables.sh: docs/operations.md lists every environment variable that is read, and no other.
set -euo pipefail
source "$(dirname "$0")/common.bash"
doc=$here/../../docs/operations.md
afdep-compile env --json | python3 -c '
import json, sys
for v in json.load(sys.stdin)["variables"]:
    print(v["name"])' | sort >"$work/read"
grep -oE '^\| `[A-Z_]+` \|' "$doc" | tr -d '|` ' | sort >"$work/listed"
[[ -s $work/read ]] || fail "no variable is read"
diff "$work/read" "$work/listed" || fail "what is read (<) and docs/operations.md (>) differ"
finish
