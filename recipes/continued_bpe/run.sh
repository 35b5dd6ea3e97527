#!/usr/bin/env bash
# The tables of "Teaching Old Tokenizers New Words" at our size, and those that it left open: what
# continued BPE brings over the usual way (regen), what the repaired pre-tokenizer brings over both,
# what pruning costs, many languages at once, superwords on top. One command:
#
#   recipes/continued_bpe/run.sh                    text from ../shared/data-unpacked
#   DATA=/my/text OUT=runs/mine recipes/continued_bpe/run.sh
#   recipes/continued_bpe/run.sh --smoke            our own sample texts, a minute or two
#
# What OUT holds already is not made again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/LANG.txt, eval/…, tokenizers-hf/…, as its unpack.sh leaves it
#   OUT=runs/continued_bpe         curves/, prune/, languages/, tokenizers, and the tables: tables.md
#   ALPHA=0.3                      languages count in proportion to bytes ** ALPHA when learned at once
#   RECORD=                        anything: rows go into results.jsonl here, tables into README.md
#   THREADS=all PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
HERE=recipes/continued_bpe
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/continued_bpe}
ALPHA=${ALPHA:-0.3}
THREADS=${THREADS:+-j $THREADS}
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT"

# 1. Text, and the tokenizers to extend. Words of CUT are cut at vowel signs: these can be repaired.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  mkdir -p "$OUT/bases"
  for name in llama3 qwen2; do
    if [ ! -d "$OUT/bases/$name" ]; then
      vocabshift train --recipe bpe --pre-tokenizer "$name" --vocab-size 2000 $THREADS \
        --corpus eng="$TRAIN/eng.txt" deu="$TRAIN/deu.txt" hin="$TRAIN/hin.txt" \
        -o "$OUT/bases/$name" --json >/dev/null
    fi
  done
  FIRST=$OUT/bases/llama3
  CUT=("$FIRST" "$OUT/bases/qwen2")
  WHOLE=()
  SIZES=(--sizes 50 100 200)
  PRUNE_SIZES=(--prune-sizes 100 500)
  FOR_SIZES=(100) ADD=(--table8-sizes 100 200 --add 100) REST=()
  SIZE_OF_TEXT="our own sample texts"
  ENGLISH=eng ESTONIAN=est HINDI=hin OTHERS=(eng deu est rus code) FOR=(est hin)
  N_WORDS=800 N_SUPERWORDS=100
else
  prepare_shared_text
  FIRST=$DATA/tokenizers-hf/llama3
  CUT=("$FIRST" "$DATA/tokenizers-hf/qwen25")
  WHOLE=("$DATA/tokenizers-hf/mistral-nemo" "$DATA/tokenizers/llama2")
  SIZES=()
  PRUNE_SIZES=()
  FOR_SIZES=(16000 64000) ADD=()
  SIZE_OF_TEXT="2.5 to 18 MB of each language (ks_Arab 0.7)"
  ENGLISH=en ESTONIAN=et HINDI=hi OTHERS=(en de et code) FOR=(et hi)
  # The bases but the first learn bn, de, et, hi, ml, ta, te and ur.
  REST=(as en gu kn ks_Arab ks_Deva mai mni_Beng mni_Mtei mr ne or pa sa sat sd_Arab)
  N_WORDS=32000 N_SUPERWORDS=16000
fi
FLORES=$EVAL/sib200-flores
lines_into PARALLEL specs "$FLORES"
lines_into CODE code_specs
UNTOUCHED=("${CODE[@]}")
INDIAN=()
for spec in $(specs "$TRAIN"); do
  case " ${OTHERS[*]} " in
    *" ${spec%%=*} "*) UNTOUCHED+=("$spec") ;;
    *) INDIAN+=("$spec") ;;
  esac
done

