#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The digits example reaches 98 %, and a run that was interrupted goes on to the same bits as one that was not.
#   resume_test.sh DIGITS_PROGRAM
set -euo pipefail
digits=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
whole=$("$digits" --dir "$work/whole" --epochs 15)
echo "$whole"
awk '/accuracy on the held-back fifth/ { sub("%", "", $NF); if ($NF >= 98) ok = 1 } END { exit !ok }' <<<"$whole"

"$digits" --dir "$work/cut" --epochs 15 >"$work/first.txt" &
pid=$!
for _ in $(seq 200); do
  compgen -G "$work/cut/events*" >/dev/null && break
  sleep 0.02
done
kill -INT "$pid"
wait "$pid" || true
cat "$work/first.txt"
grep -q '^stopped at step' "$work/first.txt"
"$digits" --dir "$work/cut" --epochs 15 >"$work/second.txt"
grep -q '^going on from' "$work/second.txt"
last=$(basename "$(ls "$work"/whole/model.ckpt-*.index)" .index)
cmp "$work/whole/$last.data-00000-of-00001" "$work/cut/$last.data-00000-of-00001"
echo "the interrupted run ended with the same bits"
