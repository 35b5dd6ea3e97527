#!/usr/bin/env bash
# Whether tokens should keep syllables whole (`--grapheme-safe`): IST with and without it, at two sizes,
# evaluated by fertility, by morphemes, and by the bits per byte of small decoders; and the recipe
# `vocabshift` at the larger size, by fertility, its spread over languages, and cut graphemes.
#
#   RECORD=1 recipes/ist/syllables.sh                     an hour of one core
#   recipes/ist/syllables.sh --smoke                      our own sample texts
#
# What OUT holds already is not made again. Variables, with their defaults:
#   DATA=../shared/data-unpacked OUT=runs/ist-syllables SIZES="64000 200000" THREADS=all
#   MB=0              of all languages together, for the tokenizers; 0: all the text
#   KB=120            of each language, for the decoders
#   SEEDS=3 HIDDEN=64 LAYERS=2
#   RECORD=           anything: the rows go into results.jsonl here, and the tables into README.md
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/ist-syllables}
MB=${MB:-0}
SEED=1
THREADS=${THREADS:+-j $THREADS}
. recipes/data/corpus.sh
mkdir -p "$OUT"

MORPHEMES=()
if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  MB=0 SIZES="1200 2000" KB=4 SEEDS=2 HIDDEN=32 LAYERS=1
  LANGUAGES=(hin tam)
  cut_to_same_length
  # Test sentences in the form of a task: lines of ours.
  for name in "${LANGUAGES[@]}"; do
    mkdir -p "$OUT/tasks/$name"
    awk 'BEGIN { print "index_id\tcategory\ttext" } NR <= 4 { print NR "\tany\t" $0 }' \
      "$EVAL/sib200-flores/$name.txt" >"$OUT/tasks/$name/test.tsv"
  done
  TASKS=$OUT/tasks
  WEIGHTS=()
else
  prepare_shared_text
  LANGUAGES=(hi bn gu kn ml mr or pa ta te)
  TASKS=$DATA/tasks/sib200
  WEIGHTS=(en=4)
  for pair in gu=gujarati ta=tamil ur=urdu; do
    MORPHEMES+=("${pair%%=*}=$DATA/tasks/morphscore/${pair#*=}_morph_data.csv")
  done
fi
lines_into PARALLEL specs "$EVAL/sib200-flores"
lines_into CORPUS specs "$(sampled "$MB")" ${WEIGHTS[@]+"${WEIGHTS[@]}"}
TASK=()
TEXT=()
for name in "${LANGUAGES[@]}"; do
  TASK+=("$name=$TASKS/$name")
  TEXT+=("$name=$TRAIN/$name.txt")
done

SUBJECTS=()
for size in ${SIZES:-64000 200000}; do
  for name in free safe; do
    option=()
    if [ "$name" = safe ]; then option=(--grapheme-safe); fi
    trained "$name-$size" --recipe ist --pre-tokenizer indic --stage2-pre-tokenizer indic-stage2 \
      --sampling-alpha 0.7 --normalizer nfc --special-tokens '<|end|>' --vocab-size "$size" \
      ${option[@]+"${option[@]}"}
    SUBJECTS+=("$OUT/$name-$size")
  done
done
vocabshift evaluate "${SUBJECTS[@]}" --text "${PARALLEL[@]}" $THREADS --metrics fertility \
  --output "$OUT/fertility.jsonl" --force >/dev/null
# The recipe `vocabshift`, which weighs languages itself, at the last size.
lines_into CORPUS specs "$(sampled "$MB")"
trained own-free --recipe vocabshift --vocab-size "$size"
trained own-safe --recipe vocabshift --vocab-size "$size" --grapheme-safe
vocabshift evaluate "$OUT"/own-{free,safe} --text "${PARALLEL[@]}" --parallel $THREADS \
  --metrics fertility gini grapheme_cut_rate --output "$OUT/own.jsonl" --force >/dev/null
if [ ${#MORPHEMES[@]} != 0 ]; then
  vocabshift evaluate "${SUBJECTS[@]}" --morphemes "${MORPHEMES[@]}" --leading-space $THREADS \
    --metrics morph_score morph_border_precision --output "$OUT/morphemes.jsonl" --force >/dev/null
fi
"$PYTHON" recipes/indic_study/extrinsic.py "${SUBJECTS[@]}" --kinds decoder --corpus "${TEXT[@]}" \
  --language-bytes "${KB:-120}KB" --draw-seed 2 --task "${TASK[@]}" --seeds "${SEEDS:-3}" \
  --hidden "${HIDDEN:-64}" --layers "${LAYERS:-2}" -o "$OUT/runs"
"$PYTHON" recipes/ist/syllables.py "$OUT" --sizes ${SIZES:-64000 200000} \
  ${MORPHEMES[@]+--morphemes "${MORPHEMES[@]}"} \
  --size "$([ "$MB" = 0 ] && echo all the text || echo "$MB MB of text"), decoders ${KB:-120} kB of each language, ${LAYERS:-2} layers of ${HIDDEN:-64}" \
  ${RECORD:+--results recipes/ist/results.jsonl}
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/ist
fi
