# Where the recipes find their text; sourced by their run.sh. Expects DATA, OUT and PYTHON, and
# sets TRAIN and EVAL:
#
#   TRAIN/LANG.txt, LANG.jsonl            training text
#   EVAL/sib200-flores/LANG.txt           the same sentences in every language
#   EVAL/code/*                           program text

vocabshift() { "$PYTHON" -m vocabshift "$@"; }

# trained NAME OPTION…: the tokenizer OUT/NAME, learned from CORPUS unless it is there. The caller sets
# CORPUS, an array of SPECs, and THREADS, which is empty or "-j N".
trained() {
  local name=$1
  shift
  if [ ! -d "$OUT/$name" ]; then
    vocabshift train "$@" --corpus "${CORPUS[@]}" $THREADS -o "$OUT/$name" --json \
      >"$OUT/$name.json"
  fi
}

# lines_into NAME COMMAND…: what a command prints, line by line, as an array of that name. (macOS
# still comes with a bash that has no mapfile.)
lines_into() {
  local name=$1 line printed
  shift
  printed=$("$@") || exit 2
  eval "$name=()"
  while IFS= read -r line; do
    if [ -n "$line" ]; then eval "$name+=(\"\$line\")"; fi
  done <<<"$printed"
}

# The files of a folder with their labels: "hi=TRAIN/hi.txt". Further arguments are weights:
# "en=2" counts every word of en.txt twice.
specs() {
  local folder=$1 file name weight pair used=0
  shift
  for file in "$folder"/*.txt "$folder"/*.jsonl; do
    [ -e "$file" ] || continue
    name=$(basename "${file%.*}")
    weight=
    for pair in "$@"; do
      if [ "${pair%%=*}" = "$name" ]; then
        weight=@${pair#*=}
        used=$((used + 1))
      fi
    done
    printf '%s\n' "$name=$file$weight"
  done
  if [ "$used" != $# ]; then
    echo "WEIGHTS are $*; $folder does not have one text for each of these names" >&2
    return 2
  fi
}

# sampled MB: a folder with a sample of the text of so many MB; all of it for 0. Expects
# TRAIN and SEED.
sampled() {
  if [ "$1" = 0 ]; then
    printf '%s\n' "$TRAIN"
    return
  fi
  local folder=$OUT/sample-$1-$SEED
  if [ ! -d "$folder" ]; then
    "$PYTHON" recipes/data/sample.py "$TRAIN" "$folder.partial" --mb "$1" --seed "$SEED"
    mv "$folder.partial" "$folder"
  fi
  printf '%s\n' "$folder"
}

# As many lines of each text, as in parallel text. The sample texts are none: what is measured of them
# together means nothing.
cut_to_same_length() {
  local file
  for file in "$EVAL"/sib200-flores/*.txt; do
    head -n 4 "$file" >"$file.cut"
    mv "$file.cut" "$file"
  done
}

# Program text as one language, "code".
code_specs() {
  local file
  for file in "$EVAL"/code/*; do printf '%s\n' "code=$file"; done
}

# Published tokenizers to compare with, on one line: links in OUT/vendors with the names that the
# tables show, for a subject is called by the last part of its path.
vendors() {
  local hf raw name file
  hf=$(realpath "$DATA/tokenizers-hf")
  raw=$(realpath "$DATA/tokenizers")
  mkdir -p "$OUT/vendors"
  while read -r name file; do
    ln -sfn "$file" "$OUT/vendors/$name"
    printf '%s ' "$OUT/vendors/$name"
  done <<LINKS
cl100k $raw/cl100k_base/cl100k_base.tiktoken
Claude-2 $raw/anthropic-claude2
Command-R $raw/gguf-command-r/ggml-vocab-command-r.gguf
DeepSeek-V3 $raw/deepseek
Gemma-4 $raw/gguf-gemma-4/ggml-vocab-gemma-4.gguf
Llama-2 $raw/llama2/tokenizer.model
Llama-3 $hf/llama3
Llama-4 $hf/llama4
Mistral-7B-v1 $hf/mistral7b-v1
Mistral-7B-v3 $hf/mistral7b-v3
Mistral-Nemo $hf/mistral-nemo
o200k $raw/o200k_base/o200k_base.tiktoken
p50k $raw/p50k_r50k/p50k_base.tiktoken
Qwen-2.5 $hf/qwen25
LINKS
}

# The unpacked shared data, with code cut into its files (once, under OUT).
prepare_shared_text() {
  EVAL=$DATA/eval
  EVALUATED_ON="1,004 FLORES-200 sentences in each of 24 language and script files (SIB-200), and \
program text"
  lines_into LIMITS cat recipes/data/limits.txt
  if [ ! -d "$DATA/train" ]; then
    echo "$DATA/train is not there: run  ../shared/data/unpack.sh $DATA  or set DATA" >&2
    exit 2
  fi
  lines_into SOURCES source_tables
  TRAIN=$OUT/train
  if [ ! -d "$TRAIN" ]; then
    mkdir -p "$TRAIN.partial"
    for file in "$DATA"/train/*.txt; do
      if [ -e "${file%.txt}.sources.tsv" ] && [ "$(basename "$file")" = code.txt ]; then
        "$PYTHON" recipes/data/documents.py "$file" "${file%.txt}.sources.tsv" \
          -o "$TRAIN.partial/code.jsonl"
      else
        ln -sf "$(realpath "$file")" "$TRAIN.partial/"
      fi
    done
    mv "$TRAIN.partial" "$TRAIN"
  fi
}

# The tables of sources beside the training text; that of code is made, once, under OUT.
source_tables() {
  local file
  for file in "$DATA"/train/*.sources.tsv; do
    [ -e "$file" ] || continue
    if [ "$(basename "$file")" = code.sources.tsv ]; then
      if [ ! -e "$OUT/code.tsv" ]; then
        "$PYTHON" recipes/data/sources.py "$DATA/train/code.txt" "$file" -o "$OUT/code.tsv"
      fi
      file=$OUT/code.tsv
    fi
    printf '%s\n' "$file"
  done
}

# Our own sample texts: 170 kB, one line in eight held out.
prepare_sample_texts() {
  EVALUATED_ON="held-out lines of our own sample texts"
  SOURCES=()
  LIMITS=()
  rm -rf "$OUT/texts"
  "$PYTHON" - "$OUT/texts" <<'PY'
import sys
from pathlib import Path

from vocabshift.demo import story

folder = Path(sys.argv[1])
story.write_split(folder)
for kind, names in (("sib200-flores", "*.txt"), ("code", "code.jsonl")):
    target = folder / "eval" / kind
    target.mkdir(parents=True)
    for file in (folder / "held-out").glob(names):
        file.rename(target / file.name)
PY
  TRAIN=$OUT/texts/train
  EVAL=$OUT/texts/eval
}

# What the papers' tables show.
METRICS=(fertility normalized_sequence_length bytes_per_token sequence_reduction
  tokens_per_character single_character_rate renyi_entropy renyi_efficiency tokens_per_line)

# write_card NAME TITLE: the model card of OUT/NAME, and beside it what it was rendered from. REBUILD
# holds the command, with the paths that a run without variables has.
write_card() {
  local name=$1 title=$2 home=runs/$(basename "$OUT")
  local words=(--name "$title" --license other --rebuild "${REBUILD//$OUT/$home}")
  if [ ${#SOURCES[@]} != 0 ]; then words+=(--sources "${SOURCES[@]}"); fi
  if [ ${#LIMITS[@]} != 0 ]; then words+=(--limit "${LIMITS[@]}"); fi
  vocabshift card "$OUT/$name" --results "$OUT/results.jsonl" "${words[@]}" \
    --evaluated-on "$EVALUATED_ON" -o "$OUT/$name.card.md" --force --json >"$OUT/$name.card.json"
}

# record NAME TITLE README SHAPE…: the card to model_cards/TITLE, the tables into the README.
record() {
  local name=$1 folder=model_cards/$2 readme=$3
  shift 3
  mkdir -p "$folder"
  cp "$OUT/$name.card.md" "$folder/README.md"
  cp "$OUT/$name.card.json" "$folder/card.json"
  # The checksums, the same in some hundred rows each, are in made.json.
  sed -E 's/, "(tokenizer|text)_sha256": "[0-9a-f]+"//g' "$OUT/results.jsonl" >"$folder/results.jsonl"
  "$PYTHON" recipes/data/rows.py "$OUT/results.jsonl" --made --trained "$OUT" \
    --command "recipes/$name/run.sh" -o "$folder/made.json" --size "$("$PYTHON" -c \
      'import json, sys; print(json.load(open(sys.argv[1]))["vocab_size"], "tokens")' "$OUT/$name.json")"
  "$PYTHON" recipes/data/insert.py "$readme" "${@/#/$OUT/}"
}

# write_tables SHAPE…: the tables of OUT/results.jsonl in the papers' shapes, OUT/SHAPE.md each.
write_tables() {
  local shape
  for shape in "$@"; do
    vocabshift tables "$OUT/results.jsonl" --shape "$shape" -o "$OUT/$shape.md" --force >/dev/null
  done
}
