#!/usr/bin/env bash
# A causal model is moved onto a tokenizer for 22 Indian languages and trained on, then measured: from
# a model folder or a name on the Hub to a folder with its card. One command:
#
#   MODEL=meta-llama/Llama-3.2-1B recipes/llama_indic/run.sh
#   MODEL=models/llama WAY=extend TEXT=my/texts recipes/llama_indic/run.sh
#   recipes/llama_indic/run.sh --dry-run     the commands, and nothing else
#   recipes/llama_indic/run.sh --smoke       SmolLM2 on a little text, some minutes of two cores
#
# What OUT holds already is not made again, and every step resumes. Variables, with their defaults:
#   MODEL                    folder or Hub name of any causal model with a BPE tokenizer
#   WAY=swap                 swap: IST, as its section 4.6 has it; extend: continued BPE; adapt: the same
#                            after as many tokens were pruned, as in the paper's Table 9
#   SPECS=sources.txt        the text: a SPEC a line, of files or of data sets on the Hub
#   SIZE=1GB                 text that is taken from a SPEC, from its beginning, times the number after it;
#                            of each language at most so much, drawn at random, makes the tokenizer
#   TEXT=                    a folder of LANG.jsonl instead: nothing is downloaded
#   TOKENS=200000, 16000     size of the tokenizer; for extend and adapt, tokens that are added
#   CONFIG=ist.toml          or continued-bpe.toml: the settings of cpt, with the paper's values
#   SETTINGS=                more key=value of cpt, such as "phases.0.n_bytes=2GB micro_batch_size=8"
#   LAUNCH=                  such as "accelerate launch --config_file recipes/accelerate/h100-8.yaml -m"
#   SUITE=ist-11             tasks of harness: a suite or tasks; "none" for none. continued-bpe-5 has
#                            those of that paper, in Estonian and English
#   HARNESS=                 more of its options, such as "--limit 200 --data DIR"
#   BASE=                    name of MODEL on the Hub, for the card, where MODEL is a folder
#   LICENSE=                 for the card
#   OUT=runs/llama-indic     text/, tokenizer/, start/, packed/, trained/ (with its card), *.jsonl
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
HERE=recipes/llama_indic
PYTHON=${PYTHON:-python3}
OUT=${OUT:-runs/llama-indic}
WAY=${WAY:-swap}
SIZE=${SIZE:-1GB}
MORE=()
case ${1:-} in
  --smoke)
    if [ -z "${MODEL:-}" ]; then
      PYTHON=$PYTHON OUT=runs/smollm2 recipes/smollm2/get.sh
      MODEL=runs/smollm2/model BASE=HuggingFaceTB/SmolLM2-135M-Instruct
    fi
    SPECS=${SPECS:-$HERE/smoke.txt} SIZE=12KB TOKENS=${TOKENS:-2000} SUITE=${SUITE:-none}
    MORE=(sequence_length=64 batch_size=8 mixed_precision=no evaluate_bytes=20KB cpu=true
      phases.0.n_bytes=10KB phases.0.learning_rate=1e-3 phases.1.n_bytes=10KB)
    if [ -z "${DATA:-}" ] || [ ! -d "$DATA/train" ]; then
      DATA=$OUT/samples # our own texts
      [ -e "$DATA" ] || "$PYTHON" $HERE/text.py samples -o "$DATA"
    fi
    export DATA ;;
  --dry-run) ;;
  "") ;;
  *) echo "unknown: $1; --smoke and --dry-run are known" >&2; exit 2 ;;
esac
if [ -z "${MODEL:-}" ]; then
  echo "MODEL is not set: name the model, such as MODEL=meta-llama/Llama-3.2-1B" >&2
  exit 2
fi
case $WAY in
  swap) TOKENS=${TOKENS:-200000} CONFIG=${CONFIG:-$HERE/ist.toml} SUITE=${SUITE:-ist-11} ;;
  extend | adapt) TOKENS=${TOKENS:-16000} CONFIG=${CONFIG:-$HERE/continued-bpe.toml} SUITE=${SUITE:-ist-11} ;;
  *) echo "WAY is $WAY; swap, extend and adapt are known" >&2; exit 2 ;;
esac
SPECS=${SPECS:-$HERE/sources.txt}
LAUNCH=${LAUNCH:-$PYTHON -m}
# do_it RESULT COMMAND…: run the command unless its result is there; with --dry-run only print it.
DRY=$([ "${1:-}" = --dry-run ] && echo yes || true)
do_it() {
  local result=$1
  shift
  if [ -e "$result" ]; then return; fi
  printf '%q ' "$@" >&2
  echo >&2
  if [ -z "$DRY" ]; then "$@"; fi
}
vocabshift=("$PYTHON" -m vocabshift)
[ -n "$DRY" ] || mkdir -p "$OUT"

