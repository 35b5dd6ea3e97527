#!/usr/bin/env bash
# A small model that knows English and code is adapted to Hindi and Tamil: which tokenizer, and which
# rows for its new tokens, for the same bytes of continued training? One command:
#
#   recipes/adaptation_study/run.sh                     text from ../shared/data-unpacked
#   SEEDS=5 ADAPT_BYTES=2000000 OUT=runs/longer recipes/adaptation_study/run.sh
#   recipes/adaptation_study/run.sh --smoke             our own sample texts, under a minute
#
# What OUT holds already is not made again. Variables, with their defaults:
#   DATA=../shared/data-unpacked   train/LANG.txt, eval/…, tasks/…, as its unpack.sh leaves it
#   OUT=runs/adaptation            tokenizers/, models/, arms/, latency.json, tables *.md, curves.svg
#   SEEDS=3                        models that are pre-trained, and adapted in every arm
#   PRETRAIN_BYTES=500000          of English and code
#   ADAPT_BYTES=200000             of continued training: 80 % Hindi and Tamil, 20 % the old languages
#   VOCAB=16000 ADDED=4000         tokens of the old tokenizer, and those that the new ones have more
#   HIDDEN=96 LAYERS=3             the model
#   RECORD=                        anything: the tables go into README.md
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
HERE=recipes/adaptation_study
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/adaptation}
SEEDS=${SEEDS:-3}
export OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false # times are compared
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT"

# 1. Text. Nothing that is scored is trained on.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  HOME_LANGUAGES=(eng code) NEW_LANGUAGES=(hin tam)
  TOPICS=$OUT/texts/topics
  # SIB-200's layout, with what can be told of our own sentences: are they short or long?
  "$PYTHON" - "$TRAIN" "$TOPICS" <<'PY'
import sys
from pathlib import Path

