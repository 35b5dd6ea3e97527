#!/usr/bin/env bash
# The tables of "Teaching Old Tokenizers New Words" at our size, and those that it left open: what
# continued BPE brings over the usual way (regen), what the repaired pre-tokenizer brings over both,
# what pruning costs, many languages at once, superwords on top. One command:
#
#   recipes/continued_bpe/run.sh                    text from ../shared/data-unpacked
#   DATA=/my/text OUT=runs/mine recipes/continued_bpe/run.sh
#   recipes/continued_bpe/run.sh --smoke            our own sample texts, under a minute
#
# What OUT holds already is not made again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/LANG.txt, eval/…, tokenizers-hf/…, as its unpack.sh leaves it
#   OUT=runs/continued_bpe         curves/, prune/, tokenizers, and the tables: *.md
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
  ENGLISH=eng ESTONIAN=est HINDI=hin OTHERS=(eng deu est rus code)
  N_WORDS=800 N_SUPERWORDS=100
else
  prepare_shared_text
  FIRST=$DATA/tokenizers-hf/llama3
  CUT=("$FIRST" "$DATA/tokenizers-hf/qwen25")
  WHOLE=("$DATA/tokenizers-hf/mistral-nemo" "$DATA/tokenizers-hf/mistral7b-v1")
  SIZES=()
  PRUNE_SIZES=()
  ENGLISH=en ESTONIAN=et HINDI=hi OTHERS=(en de et code)
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

# 2. Tables 1 and 3 of the paper, and the same with the repaired pre-tokenizer on Indian languages.
# Stops where an added token of ours is unreachable.
curves() {
  "$PYTHON" $HERE/curves.py "$@" --train "$TRAIN" --eval "$FLORES" \
    --english "$FLORES/$ENGLISH.txt" ${SIZES[@]+"${SIZES[@]}"} \
    -o "$OUT/curves" $THREADS
}
curves "${CUT[@]}" ${WHOLE[@]+"${WHOLE[@]}"}
curves "${CUT[@]}" --pre-tokenizer repaired --leave-out "${OTHERS[@]}"
"$PYTHON" $HERE/tables.py --curves "$OUT/curves" >"$OUT/curves.md"
"$PYTHON" $HERE/unchanged.py "${CUT[@]}" --text "${UNTOUCHED[@]}" $THREADS >"$OUT/unchanged.md"

# 3. Pruning, and Table 4: as many tokens out as in. As much Estonian as English decides what goes.
bytes_of() { wc -c <"$TRAIN/$1.txt"; }
WEIGHT=$(awk "BEGIN { printf \"%.3f\", $(bytes_of $ENGLISH) / $(bytes_of $ESTONIAN) }")
"$PYTHON" $HERE/prune_extend.py "$FIRST" \
  --mix "$ESTONIAN=$TRAIN/$ESTONIAN.txt@$WEIGHT" "$ENGLISH=$TRAIN/$ENGLISH.txt" \
  --extend-with "$ESTONIAN=$TRAIN/$ESTONIAN.txt" \
  --eval $ESTONIAN="$FLORES/$ESTONIAN.txt" $ENGLISH="$FLORES/$ENGLISH.txt" $HINDI="$FLORES/$HINDI.txt" \
  ${SIZES[@]+"${SIZES[@]}"} ${PRUNE_SIZES[@]+"${PRUNE_SIZES[@]}"} -o "$OUT/prune" $THREADS
"$PYTHON" $HERE/tables.py --prune "$OUT/prune" >"$OUT/prune.md"

# 4. All Indian languages at once; the same with superwords on top, and with as many more words.
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
"$PYTHON" $HERE/multilingual.py --extend "$OUT/multilingual.json" "$OUT/superwords.json" \
  --results "$OUT/results.jsonl" --subjects "$(basename "$FIRST")" multilingual multilingual-longer superwords \
  --curves "$OUT/curves" >"$OUT/multilingual.md"
cat "$OUT/curves.md" "$OUT/unchanged.md" "$OUT/prune.md" "$OUT/multilingual.md"

# 5. The rows of the paper's tables.
"$PYTHON" $HERE/paper.py "$OUT" >"$OUT/tables.jsonl"
if [ -n "${RECORD:-}" ]; then
  cp "$OUT/tables.jsonl" $HERE/results.jsonl
  "$PYTHON" recipes/data/record.py $HERE
fi
