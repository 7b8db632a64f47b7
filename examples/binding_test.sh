#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Trains a model by one of TensorFlow's bindings that is installed; exits with 77 when it or its tools are not.
#   binding_test.sh go|java LIBRARIES INCLUDE PYTHON PACKAGE
# MILLRACE_TENSORFLOW_GO names a GOPATH with src/github.com/tensorflow/tensorflow; MILLRACE_TENSORFLOW_JAVA a folder with the
# binding's classes (main/) or jar, and libtensorflow_jni.so. LIBRARIES holds libtensorflow.so.1 and .so.2; PYTHON with the
# package in PACKAGE writes the model.
set -euo pipefail
language=$1 libraries=$2 include=$3 python=$4 package=$5
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $1"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $language in
  go)
    binding=${MILLRACE_TENSORFLOW_GO:-}
    command -v go > /dev/null || skip "there is no go"
    [ -d "$binding/src/github.com/tensorflow/tensorflow/tensorflow/go" ] || skip "no Go binding at '$binding'" ;;
  java)
    binding=${MILLRACE_TENSORFLOW_JAVA:-}
    command -v javac > /dev/null || skip "there is no javac"
    [ -e "$binding/libtensorflow_jni.so" ] || skip "no Java binding at '$binding'"
    classes=$binding/main:$(find "$binding" -maxdepth 1 -name '*.jar' | paste -sd:) ;;
esac
PYTHONPATH=$package "$python" "$here/make_model.py" "$work/model"

form=1
grep -qs TF_TString "$binding"/src/github.com/tensorflow/tensorflow/tensorflow/go/*.go && form=2
mkdir "$work/lib"
ln -s "$libraries/libtensorflow.so.$form" "$work/lib/libtensorflow.so"
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
