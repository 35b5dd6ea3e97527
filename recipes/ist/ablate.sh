#!/usr/bin/env bash
# The ablations of IST's paper (Tables 1, 9, 10, 12 to 16) and what each ingredient of our own recipe
# brings: some thirty tokenizers of one size, learned from one sample of the text. One command:
#
#   RECORD=1 recipes/ist/ablate.sh                        64,000 tokens, 100 MB: six minutes of two cores
#   VOCAB=200000 MB=0 OUT=runs/ablation-200k recipes/ist/ablate.sh
#   recipes/ist/ablate.sh --smoke                         our own sample texts
#
# A tokenizer that OUT holds already is not trained again. Variables, with their defaults:
#   DATA=../shared/data-unpacked OUT=runs/ist-ablation VOCAB=64000 SEED=1 WEIGHTS="en=4" THREADS=all
#   MB=100            of all languages together; 0: all the text
#   DATA_SIZES="25 50 200 0"   MB of Table 13, beside MB itself
#   SIZES="128000 180000 200000 225000 250000"   tokens of Table 15, beside VOCAB itself
#   RECORD=           anything: the rows go into results.jsonl here, and the tables into README.md
#   PYTHON=python3
set -euo pipefail
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
DATA=${DATA:-../shared/data-unpacked}
OUT=${OUT:-runs/ist-ablation}
VOCAB=${VOCAB:-64000}
MB=${MB:-100}
SEED=${SEED:-1}
SIZES=${SIZES:-128000 180000 200000 225000 250000}
DATA_SIZES=${DATA_SIZES:-25 50 200 0}
THREADS=${THREADS:+-j $THREADS}
. recipes/data/corpus.sh
mkdir -p "$OUT"

if [ "${1:-}" = --smoke ]; then
  prepare_sample_texts
  VOCAB=2000 MB=0 SIZES="2500" DATA_SIZES="0.1" WEIGHTS=eng=4
  SCRIPTS=(Latin:eng Devanagari:hin Tamil:tam)
else
  prepare_shared_text
  SCRIPTS=(Bengali:as,bn Devanagari:hi,mai,mr,sa Telugu:te)
fi
read -r -a WEIGHTS <<<"${WEIGHTS-en=4}"
lines_into PARALLEL specs "$EVAL/sib200-flores"
lines_into CODE code_specs
SAMPLE=$(sampled "$MB")
lines_into WEIGHTED specs "$SAMPLE" ${WEIGHTS[@]+"${WEIGHTS[@]}"}
lines_into UNWEIGHTED specs "$SAMPLE"

SUBJECTS=()
# run NAME [OPTION…]: the tokenizer of these options.
run() {
  SUBJECTS+=("$OUT/$1")
  trained "$1" --vocab-size "$VOCAB" "${@:2}"
}
TABLES=()
# table NAME ROW=TOKENIZER…: which tokenizers are the rows of a table of the README.
table() { TABLES+=(--table "$@"); }

# 1. The paper's own settings: LLaMA-4's pattern, NFKC, 90 % of the tokens in stage 1.
PAPER=(--recipe ist --pre-tokenizer o200k --normalizer nfkc --sampling-alpha 0.7)
WORDS=(--recipe bpe --pre-tokenizer o200k --normalizer nfkc --sampling-alpha 0.7) # stage 1 alone
CORPUS=("${WEIGHTED[@]}")
run paper "${PAPER[@]}"
run words "${WORDS[@]}"
run gpt2 --recipe bpe --pre-tokenizer gpt2 --normalizer nfkc --sampling-alpha 0.7
table ist-1 GPT-2=gpt2 LLaMA-4=words

# 2. Vocabulary by script: learned apart and stacked, each alone, or all at once (Table 9).
run stacked --recipe stacked --pre-tokenizer o200k --normalizer nfkc --sampling-alpha 0.7
ALONE=()
for pair in "${SCRIPTS[@]}"; do
  script=${pair%%:*} languages=${pair#*:}
  size=$("$PYTHON" recipes/ist/facts.py budget "$OUT/stacked" "$script")
  CORPUS=()
  for spec in "${WEIGHTED[@]}"; do
    case ",$languages," in *",${spec%%=*},"*) CORPUS+=("$spec") ;; esac
  done
  run "alone-$script" "${WORDS[@]}" --vocab-size "$size"
  ALONE+=("Individual=alone-$script:$languages")
