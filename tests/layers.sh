#!/usr/bin/env bash
# layers.sh: fail on every #include that docs/layers.txt does not allow.
# Usage: layers.sh [--root DIR] | layers.sh --self-test
set -euo pipefail

self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
root=$(dirname "$(dirname "$self")")

declare -A folder_layer allowed header_places generated
read_rules() {
    local kind name rest word
    while read -r kind name rest; do
        case $kind in
        '' | '#'*) ;;
        layer) folder_layer[$rest]=$name ;;
        allow) for word in $name $rest; do allowed["$name>$word"]=1; done ;;
        header) header_places[$name]=$rest ;;
        generated) generated[$name]=$rest ;;
        *) echo "docs/layers.txt: unknown rule '$kind $name $rest'"; exit 1 ;;
        esac
    done <docs/layers.txt
}

# The layer of a file, by the longest folder that holds it; empty if none does.
layer_of() {
    local folder=$1
    layer=${folder_layer[$folder]-}
    [[ ! $layer ]] || return 0
    while [[ $folder == */* ]]; do
        folder=${folder%/*}
        if [[ ${folder_layer[$folder]-} ]]; then
            layer=${folder_layer[$folder]}
            return
        fi
    done
}

# The path in the tree that an include means; empty if there is none.
resolve() {
    local from=$1 target=$2 candidate
    for candidate in "${from%/*}/$target" "src/$target" "$target" "include/$target" \
        "templates/$target" "templates/example/$target"; do
        if [[ -f $candidate ]]; then
            found=$candidate
            return
        fi
    done
    found=
}

# Whether one of the places is the file or a folder around it.
is_within() {
    local file=$1 place
    shift
    for place in "$@"; do
        [[ $file == "$place" || $file == "$place"/* ]] && return 0
    done
    return 1
}

check() {
    local file number text from target bracket faults=0 includes=0
    local pattern='^[[:space:]]*#[[:space:]]*include[[:space:]]*([<"])([^>"]+)[>"]'
    while IFS=: read -r file number text; do
        [[ $text =~ $pattern ]] || continue
        bracket=${BASH_REMATCH[1]} target=${BASH_REMATCH[2]}
        includes=$((includes + 1))
        layer_of "$file"
        from=$layer
        if [[ ! $from ]]; then
            echo "$file:$number: the file belongs to no layer"
            faults=$((faults + 1))
            continue
        fi
        if [[ ${header_places[${target##*/}]-} ]]; then
            # shellcheck disable=SC2086 # a list of places
            if ! is_within "$file" ${header_places[${target##*/}]}; then
                echo "$file:$number: $target may be included by" \
                    "${header_places[${target##*/}]} only"
                faults=$((faults + 1))
            fi
            continue
        fi
        resolve "$file" "$target"
        if [[ $found && ($bracket == '"' || $target == afdep/*) ]]; then
            layer_of "$found"
        elif [[ ${generated[$target]-} ]]; then
            layer=${generated[$target]}
        elif [[ $bracket == '<' && $target != afdep/* ]]; then
            continue # a system header
        else
            layer=
        fi
        if [[ ! $layer ]]; then
            echo "$file:$number: $target is in no layer"
            faults=$((faults + 1))
        elif [[ $layer != "$from" && ! ${allowed[$from>$layer]-} ]]; then
            echo "$file:$number: $from may not include $layer ($target)"
            faults=$((faults + 1))
        fi
    done < <(find include src cache templates bench \( -name '*.c' -o -name '*.h' -o \
        -name '*.h.in' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu' \) -print0 2>/dev/null |
        sort -z | xargs -0 -r grep -HnE '^[[:space:]]*#[[:space:]]*include')
    if [[ $includes -eq 0 ]]; then
        echo "no include was found: the check looked at nothing"
        return 1
    fi
    echo "$includes includes, $faults not allowed"
    [[ $faults -eq 0 ]]
}

# Prove that the check can fail: a small tree with one fault of each kind, then without them.
self_test() {
    local tree answer fault
    tree=$(mktemp -d)
    # shellcheck disable=SC2064 # the directory of now
    trap "rm -rf '$tree'" EXIT
    mkdir -p "$tree"/{docs,src/plan,src/jit,src/base,src/odd}
    cp "$root/docs/layers.txt" "$tree/docs/"
    echo '#include <stdint.h>' >"$tree/src/base/text.h"
    echo '#include "plan/plan.h"' >"$tree/src/jit/source.h"
    printf '#include "base/text.h"\n#include <string.h>\n' >"$tree/src/plan/plan.h"
    if ! answer=$("$self" --root "$tree"); then
        printf 'a clean tree fails:\n%s\n' "$answer"
        exit 1
    fi
    cat >"$tree/src/plan/plan.c" <<'CODE'
#include "plan/plan.h"
#include "jit/source.h"
  #  include <sqlite3.h>
#include "plan/absent.h"
CODE
    echo '#include <stdio.h>' >"$tree/src/odd/odd.c"
    if answer=$("$self" --root "$tree"); then
        printf 'a tree with faults passes:\n%s\n' "$answer"
        exit 1
    fi
    for fault in 'src/plan/plan.c:2: plan may not include jit' \
        'src/plan/plan.c:3: sqlite3.h may be included by' \
        'src/plan/plan.c:4: plan/absent.h is in no layer' \
        'src/odd/odd.c:1: the file belongs to no layer' '4 not allowed'; do
        if [[ $answer != *"$fault"* ]]; then
            printf 'not reported: %s\n%s\n' "$fault" "$answer"
            exit 1
        fi
    done
    echo "each fault is reported"
}

case ${1-} in
'') ;;
--self-test)
    self_test
    exit
    ;;
--root) root=$2 ;;
*)
    echo "usage: layers.sh [--root DIR] | layers.sh --self-test"
    exit 2
    ;;
esac
cd "$root"
read_rules
check
