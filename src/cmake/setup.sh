#!/usr/bin/env bash
# setup.sh: install what the build and the tests need and this machine lacks. Says what it does,
# does nothing where nothing is missing, and needs no network then.
#
# Packages come from apt-get (Debian, Ubuntu). NVRTC and the CUDA headers, where there is no CUDA
# toolkit, come from NVIDIA's wheels on PyPI and go into build/toolchain, which git ignores.
set -euo pipefail
cd "$(dirname "$0")/../.."

toolchain=build/toolchain
log=build/setup.log
mkdir -p build
: >"$log"

say() { echo "set-up: $*"; }

# Run a command into the log; on failure show the log's end.
logged() {
    echo "+ $*" >>"$log"
    if ! "$@" >>"$log" 2>&1 </dev/null; then
        tail -n 15 "$log" >&2
        say "failed: $* (all of it in $log)" >&2
        return 1
    fi
}

# Add a package to `missing` if its command, or its pkg-config module, is not there.
missing=()
need_command() { command -v "$1" >/dev/null 2>&1 || missing+=("$2"); }
need_module() { pkg-config --exists "$1" 2>/dev/null || missing+=("$2"); }

as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif ! command -v sudo >/dev/null 2>&1; then
        echo "this needs root, and there is no sudo: $*"
        return 1
    elif (: </dev/tty) 2>/dev/null; then
        sudo "$@" # asks on the terminal, whatever the streams are
    else
        sudo -n "$@"
    fi
}

install_packages() {
    if [[ ${#missing[@]} -eq 0 ]]; then
        return 0
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        say "please install what these Debian packages hold: ${missing[*]}" >&2
        return 1
    fi
    say "installing ${missing[*]} with apt-get"
    local options=(-qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=2 -o Acquire::http::Timeout=30
        -o Acquire::https::Timeout=30 -o DPkg::Lock::Timeout=120)
    logged as_root env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" update
    logged as_root env DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y \
        --no-install-recommends "${missing[@]}"
}

# Where NVRTC is looked for, in the order in which the library does it.
have_nvrtc() {
    local folder file
    if [[ ${AFDEP_NVRTC-} ]]; then
        [[ -e $AFDEP_NVRTC ]]
        return
    fi
    local ldconfig
    ldconfig=$(command -v ldconfig || echo /sbin/ldconfig)
    [[ $("$ldconfig" -p 2>/dev/null) == *libnvrtc.so.1[2-9]* ]] && return 0
    for folder in ${CUDA_PATH:+"$CUDA_PATH"} ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda* \
        "$toolchain"; do
        for file in "$folder"/lib64/libnvrtc.so.* "$folder"/lib/libnvrtc.so.*; do
            [[ -e $file ]] && return 0
        done
    done
    return 1
}

have_header() {
    local folder
    for folder in ${CUDA_PATH:+"$CUDA_PATH"} ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda* \
        "$toolchain" /usr; do
        [[ -e $folder/include/$1 ]] && return 0
    done
    return 1
}

# Fetch wheels and put their libraries and headers into the toolchain folder.
fetch_wheels() {
    local work wheel
    work=$(mktemp -d build/wheels.XXXXXX)
    # shellcheck disable=SC2064 # the directory of now
    trap "rm -rf '$work'" EXIT
    say "fetching $* from PyPI into $toolchain"
    logged python3 -m pip download --quiet --disable-pip-version-check --no-deps --timeout 60 \
        --retries 2 --only-binary=:all: --dest "$work" "$@"
    for wheel in "$work"/*.whl; do
        logged python3 -m zipfile -e "$wheel" "$work/unpacked"
    done
    mkdir -p "$toolchain"/{lib,include}
    if compgen -G "$work/unpacked/nvidia/*/lib/libnvrtc*" >/dev/null; then
        # The .alt libraries are for other C libraries than this machine's.
        find "$work/unpacked/nvidia" -name '*.alt.so*' -delete
        mv "$work"/unpacked/nvidia/*/lib/libnvrtc* "$toolchain/lib/"
    fi
    find "$work/unpacked/nvidia" \( -name cuda.h -o -name nvrtc.h \) \
        -exec cp {} "$toolchain/include/" \;
}

need_command gcc gcc
need_command g++ g++
need_command cmake cmake
need_command ninja ninja-build
need_command git git
need_command python3 python3 # reads the programs' JSON in the tests
if command -v pkg-config >/dev/null 2>&1; then
    need_module sqlite3 libsqlite3-dev
    need_module libxxhash libxxhash-dev
    need_module jansson libjansson-dev
    need_module popt libpopt-dev
    need_module criterion libcriterion-dev
else
    missing+=(pkg-config libsqlite3-dev libxxhash-dev libjansson-dev libpopt-dev libcriterion-dev)
fi
# The archive that the static preset's Criterion needs has no pkg-config file.
compgen -G '/usr/lib/*/libprotobuf-nanopb.a' >/dev/null || missing+=(libnanopb-dev)

wheels=()
have_nvrtc && have_header nvrtc.h || wheels+=('nvidia-cuda-nvrtc==13.0.*')
have_header cuda.h || wheels+=('nvidia-cuda-runtime==13.0.*')
if [[ ${#wheels[@]} -gt 0 ]]; then
    python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
fi

install_packages
if [[ ${#wheels[@]} -gt 0 ]]; then
    fetch_wheels "${wheels[@]}"
fi
if [[ ${#missing[@]} -eq 0 && ${#wheels[@]} -eq 0 ]]; then
    say "nothing is missing"
fi
