"""The options of a transfer, which takes a model and two tokenizers: names, meanings, defaults.

Owns the values, spelled once for `transfer`, `transfer_folder`, the public verb and the command
line. Imports nothing, so that the command line can read the defaults. `checks` and `methods` check
and open them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from vocabshift.surgery.omp import Donor
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.id_map import TokenIdMap

AUTO = "auto"
"""The initializer that a `score` finds; see `methods.candidates`."""

DISTILL = "distill"
"""The initializer that runs the model: rows are learned from its own reading of the old tokens."""

Score = Callable[[Any, Any], float]
"""(model, its tokenizer) -> a number, such as bits per byte: lower is better."""


@dataclass(frozen=True, kw_only=True)
class DistillOptions:
    """How "distill" learns rows (Token Distillation, arXiv 2505.20133)."""

    start: Annotated[str, "INIT"] = "fvt"
    """Initializer of the rows that learning starts from; tokens that the corpus lacks keep it."""
    snippets: int = 100
    """Snippets of the corpus wanted for each new token."""
    snippet_tokens: int = 100
    """New tokens in a snippet, about."""
    tokens: int = 2_000_000
    """New tokens read in each epoch, at most; if more are wanted, every new token gets fewer
    snippets."""
    epochs: int = 1
    """Times that every snippet is read."""
    step_tokens: int = 1024
    """New tokens read in one step, about; fewer, larger steps learn better rows than many small
    ones."""
    batch_tokens: int = 2048
    """Tokens that the model reads at once, padding included; decides about memory alone."""
    learning_rate: float = 0.015
    """Largest change of a number in one step, relative to the usual size of the numbers of old
    rows."""
    layer: Annotated[int, "any"] = -1
    """Hidden states that are compared: 0 is the embeddings, -1 the last layer."""
    hidden_weight: float = 1.0
    """Of the distance of hidden states, which is relative to their length."""
    next_token_weight: float = 1.0
    """Of the next-token loss, by which the rows of the head learn; 0: an untied head keeps the
    start."""
    device: Annotated[str | None, "DEVICE"] = None
    """Where a saved model runs: cuda, mps, …; on the CPU unless given."""


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
    """For "focus" and "distill": text of the new tokenizer's languages."""
    score: Score | None = None
    """For "auto": what a try is worth."""
    overrides: str | Path | Mapping[str, Any] | None = None
    """New token -> old token, or a list of old tokens; a table, or a JSON or TOML file of it."""
    reserve_dummies: int = 0
    """Special tokens that are added to the new tokenizer and that no text has."""
    distill: DistillOptions = DistillOptions()
    """For "distill": how rows are learned."""
    complete_bytes: bool = False
    """Tokens for the bytes that the new tokenizer lacks are added to it; BPE alone."""
