#!/usr/bin/env bash
# The study's extrinsic test at our size: a small decoder (Llama) and a small encoder (BERT, masked
# tokens), trained from scratch on the same text with a joint vocabulary and with the union of one
# for each language family, BPE and Unigram, evaluated by bits per byte, by retrieval of parallel
# sentences (FLORES) and by topics (SIB-200), three seeds.
#
#   recipes/indic_study/extrinsic.sh                 15 minutes of one core
#   recipes/indic_study/extrinsic.sh --smoke         our own sample texts
#
# Variables, with their defaults: DATA=../shared/data-unpacked OUT=runs/extrinsic VOCAB=16000 MB=2 (of
# each language, for the vocabularies) KB=30 (of each, for the models) SEEDS=3 HIDDEN=64 LAYERS=2
# TASK_SENTENCES=150 (of each language, for topics)
# RECORD= (anything: the tables go into README.md) THREADS=all (for the vocabularies) PYTHON=python3
set -euo pipefail
export OMP_NUM_THREADS=1 # so that digits do not depend on the machine's cores
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/extrinsic}
MB=${MB:-2}
THREADS=${THREADS:+-j $THREADS}
vocabshift() { "$PYTHON" -m vocabshift "$@"; }
. recipes/data/corpus.sh
mkdir -p "$OUT"

# 1. Text, and the languages of the study that have the task.
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  LANGUAGES=(hin mar tam tel)
  REFERENCE=hin
  FOUND=(hin mar tam tel)
  VOCAB=1200
  KB=4
  SEEDS=2
  HIDDEN=32
  LAYERS=1
  # A task of our own: the topic of a sentence is whether it is long.
  "$PYTHON" - "$TRAIN" "$OUT/tasks" "${LANGUAGES[@]}" <<'PY'
import sys
from pathlib import Path

train, tasks = map(Path, sys.argv[1:3])
for name in sys.argv[3:]:
    lines = [line for line in (train / f"{name}.txt").read_text("utf-8").split("\n") if line]
    folder = tasks / name
    folder.mkdir(parents=True, exist_ok=True)
    for split, part in (("train", lines[:16]), ("test", lines[16:24])):
        rows = [f"{i}\t{'long' if len(line) > 80 else 'short'}\t{line}" for i, line in enumerate(part)]
        text = "\n".join(["index_id\tcategory\ttext", *rows]) + "\n"
        (folder / f"{split}.tsv").write_text(text, encoding="utf-8", newline="\n")
PY
  TASKS=$OUT/tasks
  cut_to_same_length
else
  prepare_shared_text
  LANGUAGES=(hi as bn gu kn mai ml mr ne or pa sa sd_Arab ta ur te)
  REFERENCE=hi
  FOUND=(hi as bn gu kn mai ml mr ne or pa sa ta te) # of the paper; others have a table of their own
  FOUND+=(ur sd_Arab ks_Arab ks_Deva mni_Beng mni_Mtei sat en de et)
  TASKS=$DATA/tasks/sib200
fi
PARALLEL=()
for name in "${FOUND[@]}"; do PARALLEL+=("$name=$EVAL/sib200-flores/$name.txt"); done
CORPUS=()
TASK=()
for name in "${LANGUAGES[@]}"; do
  CORPUS+=("$name=$TRAIN/$name.txt")
  TASK+=("$name=$TASKS/${name%_Arab}")
done

# 2. The vocabularies: same text, same size.
# learn NAME OPTION…: one tokenizer, trained unless it is there.
learn() {
  local name=$1
  shift
  if [ ! -d "$OUT/$name" ]; then
    vocabshift train "$@" --vocab-size "${VOCAB:-16000}" --corpus "${CORPUS[@]}" \
      --normalizer fifth-case --max-roman-words 10 --language-bytes "${MB}MB" --draw-seed 1 \
      --sampling-alpha 0.3 --special-tokens '<|end|>' '[MASK]' $THREADS -o "$OUT/$name" \
      --json >"$OUT/$name.json"
  fi
}
learn joint --recipe bpe
learn cluster --recipe cluster-bpe --cluster-by family
learn joint-unigram --recipe unigram
learn cluster-unigram --recipe cluster --cluster-by family

# 3. The models, and the tables.
"$PYTHON" recipes/indic_study/extrinsic.py "$OUT/joint" "$OUT/cluster" "$OUT/joint-unigram" \
  "$OUT/cluster-unigram" --corpus "${CORPUS[@]}" --max-roman-words 10 \
  --language-bytes "${KB:-30}KB" --draw-seed 2 --task "${TASK[@]}" \
  --parallel "${PARALLEL[@]}" --reference "$REFERENCE" --seeds "${SEEDS:-3}" \
  --task-sentences "${TASK_SENTENCES:-150}" --hidden "${HIDDEN:-64}" --layers "${LAYERS:-2}" \
  -o "$OUT/runs"
"$PYTHON" recipes/indic_study/extrinsic_tables.py "$OUT/runs" \
  --size "${VOCAB:-16000} tokens, ${KB:-30} kB of each language, ${LAYERS:-2} layers of ${HIDDEN:-64}" \
  ${RECORD:+--results recipes/indic_study/results.jsonl}
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/indic_study
fi
