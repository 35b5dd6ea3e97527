"""Lines that normalizer `indic-study` makes equal to what the Indic study made of them.

    pip install indic-nlp-library==0.92
    python recipes/normalization/beside_indicnlp.py sib200-flores -o indicnlp.jsonl

The study's side is the IndicNLP library with its defaults, then the fifth case; both sides are
compared in NFC. Languages are those that the library has rules for, without Urdu, for which it
needs a further package. `changed`: lines that the study's side changes, up to NFC.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from vocabshift.text.normalize import normalizer_function

CODES = {"asm": "as", "ben": "bn", "guj": "gu", "hin": "hi", "kan": "kn", "mal": "ml", "mar": "mr"}
CODES |= {"npi": "ne", "ory": "or", "pan": "pa", "tam": "ta", "tel": "te"}
"""The library's codes of our own sample texts; files of FLORES have them already."""


def main() -> None:
    """Write a row for each language."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", metavar="DIR", type=Path, help="LANG.txt")
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    from indicnlp.normalize.indic_normalize import IndicNormalizerFactory

    factory = IndicNormalizerFactory()
    nfc, fifth_case, ours = map(normalizer_function, ("nfc", "fifth-case", "indic-study"))
    rows = []
    for file in sorted(args.texts.glob("*.txt")):
        code = CODES.get(file.stem, file.stem)
        if code == "ur" or not factory.is_language_supported(code):
            continue
        theirs = factory.get_normalizer(code).normalize
        lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]
        expected = [nfc(fifth_case(theirs(line))) for line in lines]
        equal = [nfc(ours(line)) == goal for line, goal in zip(lines, expected, strict=True)]
        changed = [nfc(line) != goal for line, goal in zip(lines, expected, strict=True)]
        row = {"what": "indicnlp", "language": file.stem, "lines": len(lines), "equal": sum(equal)}
        both = sum(a and b for a, b in zip(equal, changed, strict=True))
        rows.append(row | {"changed": sum(changed), "changed_equal": both})
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    args.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
