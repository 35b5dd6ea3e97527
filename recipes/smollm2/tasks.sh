#!/usr/bin/env bash
# lm-eval's offline tasks on SmolLM2, and on what was made of it: 52 tasks and languages, the first 200
# questions of each (50 where the model writes its answer), no examples. One command:
#
#   recipes/smollm2/tasks.sh                                   SmolLM2 itself, "before"
#   NAME=after MODEL=my/model recipes/smollm2/tasks.sh         any model folder
#
# The cheapest tasks run first; the same command resumes after the last one that ended. Variables, with
# their defaults:
#   DATA=../shared/data-unpacked   tasks/, as its unpack.sh leaves it
#   OUT=runs/smollm2               what get.sh writes, and results.jsonl, as of run.sh
#   MODEL=OUT/model NAME=before    a model folder, and what the table calls it
#   MINUTES=60                     of CPU; no task is begun after them
#   DTYPE=float32                  that the model computes in; "bfloat16" is faster, where the CPU has it
#   TASKS=                         only these: "sib200:hi mmlu_indic:hi"; default: all
#   RECORD=1                       also put the results beside the README, and write its tables
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/smollm2}
MODEL=${MODEL:-$OUT/model}
read -r -a TASKS <<<"${TASKS:-}"
HERE=recipes/smollm2
if [ ! -e "$DATA/tasks" ]; then
  echo "$DATA/tasks is not there: run  ../shared/data/unpack.sh $DATA  or set DATA" >&2
  exit 2
fi
[ -e "$MODEL" ] || PYTHON=$PYTHON OUT=$OUT $HERE/get.sh
mkdir -p "$OUT"
"$PYTHON" $HERE/tasks.py "$MODEL" --name "${NAME:-before}" --data "$DATA/tasks" \
  --minutes "${MINUTES:-60}" --dtype "${DTYPE:-float32}" ${TASKS[@]+--tasks "${TASKS[@]}"} -o "$OUT/results.jsonl"
if [ "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py $HERE --rows "$OUT/results.jsonl"
fi
