#!/usr/bin/env bash
# SmolLM2 trimmed for English, for English and code, for English and German: 49,152 tokens down in
# steps to 4,096; nothing is trained. One command:
#
#   recipes/trim/run.sh                     text from ../shared/data-unpacked
#   recipes/trim/run.sh --smoke             our own sample texts, one step: two minutes of two cores
#
# Variables, with their defaults:
#   MODEL=runs/smollm2-16/model    what recipes/smollm2/get.sh writes, in 16 bits; made where missing
#   DATA=../shared/data-unpacked   train/{en,de,code}.txt, eval/, tasks/, as its unpack.sh leaves it
#   OUT=runs/trim                  models and results.jsonl; a model that is there is not made again
#   RECORD=1                       also put the results beside the README, and write its tables
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
MODEL=${MODEL:-runs/smollm2-16/model}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/trim}
export HF_HUB_DISABLE_PROGRESS_BARS=1
. recipes/data/corpus.sh
mkdir -p "$OUT"

SMOKE=()
TASKS=()
SIZES="32768 16384 8192 4096"
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  SMOKE=(--smoke)
  SIZES="16384"
  EN="en=$TRAIN/eng.txt" DE="de=$TRAIN/deu.txt" CODE="code=$TRAIN/code.jsonl"
  TEXTS=("en=$EVAL/sib200-flores/eng.txt" "de=$EVAL/sib200-flores/deu.txt" "code=$EVAL/code/code.jsonl")
elif [ ! -e "$DATA/train/en.txt" ]; then
  echo "$DATA/train is not there: run  ../shared/data/unpack.sh $DATA  or set DATA" >&2
  exit 2
else
  # Files of code as documents: as lines, they would have no token that holds a line's end.
  [ -e "$OUT/code.jsonl" ] || "$PYTHON" recipes/data/documents.py "$DATA/train/code.txt" \
    "$DATA/train/code.sources.tsv" -o "$OUT/code.jsonl"
  EN="en=$DATA/train/en.txt" DE="de=$DATA/train/de.txt" CODE="code=$OUT/code.jsonl"
  TEXTS=("en=$DATA/eval/sib200-flores/en.txt" "de=$DATA/eval/sib200-flores/de.txt"
    "code=$DATA/eval/code/python.txt")
  TASKS=(--tasks sib200:en --data "$DATA/tasks")
fi
if [ ! -e "$MODEL" ]; then
  PYTHON=$PYTHON DTYPE=bfloat16 OUT=$(dirname "$MODEL") recipes/smollm2/get.sh
fi

vocabshift() { "$PYTHON" -m vocabshift "$@"; }

trim() { # name of the variant, then its corpus
  local name=$1 size
  shift
  for size in $SIZES; do
    [ -e "$OUT/$name-$size" ] && continue
    vocabshift prune "$MODEL" --corpus "$@" --vocab-size "$size" -o "$OUT/tokenizer-$name-$size" --force
    vocabshift transfer "$MODEL" "$OUT/tokenizer-$name-$size" -o "$OUT/$name-$size"
  done
}
trim en "$EN"
trim en+code "$EN" "$CODE"
trim en+de "$EN" "$DE"

"$PYTHON" recipes/trim/measure.py "$MODEL" "$OUT" --sizes $SIZES --text "${TEXTS[@]}" \
  --corpus "$EN" ${TASKS[@]+"${TASKS[@]}"} ${SMOKE[@]+"${SMOKE[@]}"}
if [ "${RECORD:-}" ]; then
  cp "$OUT/results.jsonl" recipes/trim/results.jsonl
  "$PYTHON" recipes/trim/figure.py
  "$PYTHON" recipes/data/record.py recipes/trim
fi
