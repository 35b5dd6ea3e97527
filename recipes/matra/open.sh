#!/usr/bin/env bash
# What Matra's paper left to be measured (its sections 5.4 to 6.3) and Table 4 with intervals, at a size
# that a laptop trains in minutes. One command:
#
#   RECORD=1 recipes/matra/open.sh                        64,000 tokens, 100 MB
#   recipes/matra/open.sh --smoke                         our own sample texts
#
# A tokenizer that OUT holds already is not trained again. Variables, with their defaults:
#   DATA=../shared/data-unpacked OUT=runs/matra-open VOCAB=64000 SEED=1 WEIGHTS="en=4" THREADS=all
#   MB=100            of all languages together; 0: all the text
#   SIZES="32000 96000 128000 160000 200000"   tokens of the curve, beside VOCAB itself
#   VENDORS="…"       tokenizers to compare with: folders or files
#   SPEED_MB=0.2      text of each language whose encoding is timed; 0: none
#   RECORD=           anything: the rows go into results.jsonl here, and the tables into README.md
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/matra-open}
VOCAB=${VOCAB:-64000}
MB=${MB:-100}
SEED=${SEED:-1}
SIZES=${SIZES:-32000 96000 128000 160000 200000}
THREADS=${THREADS:+-j $THREADS}
. recipes/data/corpus.sh
mkdir -p "$OUT"

if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  VOCAB=2000 MB=0 SIZES="1500 2500" WEIGHTS=eng=4 SPEED_MB=0.01
  VENDORS=${VENDORS-}
  PAIRS=() # the sample texts are not parallel
  SWITCHED=()
else
  prepare_shared_text
  VENDORS=${VENDORS-$(vendors)}
  PAIRS=(--code-switch hi+en ta+en)
  SWITCHED=("$EVAL/sib200-flores/"{hi,ta,en}.txt)
  TRAIN=$(sampled "$MB")
fi
read -r -a WEIGHTS <<<"${WEIGHTS-en=4}"
read -r -a VENDORS <<<"$VENDORS"
THEIRS=() # rows of a table
TIMED=()  # of the vendors, those that tiktoken or SentencePiece read
for path in ${VENDORS[@]+"${VENDORS[@]}"}; do
  THEIRS+=("$(basename "$path")=$(basename "$path")")
  case $(basename "$path") in o200k | Llama-2 | Llama-3 | Llama-4) TIMED+=("$path") ;; esac
done
lines_into CORPUS specs "$TRAIN" ${WEIGHTS[@]+"${WEIGHTS[@]}"}
lines_into PARALLEL specs "$EVAL/sib200-flores"

NAMES=()
# run NAME [OPTION…]: Matra with these options.
run() {
  NAMES+=("$1")
  trained "$1" --recipe matra --sampling-alpha 0.7 --vocab-size "$VOCAB" "${@:2}"
}

# 1. The variants (Table 4) and the sizes (section 5.5).
VARIANTS=()
for variant in A B C D E; do
  run "$variant" --variant "$variant"
  VARIANTS+=("$variant=$variant")
done
CURVE=("$VOCAB=E")
for size in $SIZES; do
  run "size-$size" --vocab-size "$size"
  CURVE+=("$size=size-$size")
done

# 2. The control without blended sentences (section 6.3): as E, but all sentences count alike.
if [ ! -d "$OUT/not-blended" ]; then
  "$PYTHON" recipes/matra/open.py not-blended "$OUT/not-blended" --vocab-size "$VOCAB" \
    --corpus "${CORPUS[@]}"
fi
NAMES+=(not-blended)

# 3. Fertility by language and on code-switched lines, made by rule and our own (mixed/); of rare words
# (section 6.2); spanning tokens (section 6.1); speed (section 5.6).
vocabshift evaluate "${NAMES[@]/#/$OUT/}" --text "${PARALLEL[@]}" ${PAIRS[@]+"${PAIRS[@]}"} \
  --metrics fertility --output "$OUT/measured.jsonl" --force $THREADS >/dev/null
lines_into MIXED specs recipes/matra/mixed
for file in ${SWITCHED[@]+"${SWITCHED[@]}"}; do MIXED+=("$(basename "${file%.txt}")=$file"); done
vocabshift evaluate "$OUT/not-blended" "$OUT/E" "$OUT/A" ${VENDORS[@]+"${VENDORS[@]}"} \
  --text "${MIXED[@]}" ${PAIRS[@]+"${PAIRS[@]}"} --metrics fertility --output "$OUT/mixed.jsonl" \
  --force $THREADS >/dev/null
vocabshift evaluate "$OUT/E" "$OUT/A" ${VENDORS[@]+"${VENDORS[@]}"} --text "${PARALLEL[@]}" \
  --frequencies "${CORPUS[@]}" --metrics fertility_bin_1_10 fertility_bin_11_100 \
  fertility_bin_101_1000 fertility_bin_1001_10000 fertility_bin_10001_up fertility_bin_unseen \
  --output "$OUT/bins.jsonl" --force $THREADS >/dev/null
rm -f "$OUT/results.jsonl"
"$PYTHON" recipes/data/rows.py "$OUT/measured.jsonl" -o "$OUT/results.jsonl" \
  --table matra-4 "${VARIANTS[@]}" \
  --table matra-section-5.5 "${CURVE[@]}" \
  --table matra-section-6.3 "not blended=not-blended" "blended=E" "no weights=A" \
  --trained "$OUT" --command recipes/matra/open.sh --size "$VOCAB tokens and ${MB/#0/all} MB where the table says no other"
"$PYTHON" recipes/data/rows.py "$OUT/mixed.jsonl" -o "$OUT/results.jsonl" --table code-switching \
  "not blended=not-blended" "blended=E" "no weights=A" ${THEIRS[@]+"${THEIRS[@]}"} \
  --command recipes/matra/open.sh --size "$VOCAB tokens and ${MB/#0/all} MB for ours"
{
  "$PYTHON" recipes/matra/open.py bins "$OUT/bins.jsonl"
  "$PYTHON" recipes/matra/open.py spanning "$OUT/E" "$OUT/C" ${VENDORS[@]+"${VENDORS[@]}"}
  if [ "${SPEED_MB:=0.2}" != 0 ]; then
    "$PYTHON" recipes/matra/open.py speed "$OUT/E" ${TIMED[@]+"${TIMED[@]}"} \
      --corpus "${CORPUS[@]}" --mb "$SPEED_MB"
  fi
} >>"$OUT/results.jsonl"
if [ -n "${RECORD:-}" ]; then
  cp "$OUT/results.jsonl" recipes/matra/results.jsonl
  "$PYTHON" recipes/data/record.py recipes/matra
fi
