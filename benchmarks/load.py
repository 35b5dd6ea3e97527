"""Load a tokenizer and encode its first text, in new processes, beside the tokenizers library.

    python benchmarks/load.py --tokenizer FOLDER --runs 3

Both are imported before the clock starts; what they import later, while they load, is in the time.
"again" is the same in a process that has loaded the tokenizer before. The checksum is that of the
ids of the first text. Modules are read as byte code, as those of an installed package are, even
where PYTHONDONTWRITEBYTECODE is set: a round before the first makes it.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import measure

FIRST_TEXT = "It begins here. यहाँ से शुरू होता है। இங்கே தொடங்குகிறது 123"


def _vocabshift(folder: Path) -> list[int]:
    import vocabshift as vs

    return [int(i) for i in vs.Encoder.from_pretrained(folder).encode(FIRST_TEXT)]


def _tokenizers(folder: Path) -> list[int]:
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return list(backend.encode(FIRST_TEXT, add_special_tokens=False).ids)


LOADERS = {"vocabshift": _vocabshift, "tokenizers": _tokenizers}


def _work(folder: Path, *, name: str, again: bool) -> Callable[[], Callable[[], int]]:
    __import__(name)
    if name == "vocabshift":
        import vocabshift

        _ = vocabshift.Encoder  # what `from vocabshift import Encoder` imports
    if again:
        LOADERS[name](folder)
        gc.collect()

    def timed() -> Callable[[], int]:
        ids = LOADERS[name](folder)
        return lambda: measure.checksum_of(ids)

    return timed


def main() -> None:
    """Print a table for a first load, and one for a later load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder of a tokenizer.json")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    measure.run_once(partial(_work, name="vocabshift", again=False), args.tokenizer)
    n_bytes = (args.tokenizer / "tokenizer.json").stat().st_size
    for again in (False, True):
        works: dict[str, measure.Work] = {
            name: partial(_work, name=name, again=again) for name in LOADERS
        }
        title = f"Loading: {args.tokenizer.name}, {'again' if again else 'first'}"
        print(measure.report(title, measure.compare(works, args.tokenizer, args.runs), n_bytes))
    print(measure.machine())


if __name__ == "__main__":
    main()
