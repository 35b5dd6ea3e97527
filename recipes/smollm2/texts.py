"""Twenty texts to hold two readers of a model against each other: three languages, code, oddities.

python recipes/smollm2/texts.py DATA/eval -o texts.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

FIRST = 100  # line of FLORES
LINES = {"en": 6, "de": 4, "hi": 4}
CODE = (200, 900, 4000)  # lines
LINES_OF_CODE = 25
ODD = (
    "In 2024, 1,234,567 people paid $89.99 — or 100%!\n\n\tTabbed\r\n  and   spaced  ",
    "naïve café Ωμέγα 日本語テスト 🙂👍🏽 don't they'LL",
    "x" * 50 + " 3.14159 ٣٤ ",
)


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DATA/eval")
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    texts = []
    for language, n in LINES.items():
        file = args.folder / "sib200-flores" / f"{language}.txt"
        texts += file.read_text(encoding="utf-8").split("\n")[FIRST : FIRST + n]
    code = (args.folder / "code" / "python.txt").read_text(encoding="utf-8").split("\n")
    texts += ["\n".join(code[start : start + LINES_OF_CODE]) for start in CODE]
    args.out.write_text(json.dumps([*texts, *ODD], ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
