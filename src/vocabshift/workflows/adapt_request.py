"""The request to adapt a model, checked before anything is learned.

Owns which models can be adapted, which options are refused early, and how text is split into
learning and held-out text. Learns and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vocabshift.errors import CorpusError, InvalidTokenizerError
from vocabshift.extension.named_tokens import AnyKind
from vocabshift.extension.options import ExtensionOptions, repaired
from vocabshift.models.folder import load_own_tokenizer, require_model
from vocabshift.pruning.options import PruningOptions, parse_keep
from vocabshift.surgery.distill import check_saved
from vocabshift.surgery.methods import check_init
from vocabshift.surgery.options import DISTILL, TransferOptions
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import EVERY, hold_out
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer


def open_model(model: str | Path, *, only_named: bool = False) -> tuple[Path, AnyKind]:
    """Open a model's folder and its tokenizer, which must be of a kind that can learn.

    `only_named`: of any kind, as nothing is learned from text.
    """
    folder = require_model(model, advice="adapt_tokenizer takes a tokenizer alone")
    old = load_own_tokenizer(folder)
    if not isinstance(old, Tokenizer) and not only_named:
        raise InvalidTokenizerError(
            f"the tokenizer of {model} is {old.kind}, which learns no tokens from text; give words "
            "or special tokens by name, or prune it and transfer the model to make it smaller"
        )
    return folder, old


def check_options(
    old: AnyKind,
    n_tokens: int | None,
    pre_tokenizer: str,
    options: Mapping[str, Any],
    *,
    folder: Path,
    moving: TransferOptions,
) -> None:
    """Refuse early the options that pruning and extending would refuse after reading the model.

    And those of the transfer; "distill" reads the model for it.
    """
    first = n_tokens or 1
    pruning = {key: options[key] for key in ("order", "keep") if key in options}
    extending = {key: options[key] for key in options.keys() - {"first", *pruning}}
    ExtensionOptions(n_tokens=first, pre_tokenizer=pre_tokenizer, **extending)
    PruningOptions(
        order=pruning.get("order", "leaf-frequency"),
        n_tokens=first,
        keep=parse_keep(pruning.get("keep", ())),
    )
    if pre_tokenizer == "repaired":
        repaired(as_tokenizer(old))
    check_init(moving)
    if moving.init == DISTILL:
        check_saved(folder, moving)


def split_corpus(corpus: Corpus, text: Any, flag: str = "--text") -> tuple[Corpus, Corpus, str]:
    """The text to learn from, the held-out text, and a description of the latter."""
    if text is not None:
        judged = text if isinstance(text, Corpus) else Corpus.from_texts(text)
        judged.require_text()
        return corpus, judged, "text of its own"
    learned, judged = hold_out(corpus)
    labels: list[str | None] = [*corpus.languages] or [None]
    for label in labels:
        part = learned if label is None else learned.select(label)
        try:
            part.require_text()
        except CorpusError:
            what = "the corpus" if label is None else f"the corpus of {label}"
            raise CorpusError(
                f"{what} has one document at most, and the first is held out to judge on; give "
                f"more documents, or name other text to judge on ({flag})"
            ) from None
    return learned, judged, f"every {EVERY}th document of the corpus, of which nothing was learned"
