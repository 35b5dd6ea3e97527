#!/usr/bin/env bash
# Recipe vocabshift with 200,000 tokens on Indian languages, English, German, Estonian and code: train
# it and IST on the same text, check what it promises, measure, and write its card. One command:
#
#   recipes/vocabshift/run.sh                       text from ../shared/data-unpacked
#   DATA=/my/text OUT=runs/mine recipes/vocabshift/run.sh
#   recipes/vocabshift/run.sh --smoke               our own sample texts, under a minute
#
# A tokenizer that OUT holds already is not trained again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/LANG.txt, eval/…, tokenizers/…, as its unpack.sh leaves it
#   OUT=runs/vocabshift            tokenizers, results.jsonl, invariants.md, ist-22.md, the card
#   OPTIONS=""                     more options of `vocabshift train`, such as "--memory 8GB"
#   VENDORS="…"                    tokenizers to compare with: folders or files
#   BASE=…/Llama-4                 the tokenizer that normalized sequence lengths compare with
#   RECORD=                        anything: the table goes into README.md, the card to model_cards
#   THREADS=all PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/vocabshift}
THREADS=${THREADS:+-j $THREADS}
read -r -a OPTIONS <<<"${OPTIONS:-}"
. recipes/data/corpus.sh
mkdir -p "$OUT"

# 1. Text.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  OPTIONS=(--vocab-size 3000)
  VENDORS=${VENDORS-}
  BASE=${BASE-$OUT/ist}
  cut_to_same_length
else
  prepare_shared_text
  VENDORS=${VENDORS-$(vendors)}
  BASE=${BASE-$OUT/vendors/Llama-4}
  LIMITS+=("The defaults of this recipe were chosen at 64,000 tokens by looking at FLORES, so these \
sentences are not unseen text for it. On the Declaration of Human Rights it has a lower Gini coefficient \
than IST and a higher mean fertility (recipes/indic_study).")
fi
read -r -a VENDORS <<<"$VENDORS"
lines_into CORPUS specs "$TRAIN"
lines_into PARALLEL specs "$EVAL/sib200-flores"
lines_into CODE code_specs

# 2. The tokenizers, from one text without weights: this recipe's, and IST's with its own sampling.
for name in vocabshift ist; do
  trained "$name" --config "recipes/$name/$name.toml" ${OPTIONS[@]+"${OPTIONS[@]}"}
done

# 3. What it promises; a broken promise stops the run.
vocabshift check "$OUT/vocabshift" --text "${PARALLEL[@]}" "${CODE[@]}" --strict
"$PYTHON" recipes/ist/invariants.py "$OUT/vocabshift" --eval "$EVAL"/*/*.* $THREADS --strict \
  >"$OUT/invariants.md"

# 4. What it is worth. Program text has other lines than the parallel sentences, so it is measured
# apart from the spread over languages.
SUBJECTS=("$OUT/vocabshift" "$OUT/ist" ${VENDORS[@]+"${VENDORS[@]}"})
vocabshift evaluate "${SUBJECTS[@]}" --base "$BASE" --text "${PARALLEL[@]}" --parallel $THREADS \
  --metrics "${METRICS[@]}" gini coefficient_of_variation --output "$OUT/parallel.jsonl" --force \
  >/dev/null
vocabshift evaluate "${SUBJECTS[@]}" --base "$BASE" --text "${CODE[@]}" $THREADS \
  --metrics "${METRICS[@]}" --output "$OUT/code.jsonl" --force >/dev/null
cat "$OUT/parallel.jsonl" "$OUT/code.jsonl" >"$OUT/results.jsonl"
write_tables ist-22
REBUILD="# as recipes/vocabshift/run.sh does
vocabshift train --config recipes/vocabshift/vocabshift.toml --corpus ${CORPUS[*]} -o $OUT/vocabshift"
write_card vocabshift vocabshift-200k
cat "$OUT/invariants.md" "$OUT/ist-22.md"
if [ -n "${RECORD:-}" ]; then
  record vocabshift vocabshift-200k recipes/vocabshift/README.md ist-22.md
fi
