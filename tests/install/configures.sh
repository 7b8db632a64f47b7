#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# CMake makes the build of script/wheel: configures.sh SOURCE CXX. Its libraries are empty here; building it takes long.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder"/portable/{lib,shared,glibc,include,licenses}
ar rc "$folder/portable/lib/libnothing.a"
touch "$folder/portable/glibc/libc.so" "$folder"/portable/shared/libmillrace_{dnnl,serial}.so
cmake -G Ninja -S "$1" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$2" -DMILLRACE_PORTABLE="$folder/portable" \
  -DMILLRACE_TESTS=OFF -DMILLRACE_BENCH=OFF -DMILLRACE_EXAMPLES=OFF -DMILLRACE_PYTHON=OFF > "$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
grep -q 'Generating done' "$folder/log"
