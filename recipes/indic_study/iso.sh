#!/usr/bin/env bash
# The study's Table 14: languages clustered by the pieces that each learns alone, in its own script
# and transliterated to ISO 15919.
#
#   recipes/indic_study/iso.sh                       1 minute on one core
#   recipes/indic_study/iso.sh --smoke               our own sample texts
#
# Variables, with their defaults: DATA=../shared/data-unpacked OUT=runs/iso MB=1 (of each language)
# CLUSTERS="5 6 7 8" RECORD= (anything: the rows go into results.jsonl, the table into README.md)
# PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/iso}
MB=${MB:-1}
. recipes/data/corpus.sh
mkdir -p "$OUT"

if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  CLUSTERS=3
  LANGUAGE_SIZE=400
  LANGUAGES=(asm ben guj hin kan mal mar npi ory pan tam tel urd)
else
  prepare_shared_text
  LANGUAGES=(hi as bn kok gu kn mai ml mr ne or pa sa sd_Arab ta ur te)
fi
read -r -a CLUSTERS <<<"${CLUSTERS:-5 6 7 8}"
CORPUS=()
for name in "${LANGUAGES[@]}"; do CORPUS+=("$name=$TRAIN/$name.txt"); done
"$PYTHON" recipes/indic_study/clusters.py --corpus "${CORPUS[@]}" --max-roman-words 10 \
  --language-bytes "${MB}MB" --draw-seed 1 --clusters "${CLUSTERS[@]}" \
  --language-vocab-size "${LANGUAGE_SIZE:-8000}" --size "$MB MB of each language" \
  -o "$OUT/clusters.jsonl" ${RECORD:+--results recipes/indic_study/results.jsonl}
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/indic_study
fi
