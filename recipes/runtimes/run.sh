#!/usr/bin/env bash
# Which runtimes give our ids? Every recipe is trained on our own sample texts, vendors' tokenizers
# are extended with their pre-tokenizers repaired, and each runtime that is installed opens them all.
# One command:
#
#   recipes/runtimes/run.sh            the recipes, and the vendors in ../shared/data-unpacked
#   recipes/runtimes/run.sh --smoke    three recipes and no vendor: a minute
#
# Install the runtimes first: pip install 'vocabshift[runtimes,unigram]', and llama-cpp-python, which
# is compiled. Variables, with their defaults:
#   DATA=../shared/data-unpacked   tokenizers/ and tokenizers-hf/, as its unpack.sh leaves them
#   OUT=runs/runtimes              tokenizers, recipes.md and vendors.md; what is there stays
#   VOCAB=4000                     tokens of a recipe; a vendor gets 500 new ones
#   RECORD=                        anything: the tables go into docs/runtimes.md
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/runtimes}
VOCAB=${VOCAB:-4000}
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT"
prepare_sample_texts
lines_into CORPUS specs "$TRAIN"

MADE=()
# make NAME VERB OPTION…: a tokenizer, unless it is there.
make() {
  local name=$1
  shift
  MADE+=("$OUT/$name")
  if [ ! -d "$OUT/$name" ]; then
    vocabshift "$@" --corpus "${CORPUS[@]}" -o "$OUT/$name" --json >"$OUT/$name.json"
  fi
}
train() { make "$1" train --recipe "${@:2}" --vocab-size "$VOCAB" --special-tokens "<|end|>"; }

# matrix NAME TOKENIZER…: a fault of a runtime is a result, and no reason to stop.
matrix() {
  local name=$1
  shift
  vocabshift check "$@" --runtimes all --markdown >"$OUT/$name.md.partial"
  mv "$OUT/$name.md.partial" "$OUT/$name.md"
}

# 1. The recipes. A plain BPE has the pattern of its name.
if [ "${1:-}" = --smoke ]; then
  RECIPES="superbpe ist" PATTERNS="gpt2"
else
  RECIPES="superbpe ist matra vocabshift boundless picky overlap stacked unigram cluster cluster-bpe"
  PATTERNS="gpt2 cl100k qwen2 qwen35 o200k deepseek indic"
fi
for pattern in $PATTERNS; do train "bpe-$pattern" bpe --pre-tokenizer "$pattern"; done
for recipe in $RECIPES; do
  if [ "$recipe" = cluster ] || [ "$recipe" = cluster-bpe ]; then
    train "$recipe" "$recipe" --n-clusters 3 --language-vocab-size 500
  else
    train "$recipe" "$recipe"
  fi
done
if [ "${1:-}" != --smoke ]; then
  make on-top train --recipe on-top --base "$OUT/bpe-o200k" --n-tokens 500
fi
matrix recipes "${MADE[@]}"

# 2. Vendors' tokenizers: as they are, and with words repaired.
if [ "${1:-}" != --smoke ] && [ -d "$DATA/tokenizers-hf" ]; then
  MADE=()
  vendors >/dev/null
  for name in Llama-3 Llama-4 Qwen-2.5 Mistral-Nemo DeepSeek-V3 Command-R o200k; do
    MADE+=("$OUT/vendors/$name")
    make "$name-repaired" extend "$OUT/vendors/$name" --n-tokens 500 --pre-tokenizer repaired
  done
  for name in Mistral-7B-v1 Gemma-4; do MADE+=("$OUT/vendors/$name"); done
  matrix vendors "${MADE[@]}"
fi

if [ -n "${RECORD:-}" ]; then
  mkdir -p "$OUT/record" # the tables without the notes
  for name in recipes vendors; do
    grep -v '^- ' "$OUT/$name.md" >"$OUT/record/$name.md"
  done
  "$PYTHON" recipes/data/insert.py docs/runtimes.md "$OUT"/record/{recipes,vendors}.md
fi