# 1. Text: the beginning of each source; a few documents are held out.
TEXTS=${TEXT:-$OUT/text}
if [ -z "${TEXT:-}" ]; then
  do_it "$TEXTS" "$PYTHON" $HERE/text.py take "$SPECS" --size "$SIZE" -o "$TEXTS"
fi
TRAIN=() HELD=()
for file in "$TEXTS"/*.jsonl; do
  [ -e "$file" ] && TRAIN+=("$(basename "${file%.jsonl}")=$file")
done
for file in "$TEXTS"/held-out/*.jsonl; do
  [ -e "$file" ] && HELD+=("$(basename "${file%.jsonl}")=$file")
done
if [ -n "$DRY" ] && [ ${#TRAIN[@]} = 0 ]; then TRAIN=("hi=$TEXTS/hi.jsonl") HELD=("hi=$TEXTS/held-out/hi.jsonl"); fi
if [ ${#TRAIN[@]} = 0 ]; then
  echo "$TEXTS holds no LANG.jsonl" >&2
  exit 2
fi
# SPECs as a list of TOML.
toml() { printf '"%s", ' "$@" | sed 's/^/[/; s/, $/]/'; }

# 2. The tokenizer, and the model moved onto it: rows that stay are copied, the others are means.
if [ "$WAY" = swap ]; then
  do_it "$OUT/tokenizer" "${vocabshift[@]}" train --recipe ist --vocab-size "$TOKENS" \
    --sampling-alpha 0.7 --corpus "${TRAIN[@]}" --language-bytes "$SIZE" -o "$OUT/tokenizer"
else
  if [ "$WAY" = adapt ]; then ALONE=(--tokenizer-only); else ALONE=(); fi
  do_it "$OUT/tokenizer" "${vocabshift[@]}" "$WAY" "$MODEL" ${ALONE[@]+"${ALONE[@]}"} --pre-tokenizer repaired \
    --n-tokens "$TOKENS" --corpus "${TRAIN[@]}" --language-bytes "$SIZE" -o "$OUT/tokenizer"
fi
do_it "$OUT/start" "${vocabshift[@]}" transfer "$MODEL" "$OUT/tokenizer" --init fvt -o "$OUT/start"

# 3. Training, on text that is encoded once. The control is left to you: cpt CONFIG --control.
do_it "$OUT/packed" "${vocabshift[@]}" encode "$OUT/start" "${TRAIN[@]}" -o "$OUT/packed"
# shellcheck disable=SC2086 # several words
do_it "$OUT/trained" $LAUNCH vocabshift cpt "$CONFIG" model="$OUT/start" data="$OUT/packed" \
  out="$OUT/trained" ${HELD[@]+held_out="$(toml "${HELD[@]}")"} ${MORE[@]+"${MORE[@]}"} ${SETTINGS:-}

# 4. Before and after: bits per byte, tasks, tokens that were not learned; and the card.
FOUND=("$OUT/bits.jsonl")
do_it "$OUT/bits.jsonl" "${vocabshift[@]}" score "$MODEL" "$OUT/start" "$OUT/trained" \
  --text ${HELD[@]+"${HELD[@]}"} --output "$OUT/bits.jsonl"
if [ "$SUITE" != none ]; then
  # shellcheck disable=SC2086
  do_it "$OUT/tasks.jsonl" "${vocabshift[@]}" harness "$MODEL" "$OUT/trained" --tasks $SUITE \
    ${HARNESS:-} --output "$OUT/tasks.jsonl"
  FOUND+=("$OUT/tasks.jsonl")
fi
do_it "$OUT/glitch.jsonl" "${vocabshift[@]}" glitch "$OUT/trained" --initial "$OUT/start" \
  --corpus "${TRAIN[@]}" --output "$OUT/glitch.jsonl"
do_it "$OUT/trained/README.md" "${vocabshift[@]}" card "$OUT/trained" --results "${FOUND[@]}" \
  ${BASE:+--base "$BASE"} ${LICENSE:+--license "$LICENSE"} --name "$(basename "${BASE:-$MODEL}")-indic" \
  --rebuild "MODEL=$MODEL WAY=$WAY $HERE/run.sh" -o "$OUT/trained/README.md"
