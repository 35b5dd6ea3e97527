#!/usr/bin/env bash
# SmolLM2 is given Hindi: by 8,000 more tokens, by superwords on top of them, by all that without the tokens
# that are hardly used, or by another tokenizer of 32,000. Which way keeps most of the model, and what does it
# cost? One command, which resumes where it was stopped:
#
#   recipes/keep_the_model/run.sh                         everything, in order of value
#   recipes/keep_the_model/run.sh --stage screened --hours 3
#   recipes/keep_the_model/run.sh --arm swap-distill-all  one arm, on 100 kB
#   NEW=te SEEDS=1 recipes/keep_the_model/run.sh --stage before final
#   recipes/keep_the_model/run.sh --list                  what there is, and what is to be done
#   recipes/keep_the_model/run.sh --smoke                 our own sample texts and a tiny model
#
# Further words go to study.py (`--help`). Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/, eval/, tasks/, as its unpack.sh leaves them
#   NEW=hi                         the new language (or "hi te"), in train/ and eval/
#   MODEL=runs/keep_the_model/model   what recipes/smollm2/get.sh writes, in 32 bits, with another start of
#                                  documents (document_start.py); made where missing
#   OUT=runs/keep_the_model/$NEW   tokenizers/, start/, models/, arms/, finals/, results.jsonl
#   SEEDS=3                        of a finalist
#   ADDED=8000 SUPERWORDS=4000     tokens of the extension, and superwords on top of them
#   VOCAB=32000                    tokens of the swap, and of the trimmed tokenizer
#   DONOR=                         a model that knows the new tokens, for the arms with omp
#   PRECISION=no                   bf16 multiplies matrices in 16 bits: three times as fast where the CPU can
#   TASKS="sib200:en,$NEW"         of `vocabshift harness`, for finalists; empty: none
#   RECORD=1                       also put the results beside the README, and write its tables
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
HERE=recipes/keep_the_model
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
NEW=${NEW:-hi}
OUT=${OUT:-runs/keep_the_model/${NEW// /-}}
MODEL=${MODEL:-runs/keep_the_model/model}
export TOKENIZERS_PARALLELISM=false HF_HUB_DISABLE_PROGRESS_BARS=1
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT/tokenizers"

if [ "${1:-}" = --smoke ]; then
  shift
  prepare_sample_texts
  NEW=hin AT_HOME="eng code" OTHER=deu ADDED=200 SUPERWORDS=50 VOCAB=800 LEARN=() SEEDS=1
  SMALL=(--screen-bytes 3000 --final-bytes 5000 --documents 3 --final-documents 4 --continued 1
    --curve-documents 1 --points 1 --length 32 --step-bytes 500)
  MODEL=$OUT/model
  if [ ! -e "$MODEL" ]; then
    vocabshift train --recipe bpe --pre-tokenizer llama3 --vocab-size 600 -j 1 --json \
      --special-tokens '<|end|>' --corpus "eng=$TRAIN/eng.txt" "code=$TRAIN/code.jsonl" \
      -o "$OUT/tokenizers/old" >/dev/null
    "$PYTHON" $HERE/tiny.py "$OUT/tokenizers/old" "$MODEL"
  fi
else
  prepare_shared_text
  AT_HOME="en code" OTHER=${OTHER-de}
  LEARN=(--language-bytes en=3MB code=3MB)
  SMALL=()
  TASKS=${TASKS-"sib200:en,$NEW"}
  if [ ! -e "$MODEL" ]; then
    PYTHON=$PYTHON DTYPE=float32 recipes/smollm2/get.sh
    "$PYTHON" $HERE/document_start.py runs/smollm2/model "$MODEL"
  fi
fi

# 1. Tokenizers. The extension learns from the new language and English, the others from code too. `trimmed`
# is `superwords` without the tokens that this text needs least, as small as the swap.
corpus() { # "hi=TRAIN/hi.txt" of each language
  local name
  for name in "$@"; do
    if [ -e "$TRAIN/$name.txt" ]; then printf '%s\n' "$name=$TRAIN/$name.txt"
    else printf '%s\n' "$name=$TRAIN/$name.jsonl"; fi
  done
}
lines_into TEXT corpus $NEW $AT_HOME
if [ ${#LEARN[@]} != 0 ]; then
  for name in $NEW; do LEARN+=("$name=6MB"); done
fi
make() { # name, verb, arguments: a tokenizer, unless it is there
  local name=$1
  shift
  [ -e "$OUT/tokenizers/$name" ] || vocabshift "$@" -o "$OUT/tokenizers/$name" --json \
    >"$OUT/tokenizers/$name.json"
}
OF_EXTENSION=()
for spec in "${TEXT[@]}"; do [ "${spec%%=*}" = code ] || OF_EXTENSION+=("$spec"); done
OF_EXTENSION_BYTES=()
for size in ${LEARN[@]+"${LEARN[@]}"}; do
  [ "${size%%=*}" = code ] || OF_EXTENSION_BYTES+=("$size")
done
make extension extend "$MODEL" --pre-tokenizer repaired --n-tokens "${ADDED:-8000}" \
  --corpus "${OF_EXTENSION[@]}" ${OF_EXTENSION_BYTES[@]+"${OF_EXTENSION_BYTES[@]}"}
make superwords extend "$MODEL" --pre-tokenizer repaired --n-tokens "${ADDED:-8000}" \
  --superwords "${SUPERWORDS:-4000}" --corpus "${TEXT[@]}" ${LEARN[@]+"${LEARN[@]}"}
make trimmed prune "$OUT/tokenizers/superwords" --vocab-size "${VOCAB:-32000}" \
  --corpus "${TEXT[@]}" ${LEARN[@]+"${LEARN[@]}"}
make swap train --recipe ist --vocab-size "${VOCAB:-32000}" --corpus "${TEXT[@]}" \
  ${LEARN[@]+"${LEARN[@]}"}

# 2. The arms, and their figures.
"$PYTHON" $HERE/study.py --model "$MODEL" --train "$TRAIN" --eval "$EVAL" --new $NEW \
  --home $AT_HOME --other $OTHER --seeds "${SEEDS:-3}" ${DONOR:+--donor "$DONOR"} \
  --mixed-precision "${PRECISION:-no}" ${TASKS:+--tasks $TASKS --data "$DATA/tasks"} ${SMALL[@]+"${SMALL[@]}"} -o "$OUT" "$@"
case " $* " in *" --list "*) exit 0 ;; esac

# 3. The figures as rows, the tables, and the pictures.
spans() {
  "$PYTHON" $HERE/spans.py "$MODEL" "$OUT/tokenizers" --eval "$EVAL" --new $NEW \
    --languages $NEW $AT_HOME $OTHER -o "$1"
}
"$PYTHON" $HERE/results.py "$OUT" -o "$OUT/results.jsonl"
spans "$OUT/results.jsonl"
"$PYTHON" $HERE/figure.py "$OUT/results.jsonl" -o "$OUT/gains.svg"
"$PYTHON" $HERE/tables.py "$OUT/results.jsonl"
if [ "${RECORD:-}" ]; then
  "$PYTHON" $HERE/results.py "$OUT" -o $HERE/results.jsonl --finals $HERE/finals.jsonl
  spans $HERE/results.jsonl
  "$PYTHON" $HERE/figure.py
  "$PYTHON" recipes/data/record.py $HERE
fi
