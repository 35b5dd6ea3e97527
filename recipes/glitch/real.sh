#!/usr/bin/env bash
# Which tokens of SmolLM2-135M-Instruct were never learned, and does the model confirm it? One command:
#
#   recipes/glitch/real.sh                     text from ../shared/data-unpacked, to count tokens in
#
# Variables, with their defaults:
#   MODEL=runs/smollm2-16/model    what recipes/smollm2/get.sh writes, in 16 bits; made where missing
#   DATA=../shared/data-unpacked   train/{en,code}.txt, as its unpack.sh leaves it
#   OUT=runs/glitch-real           results.jsonl and the report, glitch.html
#   TOP=18 CONTROLS=16             tokens of each indicator, and drawn by chance
#   RECORD=1                       also put the results beside the README, and write its tables
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
MODEL=${MODEL:-runs/smollm2-16/model}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/glitch-real}
export HF_HUB_DISABLE_PROGRESS_BARS=1
if [ ! -e "$DATA/train/en.txt" ]; then
  echo "$DATA/train is not there: run  ../shared/data/unpack.sh $DATA  or set DATA" >&2
  exit 2
fi
if [ ! -e "$MODEL" ]; then
  PYTHON=$PYTHON DTYPE=bfloat16 OUT=$(dirname "$MODEL") recipes/smollm2/get.sh
fi
"$PYTHON" recipes/glitch/real.py "$MODEL" --name SmolLM2-135M-Instruct -o "$OUT" \
  --corpus en="$DATA/train/en.txt" code="$DATA/train/code.txt" \
  --top "${TOP:-18}" --controls "${CONTROLS:-16}"
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/glitch --rows "$OUT/results.jsonl"
fi
