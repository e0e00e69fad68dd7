# common.bash: what the tests of the programs share. Source it; the programs are on PATH, or in
# AFDEP_BUILD_DIR.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -z ${AFDEP_BUILD_DIR-} ]] || PATH=$AFDEP_BUILD_DIR:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export AFDEP_JIT_CACHE=$work/cache
unset AFDEP_SHAPE AFDEP_LOG

failures=0
fail() {
    echo "FAIL: $*"
    [[ ! -s $work/stderr ]] || sed 's/^/  stderr: /' "$work/stderr"
    failures=$((failures + 1))
}

# run STATUS COMMAND...: run it, keep stdout and stderr in files, compare the exit status.
run() {
    local want=$1 got=0
    shift
    "$@" >"$work/stdout" 2>"$work/stderr" || got=$?
    [[ $got -eq $want ]] || fail "'$*' exits with $got, not $want"
}

# has FILE TEXT: the file holds the text.
has() {
    grep -qF -- "$2" "$work/$1" || fail "$1 lacks '$2': $(head -c 400 "$work/$1")"
}

# is_empty FILE
is_empty() {
    [[ ! -s $work/$1 ]] || fail "$1 is not empty: $(head -c 400 "$work/$1")"
}

# json EXPRESSION: a Python expression over the document `d` on stdout must be true.
json() {
    python3 - "$work/stdout" "$1" <<'CODE' || fail "not so in the document: $1"
import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)
CODE
}

finish() {
    [[ $failures -eq 0 ]] || exit 1
    echo "all right"
    exit 0
}
