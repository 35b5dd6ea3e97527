#!/usr/bin/env bash
# The Indic study at our size: what normalization, the algorithm, the vocabulary's size, clusters of
# languages, PickyBPE and OBPE change, in the shapes of the paper's tables. One command:
#
#   recipes/indic_study/run.sh                               text from ../shared/data-unpacked
#   SIZES="32000 64000" MB=1 recipes/indic_study/run.sh      smaller
#   recipes/indic_study/run.sh --smoke                       our own sample texts, under a minute
#
# A tokenizer that OUT holds already is not trained again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/LANG.txt, eval/…, tasks/…, as its unpack.sh leaves it
#   OUT=runs/indic-study           tokenizers, results, tables.jsonl
#   MB=2                           of each language (0.6 to 2 for those that have less)
#   ROMAN_WORDS=10                 lines of more words in Roman script are left out
#   SIZES="32000 64000 128000 256000"   of the joint vocabularies
#   ONE=128000                     the size of clusters and PickyBPE, one of SIZES
#   CLUSTERS="5 6 7 8"             numbers of clusters for k-means, beside language families
#   LANGUAGE_SIZE=8000             of one language alone, which k-means compares
#   RECORD=                        anything: the tables go into README.md
#   THREADS=all PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/indic-study}
MB=${MB:-2}
ROMAN_WORDS=${ROMAN_WORDS:-10}
THREADS=${THREADS:+-j $THREADS}
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT"

# 1. Text: the paper's 17 languages, and those of them that have parallel text.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  MB=1
  SIZES="2400 3000"
  ONE=3000
  CLUSTERS=2
  LANGUAGE_SIZE=400
  LANGUAGES=(asm ben guj hin kan mal mar npi ory pan tam tel urd)
  DEVANAGARI=(hin mar npi)
  DEVANAGARI_SIZE=1000
  HIGH=(hin)
  MORPHEMES=()
  # As many lines of each, as in parallel text, which these are not: spreads mean nothing here.
  for name in "${LANGUAGES[@]}"; do
    "$PYTHON" - "$EVAL/sib200-flores/$name.txt" <<'PY'
import sys
from pathlib import Path

file = Path(sys.argv[1])
lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
file.write_text("".join(lines[:4]), encoding="utf-8", newline="\n")
PY
  done
else
  prepare_shared_text
  LANGUAGES=(hi as bn kok gu kn mai ml mr ne or pa sa sd_Arab ta ur te)
  DEVANAGARI=(hi kok mai mr ne sa)
  DEVANAGARI_SIZE=64000
  HIGH=(hi mr ne)
  MORPHEMES=("gu=$DATA/tasks/morphscore/gujarati_morph_data.csv"
    "ta=$DATA/tasks/morphscore/tamil_morph_data.csv"
    "ur=$DATA/tasks/morphscore/urdu_morph_data.csv")
fi
read -r -a SIZES <<<"${SIZES:-32000 64000 128000 256000}"
read -r -a CLUSTERS <<<"${CLUSTERS:-5 6 7 8}"
ONE=${ONE:-128000}
LANGUAGE_SIZE=${LANGUAGE_SIZE:-8000}
# files FOLDER LANGUAGE…: "hi=FOLDER/hi.txt" of those that are there.
files() {
  local folder=$1 name
  shift
  for name in "$@"; do
    if [ -s "$folder/$name.txt" ]; then printf '%s\n' "$name=$folder/$name.txt"; fi
  done
}
lines_into CORPUS files "$TRAIN" "${LANGUAGES[@]}"
lines_into CORPUS_DEVANAGARI files "$TRAIN" "${DEVANAGARI[@]}"
lines_into PARALLEL files "$EVAL/sib200-flores" "${LANGUAGES[@]}"
lines_into PARALLEL_DEVANAGARI files "$EVAL/sib200-flores" "${DEVANAGARI[@]}"

# 2. The tokenizers. All learn from the same lines, and hear small languages through the same
# temperature.
SUBJECTS=()
# learn NAME OPTION…: one tokenizer, trained unless it is there.
learn() {
  local name=$1
  shift
  SUBJECTS+=("$OUT/$name")
  if [ ! -d "$OUT/$name" ]; then
    vocabshift train "$@" --max-roman-words "$ROMAN_WORDS" --language-bytes "${MB}MB" \
      --draw-seed 1 --sampling-alpha 0.3 $THREADS -o "$OUT/$name" --json >"$OUT/$name.json"
  fi
}
for size in "${SIZES[@]}"; do
  for recipe in bpe unigram; do
    learn "$recipe-$size" --recipe "$recipe" --vocab-size "$size" --corpus "${CORPUS[@]}"
    learn "$recipe-$size-n" --recipe "$recipe" --vocab-size "$size" --corpus "${CORPUS[@]}" \
      --normalizer fifth-case
  done
done
learn "picky-$ONE-n" --recipe picky --vocab-size "$ONE" --corpus "${CORPUS[@]}" \
  --normalizer fifth-case
CLUSTER=(--recipe cluster --vocab-size "$ONE" --corpus "${CORPUS[@]}" --normalizer fifth-case
  --language-vocab-size "$LANGUAGE_SIZE")
for k in "${CLUSTERS[@]}"; do
  learn "cluster-$k" "${CLUSTER[@]}" --cluster-by kmeans --n-clusters "$k"
done
learn cluster-family "${CLUSTER[@]}" --cluster-by family
ALL=("${SUBJECTS[@]}")
SUBJECTS=()
learn bpe-devanagari --recipe bpe --vocab-size "$DEVANAGARI_SIZE" --normalizer fifth-case \
  --corpus "${CORPUS_DEVANAGARI[@]}"
learn overlap-devanagari --recipe overlap --vocab-size "$DEVANAGARI_SIZE" --normalizer fifth-case \
  --corpus "${CORPUS_DEVANAGARI[@]}" --high-resource "${HIGH[@]}"

# 3. Measured, and the tables.
vocabshift normalize "${PARALLEL[@]}" --normalizer fifth-case --json >"$OUT/normalized.json"
vocabshift evaluate "${ALL[@]}" --text "${PARALLEL[@]}" --parallel $THREADS --metrics fertility \
  characters_per_token word_fragmentation_rate gini coefficient_of_variation pairwise_overlap \
  --output "$OUT/results.jsonl" --force >/dev/null
vocabshift evaluate "${SUBJECTS[@]}" --text "${PARALLEL_DEVANAGARI[@]}" $THREADS \
  --metrics fertility --output "$OUT/devanagari.jsonl" --force >/dev/null
if [ ${#MORPHEMES[@]} != 0 ]; then
  vocabshift evaluate "${ALL[@]}" --morphemes "${MORPHEMES[@]}" --leading-space $THREADS \
    --output "$OUT/morphemes.jsonl" --force >/dev/null
else
  rm -f "$OUT/morphemes.jsonl"
fi
"$PYTHON" recipes/indic_study/tables.py "$OUT" --sizes "${SIZES[@]}" --one "$ONE" \
  --clusters "${CLUSTERS[@]}" --size "$MB MB of each language" \
  ${RECORD:+--results recipes/indic_study/results.jsonl}
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/indic_study
fi
