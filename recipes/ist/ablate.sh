#!/usr/bin/env bash
# What each ingredient of our IST tokenizer brings: all of them, then each left out, at one size
# and on one sample of the text. Prints mean fertility and what leaving the ingredient out costs.
#
#   recipes/ist/ablate.sh                                 32,000 tokens, 50 MB
#   VOCAB=64000 MB=200 OUT=runs/ablation-64k recipes/ist/ablate.sh
#   recipes/ist/ablate.sh --smoke                         our own sample texts
#
# Variables, with their defaults: DATA=../shared/data-unpacked OUT=runs/ist-ablation VOCAB=32000
# MB=50 (of all languages together; 0: all the text) SEED=1 WEIGHTS="en=4" THREADS=all
# PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/ist-ablation}
VOCAB=${VOCAB:-32000}
MB=${MB:-50}
SEED=${SEED:-1}
THREADS=${THREADS:+-j $THREADS}
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT"

if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  VOCAB=2000
  WEIGHTS=eng=4
else
  prepare_shared_text
  if [ "$MB" != 0 ]; then
    SAMPLE=$OUT/sample-$MB-$SEED
    if [ ! -d "$SAMPLE" ]; then
      "$PYTHON" recipes/data/sample.py "$TRAIN" "$SAMPLE.partial" --mb "$MB" --seed "$SEED"
      mv "$SAMPLE.partial" "$SAMPLE"
    fi
    TRAIN=$SAMPLE
  fi
fi
read -r -a WEIGHTS <<<"${WEIGHTS-en=4}"
lines_into PARALLEL specs "$EVAL/sib200-flores"
lines_into CODE code_specs
lines_into WEIGHTED specs "$TRAIN" ${WEIGHTS[@]+"${WEIGHTS[@]}"}
lines_into UNWEIGHTED specs "$TRAIN"

SUBJECTS=()
# run NAME [OPTION…]: the tokenizer of these options, trained on CORPUS unless it is there.
run() {
  local name=$1
  shift
  SUBJECTS+=("$OUT/$name")
  if [ ! -d "$OUT/$name" ]; then
    vocabshift train --config recipes/ist/ablate.toml --vocab-size "$VOCAB" "$@" \
      --corpus "${CORPUS[@]}" $THREADS -o "$OUT/$name" --json >"$OUT/$name.json"
  fi
}

JOINERS=(--pre-tokenizer indic --stage2-pre-tokenizer indic-stage2)
SAMPLED=(--sampling-alpha 0.7)
CORPUS=("${WEIGHTED[@]}")
run all "${JOINERS[@]}" "${SAMPLED[@]}" --normalizer nfc
run no-superwords "${JOINERS[@]}" "${SAMPLED[@]}" --normalizer nfc --transition 1
run no-normalizer "${JOINERS[@]}" "${SAMPLED[@]}"
run joiners-cut "${SAMPLED[@]}" --normalizer nfc
run no-sampling "${JOINERS[@]}" --normalizer nfc
CORPUS=("${UNWEIGHTED[@]}")
run no-weights "${JOINERS[@]}" "${SAMPLED[@]}" --normalizer nfc
run none-of-these --transition 1
CORPUS=("${WEIGHTED[@]}")
run grapheme-safe "${JOINERS[@]}" "${SAMPLED[@]}" --normalizer nfc --grapheme-safe

vocabshift evaluate "${SUBJECTS[@]}" --text "${PARALLEL[@]}" "${CODE[@]}" $THREADS \
  --metrics fertility bytes_per_token single_character_rate \
  --output "$OUT/results.jsonl" --force >/dev/null
"$PYTHON" recipes/ist/table.py "$OUT/results.jsonl" --against all | tee "$OUT/tables.md"
