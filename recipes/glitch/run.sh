#!/usr/bin/env bash
# Does `vocabshift glitch` find tokens that training never reached, and do superwords leave fewer of
# them than late subwords? Small Llamas on English and Hindi. One command:
#
#   recipes/glitch/run.sh                           text from ../shared/data-unpacked
#   DATA=/my/text OUT=runs/mine recipes/glitch/run.sh
#   recipes/glitch/run.sh --smoke                   our own sample texts, about ten seconds
#
# A model that OUT holds already is not trained again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/en.txt and train/hi.txt, as its unpack.sh leaves it
#   OUT=runs/glitch                models, planted.{jsonl,md}, superwords.{jsonl,md}
#   SEEDS="0 1 2"
#   RECORD=                        anything: the rows go into results.jsonl, the tables into README.md
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/glitch}
export OMP_NUM_THREADS=1 HF_HUB_DISABLE_PROGRESS_BARS=1
. recipes/data/corpus.sh
mkdir -p "$OUT"

SMOKE=()
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  TEXTS=("$TRAIN/eng.txt" "$TRAIN/hin.txt")
  SEEDS=${SEEDS:-0}
  SMOKE=(--smoke)
else
  TEXTS=("$DATA/train/en.txt" "$DATA/train/hi.txt")
  SEEDS=${SEEDS:-0 1 2}
  if [ ! -e "${TEXTS[0]}" ]; then
    echo "$DATA/train is not there: run  ../shared/data/unpack.sh $DATA  or set DATA" >&2
    exit 2
  fi
fi
read -r -a SEEDS <<<"$SEEDS"
for experiment in planted superwords; do
  "$PYTHON" "recipes/glitch/$experiment.py" "${TEXTS[@]}" -o "$OUT" --seeds "${SEEDS[@]}" \
    ${SMOKE[@]+"${SMOKE[@]}"}
done
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/glitch --rows "$OUT/planted.jsonl" "$OUT/superwords.jsonl"
fi
