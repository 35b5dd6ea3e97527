"""What each rule of normalization changes in each language, into OUT/results.jsonl.

    python recipes/normalization/measure.py OUT --train DIR --text DIR --kb 600 --vocab-size 32000

Rows (`what`): "changed", words, characters and bytes of one text before and after one rule;
"fertility", tokens of the parallel text by a BPE tokenizer that learned from normalized text, and
the words of the text as it was and as normalized (`rule` names a group of rules; each language gets
its own Arabic letters); "made", checksums of parallel text and tokenizers (`data/rows.py`).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

import vocabshift as vs
from vocabshift.text.normalize import normalizer_function

sys.path.append(str(Path(__file__).parents[1] / "data"))
import record
from rows import sources_of

KEY = ("what", "text", "language", "rule")
SEED = 1
NOT_INDIAN = {"code", "de", "en", "eng", "et"}
RULES = (
    *("nfc", "spaces", "punctuation", "joiners", "no-joiners", "nukta", "vowel-signs", "dandas"),
    *("visarga", "fifth-case", "arabic-forms", "arabic-letters", "arabic-letters:LANGUAGE"),
    *("arabic-marks", "arabic-joiners", "indic-study"),
)
GROUPS = {
    "none": None,
    "spaces, punctuation": "spaces+punctuation",
    "joiners, nukta, vowel signs": "joiners+nukta+vowel-signs",
    "dandas, visarga": "dandas+visarga",
    "fifth case": "fifth-case",
    "Arabic forms, letters": "arabic-forms+arabic-letters:LANGUAGE+arabic-joiners",
    "these and Arabic marks": "arabic-forms+arabic-letters:LANGUAGE+arabic-joiners+arabic-marks",
    "all": "indic-study+arabic-letters:LANGUAGE",
}
ORTHOGRAPHY = {"ur": "Urdu", "sd_Arab": "Sindhi", "ks_Arab": "Kashmiri"}
"""Other languages have no rules of Arabic letters of their own."""


def normalizer(rule: str | None, language: str) -> Callable[[str], str]:
    """The function of a rule in one language."""
    steps = [] if rule is None else rule.split("+")
    own = ORTHOGRAPHY.get(language)
    if own is None:
        steps = [step for step in steps if not step.endswith(":LANGUAGE")]
    if own == "Kashmiri":  # whose marks are its vowels
        steps = [step for step in steps if step != "arabic-marks"]
    name = "+".join(step.replace("LANGUAGE", own or "") for step in steps)
    return normalizer_function(name or None) or str


def changed(lines: list[str], normalize: Callable[[str], str]) -> dict[str, int]:
    """Counts of one text before and after; an edit is one character of Levenshtein's."""
    words = Counter(word for line in lines for word in line.split())
    edits = n_changed = 0
    for word, count in words.items():
        after = normalize(word)
        if after != word:
            n_changed += count
            edits += count * Levenshtein.distance(word, after)
    return {
        "words": words.total(),
        "words_changed": n_changed,
        "characters": sum(len(word) * count for word, count in words.items()),
        "characters_changed": edits,
        "bytes": sum(len(line.encode()) for line in lines),
        "bytes_after": sum(len(normalize(line).encode()) for line in lines),
    }


def sample(lines: list[str], limit: int) -> list[str]:
    """Lines drawn at random until they have so many bytes."""
    drawn = random.Random(SEED).sample(lines, len(lines))
    size, kept = 0, []
    for line in drawn:
        size += len(line.encode()) + 1
        if size > limit:
            break
        kept.append(line)
    return kept


def read(path: Path) -> list[str]:
    """Lines that are not blank."""
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def main() -> None:
    """Measure, and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=Path, required=True, help="LANG.txt")
    parser.add_argument("--text", type=Path, required=True, help="LANG.txt, parallel")
    parser.add_argument("--kb", type=int, default=600, help="of each language")
    parser.add_argument("--vocab-size", type=int, default=32000)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    names = sorted({file.stem for file in args.train.glob("*.txt")} - NOT_INDIAN)
    train = {name: sample(read(args.train / f"{name}.txt"), args.kb * 1000) for name in names}
    texts = {name: args.text / f"{name}.txt" for name in names}
    parallel = {name: read(file) for name, file in texts.items() if file.exists()}
    rows: list[dict[str, Any]] = []
    for kind, lines_of in (("parallel", parallel), ("train", train)):
        for language, lines in lines_of.items():
            for rule in RULES:
                row = {"what": "changed", "text": kind, "language": language, "rule": rule}
                facts = changed(lines, normalizer(rule, language))
                if rule == RULES[-1] or facts["words_changed"]:  # most rules are of one script
                    rows.append(row | facts)
    trained: dict[str, Any] = {}
    for group, rule in GROUPS.items():
        normalize = {language: normalizer(rule, language) for language in train}
        learned = {
            language: [normalize[language](line) for line in lines]
            for language, lines in train.items()
        }
        trainer = vs.BpeTrainer(vocab_size=args.vocab_size, sampling_alpha=0.3)
        tokenizer = trained[group] = trainer.train(vs.Corpus.from_texts(learned))
        for language, lines in parallel.items():
            after = [normalize[language](line) for line in lines]
            rows.append(
                {
                    "what": "fertility",
                    "text": "parallel",
                    "language": language,
                    "rule": group,
                    "vocab_size": args.vocab_size,
                    "tokens": len(vs.Encoder(tokenizer).encode_batch(after)[0]),
                    "words": sum(len(line.split()) for line in lines),
                    "words_after": sum(len(line.split()) for line in after),
                }
            )
        print(f"{group}: trained", file=sys.stderr)
    rows.append({"what": "made", **sources_of(parallel, trained)})
    record.add(args.out / "results.jsonl", rows, key=KEY)


if __name__ == "__main__":
    main()
