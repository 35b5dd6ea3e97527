#!/usr/bin/env bash
# Published tokenizers and ours on romanized Indian text, and the merge residue of each.
#
#   recipes/vendors/run.sh               text and tokenizers from ../shared/data-unpacked
#   recipes/vendors/run.sh --smoke       our own sample texts and tokenizers, in seconds
#
# Variables, with their defaults: DATA=../shared/data-unpacked OUT=runs/vendors SIZES="64000 200000" (of ours)
# MB=20 (of all languages together, for ours) RECIPES="bpe picky ist matra vocabshift" (ours) RECORD= (anything:
# the tables go into README.md) THREADS=all PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/vendors}
SIZES=${SIZES:-64000 200000}
MB=${MB:-20}
SEED=1
RECIPES=${RECIPES:-bpe picky ist matra vocabshift}
THREADS=${THREADS:+-j $THREADS}
. recipes/data/corpus.sh
mkdir -p "$OUT"
VENDORS=
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  SIZES=1500 MB=0
  RECIPES="bpe picky"
else
  prepare_shared_text
  VENDORS=$(vendors)
fi
lines_into CORPUS specs "$(sampled "$MB")"
OURS=()
for size in $SIZES; do
  for recipe in $RECIPES; do
    OURS+=("$OUT/$recipe-$((size / 1000))k")
    trained "$recipe-$((size / 1000))k" --recipe "$recipe" --vocab-size "$size"
  done
done
"$PYTHON" recipes/vendors/measure.py "$OUT" $VENDORS "${OURS[@]}" --train "$TRAIN" \
  --text "$EVAL/sib200-flores"
if [ -n "${RECORD:-}" ]; then
  cp "$OUT/results.jsonl" recipes/vendors/results.jsonl
  "$PYTHON" recipes/data/record.py recipes/vendors
fi