# 2. What one language needs, with each tokenizer: with the first one all languages (Tables 1 to 3, 6, 7 and 13 to 18, Figure 4). Stops
# where an added token of ours is unreachable. Estonian in more ways (Figures 6, 7 and 9).
curves() {
  "$PYTHON" $HERE/curves.py "$@" --train "$TRAIN" --eval "$FLORES" \
    --english "$FLORES/$ENGLISH.txt" ${SIZES[@]+"${SIZES[@]}"} \
    -o "$OUT/curves" $THREADS
}
curves "$FIRST"
curves "${CUT[@]}" ${WHOLE[@]+"${WHOLE[@]}"} ${REST[@]+--leave-out "${REST[@]}"}
"$PYTHON" $HERE/estonian.py "$FIRST" --train "$TRAIN/$ESTONIAN.txt" \
  --eval "$FLORES/$ESTONIAN.txt" --english "$FLORES/$ENGLISH.txt" \
  ${SIZES[@]+"${SIZES[@]}"} -o "$OUT/estonian.json"

# 3. Pruning, and Tables 4, 8 and 9: as many tokens out as in. As much of the language as English
# decides what goes. Then Figures 12 and 13: pruning alone, for other languages too.
bytes_of() { wc -c <"$TRAIN/$1.txt"; }
# prune LANGUAGE FOLDER [OPTION…]
prune() {
  local language=$1 folder=$2 weight
  shift 2
  weight=$(awk "BEGIN { printf \"%.3f\", $(bytes_of $ENGLISH) / $(bytes_of $language) }")
  "$PYTHON" $HERE/prune_extend.py "$FIRST" \
    --mix "$language=$TRAIN/$language.txt@$weight" "$ENGLISH=$TRAIN/$ENGLISH.txt" \
    --eval "$language=$FLORES/$language.txt" "$ENGLISH=$FLORES/$ENGLISH.txt" \
    "$@" -o "$folder" $THREADS
}
prune $ESTONIAN "$OUT/prune" $HINDI="$FLORES/$HINDI.txt" \
  --extend-with "$ESTONIAN=$TRAIN/$ESTONIAN.txt" ${ADD[@]+"${ADD[@]}"} \
  ${SIZES[@]+"${SIZES[@]}"} ${PRUNE_SIZES[@]+"${PRUNE_SIZES[@]}"}
for language in "${FOR[@]}"; do
  prune $language "$OUT/languages/$language" --prune-sizes "${FOR_SIZES[@]}" \
    --orders leaf-id leaf-frequency merge last-n least-frequent
done

# 4. The repaired pre-tokenizer on Indian languages, and on text that it ought not to touch.
curves "${CUT[@]}" --pre-tokenizer repaired --leave-out "${OTHERS[@]}"
"$PYTHON" $HERE/unchanged.py "${CUT[@]}" --text "${UNTOUCHED[@]}" -o "$OUT/unchanged.json" $THREADS

# 5. All Indian languages at once; the same with superwords on top, and with as many more words.
extend() {
  local name=$1 n_tokens=$2
  shift 2
  if [ ! -d "$OUT/$name" ]; then
    vocabshift extend "$FIRST" --corpus "${INDIAN[@]}" --n-tokens $n_tokens --sampling-alpha "$ALPHA" \
      --pre-tokenizer repaired "$@" $THREADS -o "$OUT/$name" --json >"$OUT/$name.json"
  fi
}
extend multilingual $N_WORDS
extend multilingual-longer $((N_WORDS + N_SUPERWORDS))
extend superwords $N_WORDS --superwords $N_SUPERWORDS
TOGETHER=("$OUT/multilingual" "$OUT/multilingual-longer" "$OUT/superwords")
vocabshift check "${TOGETHER[@]}" --text "${PARALLEL[@]}" "${CODE[@]}"
vocabshift evaluate "$FIRST" "${TOGETHER[@]}" --text "${PARALLEL[@]}" "${CODE[@]}" \
  --metrics bytes_per_token --output "$OUT/results.jsonl" --force $THREADS >/dev/null

# 6. The rows of all tables.
"$PYTHON" $HERE/paper.py "$OUT" --size "$SIZE_OF_TEXT" --texts "${PARALLEL[@]}" \
  --tokenizers "${CUT[@]}" ${WHOLE[@]+"${WHOLE[@]}"} >"$OUT/tables.jsonl"
"$PYTHON" $HERE/tables.py "$OUT/tables.jsonl" | tee "$OUT/tables.md"
if [ -n "${RECORD:-}" ]; then
  cp "$OUT/tables.jsonl" $HERE/results.jsonl
  "$PYTHON" recipes/data/record.py $HERE
fi
