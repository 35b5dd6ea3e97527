#!/usr/bin/env bash
# Recipe vocabshift beside IST and Matra, without each of its parts, and in other ways: mean fertility
# and the spread of token totals over languages of parallel text, at one size and on one sample; then
# on the Declaration of Human Rights, which influenced no choice.
#
#   recipes/indic_study/front.sh                                     64,000 tokens, 100 MB
#   VOCAB=200000 MB=0 OUT=runs/front-200k recipes/indic_study/front.sh
#   recipes/indic_study/front.sh --smoke                             our own sample texts
#
# Variables, with their defaults: DATA=../shared/data-unpacked OUT=runs/front VOCAB=64000 MB=100 (of
# all languages together; 0: all the text) SEED=1 PARTS=all (nothing: only the three recipes)
# RECORD= (anything: the table goes into README.md) THREADS=all PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/front}
VOCAB=${VOCAB:-64000}
MB=${MB:-100}
SEED=${SEED:-1}
PARTS=${PARTS-all}
THREADS=${THREADS:+-j $THREADS}
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT"

if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  VOCAB=2000
  ENGLISH=eng
  EUROPEAN=(eng deu est)
  cut_to_same_length
else
  prepare_shared_text
  ENGLISH=en
  EUROPEAN=(en de et)
  TRAIN=$(sampled "$MB")
fi
lines_into PARALLEL specs "$EVAL/sib200-flores"
lines_into CORPUS specs "$TRAIN"
lines_into WEIGHTED specs "$TRAIN" "$ENGLISH=4"

SUBJECTS=()
# learn NAME OPTION…: the tokenizer of these options, trained on CORPUS unless it is there.
learn() {
  local name=$1
  shift
  SUBJECTS+=("$OUT/$name")
  if [ ! -d "$OUT/$name" ]; then
    vocabshift train --vocab-size "$VOCAB" "$@" --corpus "${CORPUS[@]}" $THREADS -o "$OUT/$name" \
      --json >"$OUT/$name.json"
  fi
}
UNWEIGHTED=("${CORPUS[@]}")
CORPUS=("${WEIGHTED[@]}")
learn ist-english-4 --recipe ist --sampling-alpha 0.7
learn matra-english-4 --recipe matra --sampling-alpha 0.7
CORPUS=("${UNWEIGHTED[@]}")
learn ist --recipe ist --sampling-alpha 0.7
learn matra --recipe matra --sampling-alpha 0.7
learn vocabshift --recipe vocabshift
learn vocabshift-nfc --recipe vocabshift --normalizer nfc
if [ -n "$PARTS" ]; then
  learn nfc-balance-0 --recipe vocabshift --normalizer nfc --balance 0
  learn nfc-balance-3 --recipe vocabshift --normalizer nfc --balance 3
  learn nfc-joiners-cut --recipe vocabshift --normalizer nfc --pre-tokenizer o200k \
    --stage2-pre-tokenizer ist-stage2
  learn nfc-no-superwords --recipe vocabshift --normalizer nfc --transition 1
  learn nfc-transition-0.8 --recipe vocabshift --normalizer nfc --transition 0.8
  # Two stages as in IST, cut by the patterns of vocabshift: what do equal characters add?
  PATTERNS=(--recipe ist --pre-tokenizer indic --stage2-pre-tokenizer indic-stage2)
  learn nfc-ist-patterns "${PATTERNS[@]}" --normalizer nfc --sampling-alpha 0.7
  # Other ways, for the Declaration.
  learn balance-1 --recipe vocabshift --balance 1
  for weight in 2 3; do
    lines_into CORPUS specs "$TRAIN" "${EUROPEAN[@]/%/=$weight}"
    learn "european-$weight" --recipe vocabshift
  done
  CORPUS=("${UNWEIGHTED[@]}")
  learn ist-patterns-0.5 "${PATTERNS[@]}" --sampling-alpha 0.5
  learn ist-patterns-0.3 "${PATTERNS[@]}" --sampling-alpha 0.3
fi

vocabshift check "$OUT/vocabshift" --text "${PARALLEL[@]}" --strict >/dev/null
SIZE="$VOCAB tokens, $MB MB"
if [ "$MB" = 0 ]; then SIZE="$VOCAB tokens, all the text"; fi
COMMAND=recipes/indic_study/front.sh
if [ "$VOCAB" != 64000 ]; then
  COMMAND="VOCAB=$VOCAB MB=$MB PARTS=$PARTS OUT=runs/$(basename "$OUT") $COMMAND"
fi
measure() { # a file of results, SPECs
  vocabshift evaluate "${SUBJECTS[@]}" --text "${@:2}" $THREADS --metrics fertility tokens_per_line \
    --output "$1" --force >/dev/null
}
rows() { # a file of results, the table's name, labels
  "$PYTHON" recipes/indic_study/front.py "$1" --table "$2" --labels "${@:3}" --size "$SIZE" \
    --command "$COMMAND" -o "$OUT/$2.jsonl" ${RECORD:+--results recipes/indic_study/results.jsonl}
}
measure "$OUT/results.jsonl" "${PARALLEL[@]}" --parallel
rows "$OUT/results.jsonl" "front-$VOCAB"
if [ -d "$EVAL/udhr" ]; then # our own sample texts have none
  lines_into DECLARATION specs "$EVAL/udhr"
  measure "$OUT/declaration.jsonl" "${DECLARATION[@]}"
  rows "$OUT/declaration.jsonl" "front-$VOCAB-declaration"
  rows "$OUT/results.jsonl" "front-$VOCAB-same" "${DECLARATION[@]%%=*}" # the languages of that text
fi
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/indic_study
fi
