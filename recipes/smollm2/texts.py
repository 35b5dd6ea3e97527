"""Texts to hold two readers of a model against each other.

    python recipes/smollm2/texts.py DATA/eval -o texts.json

Twenty texts: three languages, code, oddities. With `--lines N` so many lines of every language of
FLORES, and the oddities; with `--prompts` the beginnings of twenty English lines, and with `--alike
FOLDER FOLDER` of those alone that two tokenizers cut alike.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

FIRST = 100  # line of FLORES
PROMPTS, PROMPT_LENGTH = 20, 60  # characters
LINES = {"en": 6, "de": 4, "hi": 4}
CODE = (200, 900, 4000)  # lines
LINES_OF_CODE = 25
ODD = (
    "In 2024, 1,234,567 people paid $89.99 — or 100%!\n\n\tTabbed\r\n  and   spaced  ",
    "naïve café Ωμέγα 日本語テスト 🙂👍🏽 don't they'LL",
    "x" * 50 + " 3.14159 ٣٤ ",
)


def lines(folder: Path, n: int) -> list[str]:
    """The first lines of every language, and the oddities."""
    files = sorted((folder / "sib200-flores").glob("*.txt"))
    texts = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:n]]
    return [*(text for text in texts if text), *ODD]


def prompts(folder: Path, alike: Sequence[Path]) -> list[str]:
    """Beginnings of English lines, cut after a word."""
    file = folder / "sib200-flores" / "en.txt"
    lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line]
    found = [line[:PROMPT_LENGTH].rsplit(" ", 1)[0] for line in lines]
    if alike:
        one, other = (Tokenizer.from_file(str(place / "tokenizer.json")) for place in alike)
        found = [text for text in found if one.encode(text).tokens == other.encode(text).tokens]
    return found[:PROMPTS]


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DATA/eval")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--lines", type=int, help="of every language")
    parser.add_argument("--prompts", action="store_true")
    parser.add_argument("--alike", nargs=2, type=Path, default=(), metavar="FOLDER")
    args = parser.parse_args()
    if args.lines or args.prompts:
        found = prompts(args.folder, args.alike) if args.prompts else lines(args.folder, args.lines)
        args.out.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
        return
    texts = []
    for language, n in LINES.items():
        file = args.folder / "sib200-flores" / f"{language}.txt"
        texts += file.read_text(encoding="utf-8").split("\n")[FIRST : FIRST + n]
    code = (args.folder / "code" / "python.txt").read_text(encoding="utf-8").split("\n")
    texts += ["\n".join(code[start : start + LINES_OF_CODE]) for start in CODE]
    args.out.write_text(json.dumps([*texts, *ODD], ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
