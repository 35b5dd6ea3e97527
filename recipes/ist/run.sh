#!/usr/bin/env bash
# IST with 200,000 tokens on Indian languages, English, German, Estonian and code: train it and
# what it is compared with, check every invariant, measure, and write the tables. One command:
#
#   recipes/ist/run.sh                              text from ../shared/data-unpacked
#   DATA=/my/text OUT=runs/mine recipes/ist/run.sh
#   recipes/ist/run.sh --smoke                      our own sample texts, under a minute
#
# A tokenizer that OUT holds already is not trained again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/LANG.txt, eval/…, tokenizers/…, as its unpack.sh leaves it
#   OUT=runs/ist                   tokenizers, results.jsonl, invariants.md, tables.md, vocabulary.md
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
OUT=${OUT:-runs/ist}
THREADS=${THREADS:+-j $THREADS}
read -r -a OPTIONS <<<"${OPTIONS:-}"
. recipes/data/corpus.sh
mkdir -p "$OUT"

# 1. Text. Small languages are heard through `sampling_alpha` in the TOML files.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  OPTIONS=(--vocab-size 3000)
  WEIGHTS=${WEIGHTS-eng=4}
  VENDORS=${VENDORS-}
  BASE=${BASE-$OUT/bpe}
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

# 2. The tokenizers: IST, the same without its sentence rule, the same without superwords.
for name in ist superbpe bpe; do
  trained "$name" --config "recipes/ist/$name.toml" ${OPTIONS[@]+"${OPTIONS[@]}"}
done

# 3. What it promises. IST must keep all of it; the other two stand beside it for scale.
vocabshift check "$OUT/ist" --text "${PARALLEL[@]}" "${CODE[@]}" --strict
"$PYTHON" recipes/ist/invariants.py "$OUT/ist" --eval "$EVAL"/*/*.* \
  --corpus "${CORPUS[@]}" $THREADS --strict >"$OUT/invariants.md"
"$PYTHON" recipes/ist/invariants.py "$OUT/ist" "$OUT/superbpe" "$OUT/bpe" \
  $THREADS --rows "$OUT/counts.jsonl" >"$OUT/invariants-beside-others.md"

# 4. What it is worth, in the shapes of the paper's tables.
vocabshift evaluate "$OUT/ist" "$OUT/superbpe" "$OUT/bpe" ${VENDORS[@]+"${VENDORS[@]}"} \
  --base "$BASE" --text "${PARALLEL[@]}" "${CODE[@]}" $THREADS --metrics "${METRICS[@]}" \
  --output "$OUT/results.jsonl" --force >/dev/null
write_tables subjects ist-22
"$PYTHON" recipes/ist/phases.py \
  "ist=$OUT/ist.json" "superbpe=$OUT/superbpe.json" "bpe=$OUT/bpe.json" >"$OUT/phases.md"
cat "$OUT/subjects.md" "$OUT/phases.md" >"$OUT/tables.md"
REBUILD="# as recipes/ist/run.sh does
vocabshift train --config recipes/ist/ist.toml --corpus ${CORPUS[*]} -o $OUT/ist"
write_card ist ist-200k
"$PYTHON" recipes/ist/vocabulary.py "$OUT/ist" --corpus "${CORPUS[@]}" $THREADS >"$OUT/vocabulary.md"
cat "$OUT/invariants.md" "$OUT/invariants-beside-others.md" "$OUT/tables.md" "$OUT/vocabulary.md"
if [ -n "${RECORD:-}" ]; then
  record ist ist-200k recipes/ist/README.md ist-22.md
  cp "$OUT/counts.jsonl" model_cards/ist-200k/
  "$PYTHON" recipes/data/record.py recipes/ist
fi
