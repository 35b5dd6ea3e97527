"""The arms of the study, and every text that they see: what is trained on, and what is held out.

Owns which tokenizer and which rows an arm begins with, how much text of each language a seed
draws, and which documents are scored. Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import vocabshift as vs

BASE = "base"
TOKENIZERS = ("regen", "continued", "repaired", "ist", "matra")
INITS = ("fvt", "random")
SHARE_OF_NEW = 0.8
"""Share of the bytes of continued training that is in new languages; the rest is replay."""

_PIECE_BYTES = 400  # of program text, which is cut at line ends


@dataclass(frozen=True)
class Arm:
    """One way to adapt: a tokenizer, and how the rows of its new tokens are made."""

    tokenizer: str
    init: str | None  # None: nothing is changed

    @property
    def name(self) -> str:
        """As the tables call it."""
        return f"{self.tokenizer}, {self.init}" if self.init else "nothing"

    @property
    def key(self) -> str:
        """As files are called."""
        return f"{self.tokenizer}-{self.init}" if self.init else "nothing"


ARMS = (Arm(BASE, None), *(Arm(name, init) for name in TOKENIZERS for init in INITS))


def find(folder: Path, language: str) -> Path:
    """LANG.txt or LANG.jsonl."""
    files = [folder / f"{language}{suffix}" for suffix in (".txt", ".jsonl")]
    return next((file for file in files if file.exists()), files[0])


@lru_cache(maxsize=4)
def _drawn(train: Path, sizes: tuple[tuple[str, int], ...], seed: int) -> tuple[str, ...]:
    texts = {language: documents([find(train, language)]) for language, _ in sizes}
    corpus = vs.Corpus.from_texts(texts).limit_bytes(dict(sizes), seed=seed)
    return tuple(text for _, text in corpus.texts())


def drawn(train: Path, sizes: dict[str, int], seed: int) -> tuple[str, ...]:
    """So many bytes of each language, the same documents for every arm of a seed."""
    return _drawn(train, tuple(sizes.items()), seed)


def adaptation_sizes(home: list[str], new: list[str], n_bytes: int) -> dict[str, int]:
    """Bytes by language of continued training: new languages, and replay of the old ones."""
    of_new = {language: round(n_bytes * SHARE_OF_NEW / len(new)) for language in new}
    of_home = {language: round(n_bytes * (1 - SHARE_OF_NEW) / len(home)) for language in home}
    return of_new | of_home


def held_out(evaluation: Path, languages: list[str], n_documents: int) -> dict[str, list[str]]:
    """`n_documents` of each language, evenly spaced: FLORES sentences, and pieces of code.

    Sentences of one number say the same in all languages.
    """
    texts = {}
    for language in languages:
        file = find(evaluation / "sib200-flores", language)
        files = [file] if file.exists() else sorted((evaluation / language).iterdir())
        found = documents(files)
        n = min(n_documents, len(found))
        texts[language] = [found[i * len(found) // n] for i in range(n)]
    return texts


def documents(files: list[Path]) -> list[str]:
    """Documents of files: lines of a text, pieces of program text."""
    is_code = any(file.suffix != ".txt" for file in files) or len(files) > 1
    corpus = vs.Corpus.from_files(
        {"text": list(map(str, files))}, documents="file" if is_code else "line"
    )
    texts = [text for _, text in corpus.texts()]
    return [piece for text in texts for piece in pieces(text)] if is_code else texts


def pieces(text: str) -> Iterator[str]:
    """Whole lines of a file, about `_PIECE_BYTES` each."""
    lines: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        lines.append(line)
        size += len(line.encode("utf-8"))
        if size >= _PIECE_BYTES:
            yield "".join(lines)
            lines, size = [], 0
    if size:
        yield "".join(lines)
