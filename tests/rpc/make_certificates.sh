#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the certificates of grpc_test into a folder: make_certificates.sh FOLDER
set -eu
cd "$1"
authority() { # name
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.pem" -days 2 -subj "/CN=$1"
}
signed() { # name, authority, days, alternative name
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=common-$1"
  echo "subjectAltName=$4" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -set_serial 7 -days "$3" -extfile "$1.ext" -out "$1.pem"
}
{
  authority ours
  authority other
  signed server ours 2 "DNS:server.test,IP:127.0.0.1"
  signed worker ours 2 "DNS:worker-0.test"
  signed client ours 2 "DNS:worker-0.test,URI:millrace://role/client"
  signed task ours 2 "DNS:worker-0.test,URI:millrace://role/task"
  signed nameless ours 2 "DNS:somewhere-else.test"
  signed expired ours -1 "DNS:worker-0.test,IP:127.0.0.1"
  signed stranger other 2 "DNS:worker-0.test,IP:127.0.0.1"
} > log 2>&1 || { cat log; exit 1; }
