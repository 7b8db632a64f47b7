#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trains a model by one of TensorFlow's bindings that is installed; exits with 77 when it or its tools are not.
#   binding_test.sh go GOPATH LIBRARIES INCLUDE PYTHON PACKAGE     GOPATH has src/github.com/tensorflow/tensorflow
#   binding_test.sh java FOLDER LIBRARIES INCLUDE PYTHON PACKAGE   FOLDER has the binding's classes or jar, and libtensorflow_jni.so
# LIBRARIES holds libtensorflow.so.1; PYTHON with the package in PACKAGE writes the model.
set -euo pipefail
language=$1 binding=$2 libraries=$3 include=$4 python=$5 package=$6
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $1"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $language in
  go)
    command -v go > /dev/null || skip "there is no go"
    [ -d "$binding/src/github.com/tensorflow/tensorflow/tensorflow/go" ] || skip "no Go binding at '$binding'" ;;
  java)
    command -v javac > /dev/null || skip "there is no javac"
    [ -e "$binding/libtensorflow_jni.so" ] || skip "no Java binding at '$binding'"
    classes=$binding/main:$(find "$binding" -maxdepth 1 -name '*.jar' | paste -sd:) ;;
esac
PYTHONPATH=$package "$python" "$here/make_model.py" "$work/model" || skip "the Python package cannot write the model"

mkdir "$work/lib"
ln -s "$libraries/libtensorflow.so.1" "$work/lib/libtensorflow.so"
export LD_LIBRARY_PATH="$work/lib:$libraries"
if [ "$language" = go ]; then
  export GO111MODULE=off GOFLAGS='' GOCACHE="$work/cache" GOPATH="$binding:/usr/share/gocode"
  export CGO_CFLAGS="-I$include -w" CGO_LDFLAGS="-L$work/lib"
  (cd "$here/go" && go build -o "$work/train" train.go)
  said=$("$work/train" "$work/model")
else
  javac -nowarn -cp "$classes" -d "$work" "$here/java/Train.java" 2> "$work/log" || { cat "$work/log"; exit 1; }
  said=$(java -Djava.library.path="$binding" -cp "$work:$classes" Train "$work/model")
fi
echo "$said"
[[ $said == *"loss 0.0000, slope 2.0, offset -1.0, x = 10 gives 19.0" ]] || { echo "not what was to be learned"; exit 1; }
