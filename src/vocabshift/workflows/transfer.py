"""`transfer` with `init="auto"`: the initializer that makes text cheapest before any training.

The one place that joins surgery (which makes rows) and evaluation (which prices text).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.tokenizer import Tokenizer


def transfer(
    model: Any,
    *,
    old: Any,
    new: Any,
    init: str = "fvt",
    text: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = None,
    **options: Any,
) -> tuple[Any, Tokenizer]:
    """Move `model` from tokenizer `old` to `new`; `model` is changed in place (no copy is made).

    As `vocabshift.surgery.transfer.transfer`, whose other options these are. `text` is what
    `init="auto"` tries the initializers on: a Corpus or texts, a few hundred kilobytes of all
    languages that matter; the one with the fewest bits per byte is kept.
    """
    from vocabshift.surgery import transfer as surgery

    if text is not None:
        options["score"] = bits_per_byte(text)
    return surgery.transfer(model, old=old, new=new, init=init, **options)


def bits_per_byte(
    text: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
) -> Callable[[Any, Any], float]:
    """A function of model and tokenizer: what they pay for all of `text`, whatever language."""
    from vocabshift.evaluation.scoring.score import score_documents
    from vocabshift.text.corpus import Corpus

    corpus = text if isinstance(text, Corpus) else Corpus.from_texts(text)
    corpus.require_text()

    def price(model: Any, tokenizer: Any) -> float:
        documents = score_documents(model, tokenizer, corpus)
        nats = sum(document.nats for document in documents)
        return nats / math.log(2) / sum(document.n_bytes for document in documents)

    return price
