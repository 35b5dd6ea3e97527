"""The options of a transfer, which takes a model and two tokenizers: names, meanings, defaults.

Owns the values, spelled once for `transfer`, `transfer_folder`, the public verb and the command
line. Imports nothing, so that the command line can read the defaults. `checks` and `methods` check
and open them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabshift.surgery.omp import Donor
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.id_map import TokenIdMap

AUTO = "auto"
"""The initializer that a `score` finds; see `methods.candidates`."""

Score = Callable[[Any, Any], float]
"""(model, its tokenizer) -> a number, such as bits per byte: lower is better."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TransferOptions:
    """How rows and ids are moved. Paths and texts may be given; `opened` reads them."""

    init: str = "fvt"
    """Name of the initializer of new rows (`methods.INITIALIZERS`), or "auto"."""
    seed: int = 0
    """Of what is random in an initializer."""
    pad_to_multiple_of: int | None = None
    """Rows become a multiple of it; None: padded as the model was before."""
    id_map: TokenIdMap | str | Path | None = None
    """Which old id is which new one; None: the `token_map.json` in the new tokenizer's folder."""
    donor: Donor | str | Path | None = None
    """For "omp": a model that has the new tokens."""
    corpus: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = None
    """For "focus": text of the new tokenizer's languages."""
    score: Score | None = None
    """For "auto": what a try is worth."""
    overrides: str | Path | Mapping[str, Any] | None = None
    """New token -> old token, or a list of old tokens; a table, or a JSON or TOML file of it."""
    reserve_dummies: int = 0
    """Special tokens that are added to the new tokenizer and that no text has."""
    complete_bytes: bool = False
    """Tokens for the bytes that the new tokenizer lacks are added to it; BPE alone."""
