#!/usr/bin/env bash
# man.sh: the man page formats without a warning and names every verb and flag that --help names.
set -euo pipefail
source "$(dirname "$0")/common.bash"
page=$here/../../src/cli/afdep-compile.1
command -v groff >/dev/null || { echo "there is no groff"; exit 77; }
groff -man -Tascii -ww "$page" >"$work/page" 2>"$work/stderr"
is_empty stderr
tr -d '\\' <"$page" >"$work/plain"
for verb in plan build list inspect explain env; do
    has plain "$verb"
    afdep-compile $verb --help >"$work/help"
    for flag in $(grep -oE -- '--[a-z][a-z-]+' "$work/help" | sort -u); do
        has plain "$flag"
    done
done
finish
