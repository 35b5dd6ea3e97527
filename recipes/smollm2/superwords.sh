#!/usr/bin/env bash
# SmolLM2 with superwords: what a token across the border of question and answer does to a task's
# accuracy, by `vocabshift harness --border`. 4,000 superwords are put on top of its vocabulary and
# trained on English and on questions in the form of MMLU. One command, an hour of two cores:
#
#   recipes/smollm2/superwords.sh
#
# Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/en.txt, eval/, tasks/, as its unpack.sh leaves it
#   OUT=runs/smollm2               what get.sh writes, and results.jsonl, as of run.sh; what is there
#                                  is not made again
#   RECORD=1                       also put the results beside the README, and write its tables
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/smollm2}
MODEL=$OUT/model
WORK=$OUT/superwords
HERE=recipes/smollm2
if [ ! -e "$DATA/tasks" ]; then
  echo "$DATA/tasks is not there: run  ../shared/data/unpack.sh $DATA  or set DATA" >&2
  exit 2
fi
[ -e "$MODEL" ] || PYTHON=$PYTHON OUT=$OUT $HERE/get.sh
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
mkdir -p "$WORK"

[ -e "$WORK/en.jsonl" ] || "$PYTHON" $HERE/superwords.py texts "$DATA/train/en.txt" -o "$WORK"
[ -e "$WORK/tokenizer" ] || vocabshift train --recipe on-top --base "$MODEL" --n-tokens 4000 \
  --stage2-pre-tokenizer ist-stage2 -o "$WORK/tokenizer" \
  --corpus en="$WORK/en.jsonl" questions="$WORK/questions.jsonl"
[ -e "$WORK/start" ] || vocabshift transfer "$MODEL" "$WORK/tokenizer" -o "$WORK/start"
[ -e "$WORK/model" ] || vocabshift cpt $HERE/superwords.toml model="$WORK/start" out="$WORK/model" \
  data="['en=$WORK/train.jsonl', 'questions=$WORK/questions.jsonl']" \
  held_out="['en=$DATA/eval/udhr/en.txt']"
"$PYTHON" $HERE/superwords.py borders "$WORK/model" --data "$DATA/tasks" \
  --text "$DATA/eval/sib200-flores/en.txt" -o "$OUT/results.jsonl"
if [ "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py $HERE --rows "$OUT/results.jsonl"
fi
