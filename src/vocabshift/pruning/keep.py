"""`--keep`: which tokens may not go, in the words of the user.

Owns the grammar: a token as the vocabulary spells it or as its text, `file:PATH` (one token a
line), `script:Deva` (or Unicode's name), `language:LABEL` (what the text of that label uses).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vocabshift.bpe.splits import Flags, Ids
from vocabshift.text.languages import script_name


@dataclass(frozen=True)
class Keep:
    """What to keep, taken apart; checked only against what a tokenizer has."""

    tokens: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # Unicode names
    languages: tuple[str, ...] = ()  # labels of the corpus


def parse_keep(values: Iterable[str]) -> Keep:
    """Take the values apart and read the files; ValueError for an empty one."""
    if isinstance(values, str):
        raise TypeError("keep is a str; give a list of str")
    tokens: list[str] = []
    scripts: list[str] = []
    languages: list[str] = []
    for value in values:
        kind, colon, rest = value.partition(":")
        if not value or (colon and kind in ("file", "script", "language") and not rest):
            raise ValueError(
                f"keep {value!r} names nothing; give a token, file:PATH, script:Deva or "
                "language:LABEL"
            )
        if colon and kind == "file":
            lines = Path(rest).read_text(encoding="utf-8").split("\n")
            tokens += [line.removesuffix("\r") for line in lines if line.removesuffix("\r")]
        elif colon and kind == "script":
            scripts.append(script_name(rest))
        elif colon and kind == "language":
            languages.append(rest)
        else:
            tokens.append(value)
    return Keep(tuple(tokens), tuple(scripts), tuple(languages))


def check_languages(keep: Keep, labels: Iterable[str]) -> None:
    """ValueError where a language to keep is no label of the corpus."""
    known = list(labels)
    for label in keep.languages:
        if label not in known:
            have = ", ".join(known) or "none; label files as lang=PATH"
            raise ValueError(f"keep language:{label}: the corpus has no {label!r}; it has: {have}")


def kept_tokens(
    keep: Keep, vocab: Mapping[str, int], find_text: Callable[[str], int | None], rows: int
) -> Flags:
    """(rows,) the ids of the tokens named one by one; ValueError for one that is not there.

    `find_text`: the id of the token whose text that is.
    """
    kept = np.zeros(rows, dtype=bool)
    for token in keep.tokens:
        token_id = vocab.get(token)
        if token_id is None:
            token_id = find_text(token)
        if token_id is None:
            raise ValueError(
                f"keep {token!r}: the vocabulary has no such token; write it as the vocabulary "
                "does, or as the text that it stands for"
            )
        kept[token_id] = True
    return kept


def kept_scripts(keep: Keep, names: list[str], classes: Ids) -> Flags:
    """(rows,) the ids of the tokens in the scripts to keep; ValueError where there are none."""
    kept = np.zeros(len(classes), dtype=bool)
    present = {names[i] for i in np.unique(classes[classes >= 0]).tolist()}
    for name in keep.scripts:
        if name not in present:
            raise ValueError(
                f"keep script:{name}: no token is in that script; the vocabulary has "
                f"{', '.join(sorted(present))}"
            )
        kept |= classes == names.index(name)
    return kept
