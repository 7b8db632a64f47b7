#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a temporary prefix, moves that, and builds programs against it in every supported way.
#   run.sh BUILD_FOLDER CONSUMER_SOURCE CXX CUSTOM_OP_SOURCE [PYTHON PACKAGE_FOLDER]
set -euo pipefail
build=$1 source=$2 cxx=$3 custom_op=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/first" > "$work/log" || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/moved"
prefix=$work/moved
if grep -rlI -e "$work/first" -e "$build" "$prefix/lib"/*/cmake "$prefix/lib"*/cmake "$prefix/lib"*/pkgconfig 2> /dev/null; then
  echo "installed files name the folder they were built in or installed to"
  exit 1
fi

library=$(find "$prefix" -name 'libmillrace.so' | head -n 1)
strip -o "$work/stripped.so" "$library"
size=$(stat -c %s "$work/stripped.so")
echo "stripped library: $size bytes"
[ "$size" -le $((25 * 1000 * 1000)) ] || { echo "larger than 25 MB"; exit 1; }

cmake -G Ninja -S "$source" -B "$work/build" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Debug \
      -DCMAKE_PREFIX_PATH="$prefix" > "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" > "$work/log" || { cat "$work/log"; exit 1; }
shared=$("$work/build/with_millrace")
static=$("$work/build/with_millrace_static")
echo "bytes of op declarations: shared $shared, static $static"
[ "$shared" = "$static" ] || { echo "static linking loses ops"; exit 1; }
if ldd "$work/build/with_millrace_static" | grep -q libmillrace; then echo "not linked statically"; exit 1; fi

PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
export PKG_CONFIG_PATH
for package in millrace millrace-static; do
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 "$source/main.cc" -o "$work/$package" $(pkg-config --cflags --libs "$package")
  found=$(LD_LIBRARY_PATH=$(dirname "$library") "$work/$package")
  [ "$found" = "$shared" ] || { echo "$package: $found bytes of op declarations"; exit 1; }
done

# A program of TensorFlow's C API, by either of its forms of strings: by pkg-config, and by -ltensorflow.
face_test=$(dirname "$0")/../c_api/face_test.c
libraries=$(dirname "$library")
for form in "1. tensorflow-1 $libraries/tensorflow-1" "2. tensorflow $libraries"; do
  read -r version package folder <<< "$form"
  # shellcheck disable=SC2046
  "$cxx" -x c -std=c99 "$face_test" -x none -o "$work/face" $(pkg-config --cflags --libs "$package")
  echo "$package: $(LD_LIBRARY_PATH=$libraries "$work/face" "$version")"
  "$cxx" -x c -std=c99 -I"$prefix/include" "$face_test" -x none -o "$work/face" -L"$folder" -ltensorflow
  echo "-L${folder##*/} -ltensorflow: $(LD_LIBRARY_PATH=$libraries "$work/face" "$version")"
done

# An op outside of the tree, in C++ and, where the build has the Python package, in Python.
cmake -G Ninja -S "$custom_op" -B "$work/custom_op" -DCMAKE_CXX_COMPILER="$cxx" \
      -DCMAKE_PREFIX_PATH="$prefix" > "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/custom_op" > "$work/log" || { cat "$work/log"; exit 1; }
echo "custom op in C++: $("$work/custom_op/fit" "$work/custom_op/log_cosh.so")"
if [ $# -ge 6 ]; then echo "in Python: $(PYTHONPATH=$6 "$5" "$custom_op/fit.py" "$work/custom_op/log_cosh.so")"; fi

begin=$(date +%s%N)
# shellcheck disable=SC2046
"$cxx" -std=c++20 -O2 -c "$source/minimal.cc" -o "$work/minimal.o" $(pkg-config --cflags millrace)
echo "the smallest client compiles in $((($(date +%s%N) - begin) / 1000000)) ms"
