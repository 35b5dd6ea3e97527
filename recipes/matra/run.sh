#!/usr/bin/env bash
# Matra with 200,000 tokens, its five variants (Table 4, which the paper left empty), both readings
# of its weight formula, all beside IST: train, check, measure, and write the tables. One command:
#
#   recipes/matra/run.sh                            text from ../shared/data-unpacked
#   DATA=/my/text OUT=runs/mine recipes/matra/run.sh
#   recipes/matra/run.sh --smoke                    our own sample texts, under a minute
#
#   A no weighting   B no stage 2   C no constraint   D constraint only   E all of it
#
# A tokenizer that OUT holds already is not trained again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/LANG.txt, eval/…, tokenizers/…, as its unpack.sh leaves it
#   OUT=runs/matra                 tokenizers, results.jsonl, invariants.md, tables.md, vocabulary.md
#   WEIGHTS="en=4"                 counts these languages so many times; "" none
#   OPTIONS=""                     more options of `vocabshift train`, such as "--memory 8GB"
#   VENDORS="…"                    tokenizers to compare with: folders or files
#   BASE=…/Llama-4                 the tokenizer that normalized sequence lengths compare with
#   RECORD=                        anything: the tables go into README.md, the card to model_cards
#   THREADS=all PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/matra}
read -r -a OPTIONS <<<"${OPTIONS:-}"
THREADS=${THREADS:+-j $THREADS}
. recipes/data/corpus.sh
mkdir -p "$OUT"

# 1. Text.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  OPTIONS=(--vocab-size 3000)
  WEIGHTS=${WEIGHTS-eng=4}
  VENDORS=${VENDORS-}
  BASE=${BASE-$OUT/matra-B}
else
  prepare_shared_text
  VENDORS=${VENDORS-$(vendors)}
  BASE=${BASE-$OUT/vendors/Llama-4}
fi
read -r -a WEIGHTS <<<"${WEIGHTS-en=4}"
read -r -a VENDORS <<<"$VENDORS"
lines_into CORPUS specs "$TRAIN" ${WEIGHTS[@]+"${WEIGHTS[@]}"}
lines_into PARALLEL specs "$EVAL/sib200-flores"
lines_into CODE code_specs

# 2. The tokenizers. Variant E is Matra; "matra-smoothed" reads the printed weight formula as
# XLM-R's smoothing of a word's own count.
NAMES=()
# train NAME CONFIG [OPTION…]
train() {
  NAMES+=("$1")
  trained "$1" --config "$2" ${OPTIONS[@]+"${OPTIONS[@]}"} "${@:3}"
}
train matra recipes/matra/matra.toml --variant E
for variant in A B C D; do
  train "matra-$variant" recipes/matra/matra.toml --variant "$variant"
done
train matra-smoothed recipes/matra/matra.toml --variant E --word-weight smoothed
train ist recipes/ist/ist.toml

# 3. What it promises. Matra must keep all of it; the others stand beside it for scale.
vocabshift check "$OUT/matra" --text "${PARALLEL[@]}" "${CODE[@]}" --strict
"$PYTHON" recipes/ist/invariants.py "$OUT/matra" --eval "$EVAL"/*/*.* \
  --corpus "${CORPUS[@]}" $THREADS --strict --matra >"$OUT/invariants.md"
"$PYTHON" recipes/ist/invariants.py "${NAMES[@]/#/$OUT/}" $THREADS \
  >"$OUT/invariants-beside-others.md"

# 4. What it is worth, in the shapes of the paper's tables.
vocabshift evaluate "${NAMES[@]/#/$OUT/}" ${VENDORS[@]+"${VENDORS[@]}"} \
  --base "$BASE" --text "${PARALLEL[@]}" "${CODE[@]}" $THREADS --metrics "${METRICS[@]}" \
  --output "$OUT/results.jsonl" --force >/dev/null
PHASES=()
for name in "${NAMES[@]}"; do PHASES+=("$name=$OUT/$name.json"); done
write_tables subjects matra-2
"$PYTHON" recipes/matra/other_reading.py "${NAMES[@]/#/$OUT/}" ${VENDORS[@]+"${VENDORS[@]}"} \
  --text "${PARALLEL[@]}" >"$OUT/counts.jsonl"
"$PYTHON" recipes/ist/phases.py "${PHASES[@]}" >"$OUT/phases.md"
cat "$OUT/subjects.md" "$OUT/phases.md" >"$OUT/tables.md"
REBUILD="# as recipes/matra/run.sh does
vocabshift train --config recipes/matra/matra.toml --variant E --corpus ${CORPUS[*]} -o $OUT/matra"
write_card matra matra-200k
"$PYTHON" recipes/ist/vocabulary.py "$OUT/matra" --corpus "${CORPUS[@]}" $THREADS >"$OUT/vocabulary.md"
cat "$OUT/invariants.md" "$OUT/invariants-beside-others.md" "$OUT/tables.md" "$OUT/vocabulary.md"
if [ -n "${RECORD:-}" ]; then
  record matra matra-200k recipes/matra/README.md matra-2.md
  cp "$OUT/counts.jsonl" model_cards/matra-200k/
  "$PYTHON" recipes/data/record.py recipes/matra
fi