done
CORPUS=("${WEIGHTED[@]}")
table ist-9 "${ALONE[@]}" Merged=stacked "One corpus=words"

# 3. One stage with BoundlessBPE's rule, or two (Table 12).
run boundless --recipe boundless --merge-pattern '\p{L}' --normalizer nfkc --sampling-alpha 0.7
table ist-12 IST-BR=boundless IST=paper

# 4. Where stage 1 ends (Table 14), the size (Table 15), and the normal form (Table 16).
for share in 60 75 80 85 95; do run "transition-$share" "${PAPER[@]}" --transition "0.$share"; done
table ist-14 60=transition-60 75=transition-75 80=transition-80 85=transition-85 90=paper \
  95=transition-95
ROWS=("$VOCAB=paper")
for size in $SIZES; do
  run "size-$size" "${PAPER[@]}" --vocab-size "$size"
  ROWS+=("$size=size-$size")
done
table ist-15 "${ROWS[@]}"
run nfc "${PAPER[@]}" --normalizer nfc
run nfd "${PAPER[@]}" --normalizer nfd
run as-it-is --recipe ist --pre-tokenizer o200k --sampling-alpha 0.7
table ist-16 none=as-it-is NFC=nfc NFD=nfd NFKC=paper

# 5. What each ingredient of our own recipe brings: all of it, then each left out.
ALL=(--recipe ist --pre-tokenizer indic --stage2-pre-tokenizer indic-stage2 --sampling-alpha 0.7
  --normalizer nfc)
run all "${ALL[@]}"
run no-superwords "${ALL[@]}" --transition 1
run no-normalizer --recipe ist --pre-tokenizer indic --stage2-pre-tokenizer indic-stage2 \
  --sampling-alpha 0.7
run no-sampling --recipe ist --pre-tokenizer indic --stage2-pre-tokenizer indic-stage2 --normalizer nfc
run grapheme-safe "${ALL[@]}" --grapheme-safe
CORPUS=("${UNWEIGHTED[@]}")
run no-weights "${ALL[@]}"
run none-of-these --recipe ist --transition 1
table ingredients all=all no-superwords=no-superwords no-normalizer=no-normalizer joiners-cut=nfc \
  no-sampling=no-sampling no-weights=no-weights none-of-these=none-of-these \
  grapheme-safe=grapheme-safe

# 6. How much text stage 1 needs (Table 13).
ROWS=()
for size in $DATA_SIZES; do
  SAMPLE=$(sampled "$size")
  lines_into CORPUS specs "$SAMPLE" ${WEIGHTS[@]+"${WEIGHTS[@]}"}
  run "text-$size" "${WORDS[@]}"
  ROWS+=("$("$PYTHON" recipes/ist/facts.py megabytes "$OUT/text-$size")=text-$size")
done
ROWS+=("$("$PYTHON" recipes/ist/facts.py megabytes "$OUT/words")=words")
table ist-13 "${ROWS[@]}"

# 7. Fertility of all of them, and the tables.
vocabshift evaluate "${SUBJECTS[@]}" --text "${PARALLEL[@]}" "${CODE[@]}" $THREADS \
  --metrics fertility --output "$OUT/measured.jsonl" --force >/dev/null
rm -f "$OUT/results.jsonl"
"$PYTHON" recipes/data/rows.py "$OUT/measured.jsonl" "${TABLES[@]}" -o "$OUT/results.jsonl" \
  --trained "$OUT" --command "recipes/ist/ablate.sh" --size "$VOCAB tokens and ${MB/#0/all} MB where the table says no other" \
  ${RECORD:+--results recipes/ist/results.jsonl}
"$PYTHON" recipes/ist/facts.py rows "$OUT/paper" --text "${PARALLEL[@]}" "${CODE[@]}" \
  ${RECORD:+--results recipes/ist/results.jsonl} >>"$OUT/results.jsonl"
if [ -n "${RECORD:-}" ]; then
  "$PYTHON" recipes/data/record.py recipes/ist
fi
