#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A small network learns from the sonnets, and a run that was interrupted goes on to the same bits as one that was not.
#   resume_test.sh SHAKESPEARE_PROGRAM
set -euo pipefail
program=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=(--units 64 --layers 2 --epochs 12)
whole=$("$program" --dir "$work/whole" "${options[@]}")
echo "$whole"
# Guessing by the frequency of letters alone gives about 19.
awk '/^epoch/ { value = $4 } END { exit !(value < 12) }' <<<"$whole"

"$program" --dir "$work/cut" "${options[@]}" >"$work/first.txt" &
pid=$!
for _ in $(seq 200); do
  compgen -G "$work/cut/events*" >/dev/null && break
  sleep 0.02
done
sleep 0.3
kill -INT "$pid"
wait "$pid" || true
cat "$work/first.txt"
grep -q '^stopped at step' "$work/first.txt"
"$program" --dir "$work/cut" "${options[@]}" >"$work/second.txt"
grep -q '^going on from' "$work/second.txt"
last=$(basename "$(ls "$work"/whole/model.ckpt-*.index)" .index)
cmp "$work/whole/$last.data-00000-of-00001" "$work/cut/$last.data-00000-of-00001"
echo "the interrupted run ended with the same bits"
