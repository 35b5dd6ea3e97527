#!/usr/bin/env bash
# What each rule of normalization changes in each language, and what it does to fertility.
#
#   recipes/normalization/run.sh               text from ../shared/data-unpacked
#   recipes/normalization/run.sh --smoke       our own sample texts, in seconds
#
# Variables, with their defaults: DATA=../shared/data-unpacked OUT=runs/normalization KB=600 (of each
# language) VOCAB=32000 RECORD= (anything: the tables go into README.md) PYTHON=python3. Where PYTHON has
# indic-nlp-library, its rules are compared with ours, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/normalization}
KB=${KB:-600}
VOCAB=${VOCAB:-32000}
. recipes/data/corpus.sh
mkdir -p "$OUT"
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  VOCAB=1500
else
  prepare_shared_text
fi
"$PYTHON" recipes/normalization/measure.py "$OUT" --train "$TRAIN" --text "$EVAL/sib200-flores" \
  --kb "$KB" --vocab-size "$VOCAB"
ROWS=("$OUT/results.jsonl")
if "$PYTHON" -c "import indicnlp" 2>/dev/null; then
  "$PYTHON" recipes/normalization/beside_indicnlp.py "$EVAL/sib200-flores" -o "$OUT/indicnlp.jsonl"
  ROWS+=("$OUT/indicnlp.jsonl")
fi
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/normalization --rows "${ROWS[@]}"
fi
