"""The public `transfer`: a model in memory moved onto another tokenizer.

Joins surgery, which makes rows, and evaluation, which gives the bits per byte that `init="auto"`
chooses by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.surgery.options import Score, TransferOptions

if TYPE_CHECKING:
    from vocabshift.surgery.omp import Donor
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.id_map import TokenIdMap
    from vocabshift.tokenizer.tokenizer import Tokenizer


def transfer(
    model: Any,
    *,
    old: Any,
    new: Any,
    init: str = TransferOptions.init,
    text: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = None,
    seed: int = TransferOptions.seed,
    pad_to_multiple_of: int | None = TransferOptions.pad_to_multiple_of,
    id_map: TokenIdMap | str | Path | None = TransferOptions.id_map,
    donor: Donor | str | Path | None = TransferOptions.donor,
    corpus: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = TransferOptions.corpus,
    score: Score | None = TransferOptions.score,
    overrides: str | Path | Mapping[str, Any] | None = TransferOptions.overrides,
    reserve_dummies: int = TransferOptions.reserve_dummies,
) -> tuple[Any, Tokenizer]:
    """Move `model` from tokenizer `old` to `new`; `model` is changed in place (no copy is made).

    Tokens of the old vocabulary keep their rows bit for bit, in input embeddings and head. Any
    other token gets the row that `init` makes, for the head's bias as for the head; the names are
    those of `vocabshift transfer --init`, and `docs/transfer.md` says what each one does. What is
    random comes from `seed`. The ids in `model.config` and `model.generation_config` follow.

    `old`, `new`: a Tokenizer, a transformers or `tokenizers` one, or a path. `text`: a Corpus or
    texts, a few hundred kilobytes of all languages that matter, on which `init="auto"` tries the
    initializers; the one with the fewest bits per byte is kept. `score`: another function of model
    and tokenizer to choose by, lower is better. `donor`: for "omp", a model (folder or Hub name)
    that has the new tokens; `corpus`: for "focus", text of the new tokenizer's languages.

    Rows are padded to a multiple of `pad_to_multiple_of`; None pads as the model was padded before.
    `id_map`: which old id is which new one, as `prune` and `extend` write it; None takes the
    `token_map.json` that lies beside `new`, if there is one. What it does not name is matched by
    bytes. `overrides`: what goes before all of that, {new token: old token, or list of pieces}, or
    a JSON or TOML file of it. `reserve_dummies`: so many special tokens are added to `new` that no
    text has, with rows by `init` as other new ones: the reference by which `vocabshift glitch`
    finds tokens that training never reached.

    Returns the model and the tokenizer to use with it: `new`, with its own ids, and with the
    special tokens of `old` that it lacked after them. ValueError (often VocabMismatchError) before
    anything is changed.
    """
    from vocabshift.surgery.transfer import transfer_model

    options = TransferOptions(
        init=init,
        seed=seed,
        pad_to_multiple_of=pad_to_multiple_of,
        id_map=id_map,
        donor=donor,
        corpus=corpus,
        score=score if text is None else bits_per_byte(text),
        overrides=overrides,
        reserve_dummies=reserve_dummies,
    )
    tokenizer, _ = transfer_model(model, old=old, new=new, options=options)
    return model, tokenizer


def bits_per_byte(text: Corpus | Mapping[str, Iterable[str]] | Iterable[str]) -> Score:
    """A function of model and tokenizer: bits per byte of all of `text`, whatever language."""
    from vocabshift.evaluation.scoring.score import score_documents
    from vocabshift.text.corpus import Corpus

    corpus = text if isinstance(text, Corpus) else Corpus.from_texts(text)
    corpus.require_text()

    def score(model: Any, tokenizer: Any) -> float:
        documents = score_documents(model, tokenizer, corpus)
        nats = sum(document.nats for document in documents)
        return nats / math.log(2) / sum(document.n_bytes for document in documents)

    return score
