#!/usr/bin/env bash
# Recipe vocabshift beside Parity-aware BPE (recipe parity, its variants, with and without superwords),
# plain BPE and IST: fertility and the Gini coefficient on parallel text, at several sizes.
#
#   recipes/vocabshift/parity.sh                    text from ../shared/data-unpacked
#   recipes/vocabshift/parity.sh --smoke            our own sample texts, in seconds
#
# Every second sentence of FLORES is the parallel text of `parity`; the others are evaluated, and the
# Declaration of Human Rights, which no recipe has seen. A tokenizer that OUT holds already is not trained
# again. Variables, with their defaults: DATA=../shared/data-unpacked OUT=runs/parity
# SIZES="32000 64000 200000" MB=3 (of each language) RECORD= (anything: the table goes into README.md)
# THREADS=all PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/parity}
SIZES=${SIZES:-32000 64000 200000}
MB=${MB:-3}
THREADS=${THREADS:+-j $THREADS}
. recipes/data/corpus.sh
mkdir -p "$OUT/dev" "$OUT/flores" "$OUT/udhr"

# 1. Text, of the languages that FLORES has: without parallel text `parity` cannot serve a language.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  SIZES=1500
  cut_to_same_length
  mkdir -p "$EVAL/udhr"
  cp "$EVAL"/sib200-flores/*.txt "$EVAL/udhr/"
else
  prepare_shared_text
fi
CORPUS=()
for file in "$EVAL"/sib200-flores/*.txt; do
  name=$(basename "$file")
  CORPUS+=("${name%.txt}=$TRAIN/$name")
  awk 'NR % 2 == 0' "$file" >"$OUT/dev/$name"
  awk 'NR % 2 == 1' "$file" >"$OUT/flores/$name"
done
# The Declaration is parallel as a whole, not line by line.
for file in "$EVAL"/udhr/*.txt; do
  { tr '\n' ' ' <"$file" && echo; } >"$OUT/udhr/$(basename "$file")"
done
lines_into DEV specs "$OUT/dev"

# 2. The tokenizers of each size, all with the same patterns; then the rows of what they need.
SUPERWORDS=(--transition 0.9 --stage2-pre-tokenizer indic-stage2)
FOUND=$OUT/results.jsonl
rm -f "$FOUND"
for size in $SIZES; do
  ROWS=()
  # learn "ROW OF THE TABLE" RECIPE OPTION…
  learn() {
    local name=${1//[, ]/-}-$size
    trained "$name" --recipe "$2" --pre-tokenizer indic --vocab-size "$size" \
      --language-bytes "${MB}MB" --draw-seed 1 "${@:3}"
    ROWS+=("$1=$name")
  }
  learn "bpe" bpe
  learn "parity" parity
  learn "parity, parallel text" parity --parallel "${DEV[@]}"
  learn "parity, parallel text, hybrid" parity --parallel "${DEV[@]}" --global-merges $((size / 2))
  learn "parity, parallel text, window" parity --parallel "${DEV[@]}" --window-size 100
  learn "vocabshift, no superwords" vocabshift --transition 1
  learn "ist" ist --stage2-pre-tokenizer indic-stage2
  learn "parity, superwords" parity "${SUPERWORDS[@]}"
  learn "parity, parallel text, superwords" parity --parallel "${DEV[@]}" "${SUPERWORDS[@]}"
  learn "parity, parallel text, window, superwords" parity --parallel "${DEV[@]}" --window-size 100 \
    "${SUPERWORDS[@]}"
  learn "vocabshift" vocabshift
  for text in flores udhr; do
    lines_into PARALLEL specs "$OUT/$text"
    vocabshift evaluate "${ROWS[@]/#*=/$OUT/}" --text "${PARALLEL[@]}" --parallel $THREADS \
      --metrics fertility tokens_per_line --output "$OUT/$text-$size.jsonl" --force >/dev/null
    for metric in fertility tokens_per_line; do
      "$PYTHON" recipes/data/rows.py "$OUT/$text-$size.jsonl" -o "$FOUND" --metric "$metric" \
        --table "$metric, $text, $size" "${ROWS[@]}" \
        --command recipes/vocabshift/parity.sh --size "$MB MB of each language"
    done
  done
done
if [ -n "${RECORD:-}" ]; then
  cp "$FOUND" recipes/vocabshift/results.jsonl
  "$PYTHON" recipes/data/record.py recipes/vocabshift
fi