for name in ("eng", "hin", "tam"):
    lines = Path(sys.argv[1], f"{name}.txt").read_text(encoding="utf-8").splitlines()
    middle = sorted(map(len, lines))[len(lines) // 2]
    rows = [f"{i}\t{'long' if len(x) > middle else 'short'}\t{x}\n" for i, x in enumerate(lines)]
    folder = Path(sys.argv[2], name)
    folder.mkdir(parents=True)
    for number, split in enumerate(("train", "dev", "test")):
        text = "index_id\tcategory\ttext\n" + "".join(rows[number::3])
        (folder / f"{split}.tsv").write_text(text, encoding="utf-8")
PY
  SEEDS=1 PRETRAIN_BYTES=8000 ADAPT_BYTES=6000 VOCAB=600 ADDED=200 HIDDEN=32 LAYERS=1
  SMALL=(--length 32 --step-bytes 500 --points 2 --documents 4 --curve-documents 2)
  LATENCY=(--n-prompts 1 --prompt-bytes 40 --max-new-tokens 4 --warmup 1 --repeats 2)
  LEARN=()
else
  prepare_shared_text
  HOME_LANGUAGES=(en code) NEW_LANGUAGES=(hi ta)
  TOPICS=$DATA/tasks/sib200
  PRETRAIN_BYTES=${PRETRAIN_BYTES:-500000} ADAPT_BYTES=${ADAPT_BYTES:-200000}
  VOCAB=${VOCAB:-16000} ADDED=${ADDED:-4000} HIDDEN=${HIDDEN:-96} LAYERS=${LAYERS:-3}
  SMALL=()
  LATENCY=(--n-prompts 5 --prompt-bytes 256 --max-new-tokens 32 --warmup 5 --repeats 5)
  LEARN=(--language-bytes 3MB)
fi
# files FOLDER LANGUAGE…: "hi=FOLDER/hi.txt", of program text the .jsonl.
files() {
  local folder=$1 name
  shift
  for name in "$@"; do
    if [ -e "$folder/$name.txt" ]; then printf '%s\n' "$name=$folder/$name.txt"
    else printf '%s\n' "$name=$folder/$name.jsonl"; fi
  done
}
lines_into AT_HOME files "$TRAIN" "${HOME_LANGUAGES[@]}"
lines_into NEW files "$TRAIN" "${NEW_LANGUAGES[@]}"
lines_into SENTENCES files "$EVAL/sib200-flores" "${HOME_LANGUAGES[0]}" "${NEW_LANGUAGES[@]}"
lines_into CODE code_specs

# 2. Tokenizers: the old one knows neither Hindi nor Tamil; the others have as many tokens each.
TOKENIZERS=$OUT/tokenizers
mkdir -p "$TOKENIZERS"
# make NAME VERB ARGUMENT…: one tokenizer, unless it is there.
make() {
  local name=$1 verb=$2
  shift 2
  if [ ! -d "$TOKENIZERS/$name" ]; then
    vocabshift "$verb" "$@" ${LEARN[@]+"${LEARN[@]}"} -j 1 -o "$TOKENIZERS/$name" --json \
      >"$TOKENIZERS/$name.json"
  fi
}
SPECIAL='<|end|>'
make base train --recipe bpe --pre-tokenizer llama3 --vocab-size "$VOCAB" \
  --special-tokens "$SPECIAL" --corpus "${AT_HOME[@]}"
ADD=(extend "$TOKENIZERS/base" --corpus "${NEW[@]}" --n-tokens "$ADDED")
make regen "${ADD[@]}" --method regen
make continued "${ADD[@]}"
make repaired "${ADD[@]}" --pre-tokenizer repaired
for recipe in ist matra; do
  make $recipe train --recipe $recipe --vocab-size $((VOCAB + ADDED)) \
    --special-tokens "$SPECIAL" --corpus "${AT_HOME[@]}" "${NEW[@]}"
done
NAMES=(base regen continued repaired ist matra)
vocabshift evaluate "${NAMES[@]/#/$TOKENIZERS/}" --text "${SENTENCES[@]}" "${CODE[@]}" \
  --metrics bytes_per_token --output "$OUT/tokenizers.jsonl" --force -j 1 >/dev/null

# 3. Every arm of every seed: pre-training, transfer, continued training, and what came of it.
"$PYTHON" $HERE/study.py --train "$TRAIN" --eval "$EVAL" --sib200 "$TOPICS" \
  --tokenizers "$TOKENIZERS" --home "${HOME_LANGUAGES[@]}" --new "${NEW_LANGUAGES[@]}" \
  --seeds "$SEEDS" --pretrain-bytes "$PRETRAIN_BYTES" --adapt-bytes "$ADAPT_BYTES" \
  --hidden "$HIDDEN" --layers "$LAYERS" ${SMALL[@]+"${SMALL[@]}"} -o "$OUT"

# 4. Latency of one seed's models (rows make no difference to it), taking turns.
if [ ! -e "$OUT/latency.json" ]; then
  TIMED=("$OUT/models/0/nothing")
  for name in regen continued repaired ist matra; do TIMED+=("$OUT/models/0/$name-fvt"); done
  vocabshift latency "${TIMED[@]}" --text "${SENTENCES[@]}" "${LATENCY[@]}" --device cpu --json \
    >"$OUT/latency.json.partial"
  mv "$OUT/latency.json.partial" "$OUT/latency.json"
fi

# 5. The tables and the picture.
"$PYTHON" $HERE/measured.py "$OUT"
"$PYTHON" $HERE/tables.py "$OUT"
"$PYTHON" $HERE/figure.py "$OUT" -o "$OUT/curves.svg"
TABLES=()
for name in tokenizers bits-per-byte differences sib200 glitch latency ist-5 ist-appendix-c.1; do
  TABLES+=("$OUT/$name.md")
done
cat "${TABLES[@]}"
if [ -n "${RECORD:-}" ]; then
  cp "$OUT/rows.jsonl" $HERE/results.jsonl
  "$PYTHON" recipes/data/record.py $HERE
fi
