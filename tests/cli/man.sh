#!/usr/bin/env bash
# man.sh: the man page names every verb, flag and exit code that --help names and no other flag, and
# formats without a warning.
. "$(dirname "$0")/common.bash"
page=$here/../../src/cli/afdep-compile.1
tr -d '\\' <"$page" >"$work/plain"

run 0 afdep-compile --help
verbs=$(sed -nE 's/^  ([a-z]+) +[A-Z].*/\1/p' "$work/stdout")
[[ $(wc -w <<<"$verbs") -ge 6 ]] || fail "--help names too few verbs: $verbs"
codes=$(sed -n 's/^exit codes: //p' "$work/stdout" | grep -oE '[0-9]+')
[[ -n $codes ]] || fail "--help names no exit codes"
echo --version >"$work/flags"
for verb in $verbs; do
    grep -qE "^\.BR? $verb( |\$)" "$work/plain" || fail "the man page has no entry for the verb $verb"
    run 0 afdep-compile "$verb" --help
    grep -oE -- '--[a-z][a-z-]+' "$work/stdout" >>"$work/flags"
done
sort -u -o "$work/flags" "$work/flags"
while read -r flag; do
    grep -qE "(^|[^a-z-])$flag([^a-z-]|\$)" "$work/plain" || fail "the man page lacks $flag"
done <"$work/flags"
grep -oE -- '--[a-z][a-z-]+' "$work/plain" | sort -u | comm -13 "$work/flags" - >"$work/surplus"
is_empty surplus
for code in $codes; do
    grep -qx "$code" "$work/plain" || fail "the man page lacks exit code $code"
done

if command -v mandoc >/dev/null; then
    mandoc -Tlint -W warning "$page" >"$work/lint" 2>&1
    is_empty lint
elif command -v groff >/dev/null; then
    groff -man -Tascii -ww -rCHECKSTYLE=2 "$page" >"$work/page" 2>"$work/lint"
    is_empty lint
elif command -v man >/dev/null; then
    man --warnings=all -l "$page" >"$work/page" 2>"$work/lint"
    is_empty lint
else
    [[ $failures -gt 0 ]] || { echo "the words are right; nothing here formats man pages"; exit 77; }
fi
finish
