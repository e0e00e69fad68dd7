#!/usr/bin/env bash
# ctypes.sh: the shared library as another language sees it: load it, plan, exchange on sim.
set -euo pipefail
build_dir=${AFDEP_BUILD_DIR:?} source_dir=${AFDEP_SOURCE_DIR:?}
command -v python3 >/dev/null || { echo "there is no python3"; exit 77; }
library=$build_dir/tests/shared/libafdep-jit.so
if [[ ! -f $library ]]; then
    library=$(find "$build_dir" -name 'libafdep-jit.so' | head -n 1)
fi
[[ -n $library && -f $library ]] || { echo "there is no shared library yet: package.shared makes it"; exit 77; }
python3 "$source_dir/tests/abi/ctypes_smoke.py" "$library"
