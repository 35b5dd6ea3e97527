#!/usr/bin/env bash
# SmolLM2 extended to Hindi with a pre-tokenizer that llama.cpp has, written as GGUF, and served by
# llama.cpp: are its ids ours, and how fast does it write Hindi? Nothing is trained. One command:
#
#   LLAMA=/path/to/python recipes/smollm2/deploy.sh
#
# LLAMA is a Python that has llama-cpp-python 0.3.36 with its extra [server].
#
# Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/{hi,en}.txt and eval/, as its unpack.sh leaves it
#   OUT=runs/smollm2               what get.sh writes, and results.jsonl, as of run.sh; what is there
#                                  is not made again
#   DTYPE=F16                      of the GGUF files
#   PORT=8077                      and the next one: of the servers
#   RECORD=1                       also put the results beside the README, and write its tables
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/smollm2}
DTYPE=${DTYPE:-F16}
PORT=${PORT:-8077}
MODEL=$OUT/model
WORK=$OUT/deploy
HERE=recipes/smollm2
FLORES=$DATA/eval/sib200-flores
if [ -z "${LLAMA:-}" ] || [ ! -e "$DATA/train/hi.txt" ]; then
  echo "LLAMA must be a Python with llama-cpp-python[server], and $DATA/train/hi.txt must be there" >&2
  exit 2
fi
[ -e "$MODEL" ] || PYTHON=$PYTHON OUT=$OUT $HERE/get.sh
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
mkdir -p "$WORK"

# `--pre-tokenizer deployable` keeps smollm, for it takes no pattern that changes an id of text without
# marks, and names qwen35 and others, which change 3 in 10,000 and let Hindi words be tokens.
[ -e "$WORK/tokenizer" ] || vocabshift extend "$MODEL" --pre-tokenizer qwen35 --n-tokens 8000 \
  --corpus hi="$DATA/train/hi.txt" en="$DATA/train/en.txt" --language-bytes hi=6MB en=3MB \
  -o "$WORK/tokenizer"
[ -e "$WORK/hindi" ] || vocabshift transfer "$MODEL" "$WORK/tokenizer" -o "$WORK/hindi"
[ -e "$WORK/hindi.gguf" ] || vocabshift convert "$WORK/hindi" --dtype "$DTYPE" -o "$WORK/hindi.gguf"
[ -e "$WORK/smollm2.gguf" ] || vocabshift convert "$MODEL" --dtype "$DTYPE" -o "$WORK/smollm2.gguf"

"$PYTHON" $HERE/texts.py "$DATA/eval" --lines 40 -o "$OUT/lines.json"
"$LLAMA" $HERE/peer.py "$WORK/hindi.gguf" "$OUT/lines.json" --ids-only -o "$OUT/peer.npz"
"$PYTHON" $HERE/against_llama_cpp.py "$WORK/hindi" "$OUT/lines.json" "$OUT/peer.npz" \
  --row "extended to Hindi, $DTYPE" --file "$OUT/results.jsonl"

"$LLAMA" -m llama_cpp.server --model "$WORK/smollm2.gguf" --port "$PORT" --n_ctx 1024 \
  --n_threads 2 >"$WORK/server-smollm2.log" 2>&1 &
"$LLAMA" -m llama_cpp.server --model "$WORK/hindi.gguf" --port "$((PORT + 1))" --n_ctx 1024 \
  --n_threads 2 >"$WORK/server-hindi.log" 2>&1 &
trap 'kill $(jobs -p) 2>/dev/null' EXIT
for port in "$PORT" "$((PORT + 1))"; do
  for _ in $(seq 60); do
    "$PYTHON" -c "import urllib.request as u; u.urlopen('http://localhost:$port/v1/models')" \
      2>/dev/null && break
    sleep 1
  done
done
# Models take turns, so one server idles while the other writes.
vocabshift latency "$MODEL" "$WORK/hindi" --server "http://localhost:$PORT/v1" \
  "http://localhost:$((PORT + 1))/v1" --text en="$FLORES/en.txt" hi="$FLORES/hi.txt" \
  --n-prompts 5 --prompt-bytes 256 --max-new-tokens 32 --repeats 3 --warmup 2 \
  --output "$WORK/latency.jsonl" --force
"$PYTHON" $HERE/deploy.py "$WORK/tokenizer" "$WORK/latency.jsonl" "$OUT/results.jsonl"
if [ "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py $HERE --rows "$OUT/results.jsonl"
fi
