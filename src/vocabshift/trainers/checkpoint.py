"""Which run of a trainer a checkpoint belongs to.

Owns the key: configuration, input and version, so that a checkpoint of another run is never used.
How phases lie on disk is the business of `vocabshift.checkpoints`.
"""

from __future__ import annotations

from typing import Any

from vocabshift.checkpoints import Checkpoints, Saved
from vocabshift.provenance import config_hash
from vocabshift.text.input_key import input_key, no_key_reason
from vocabshift.trainers.source import Source, source_key
from vocabshift.trainers.special_tokens import special_contents
from vocabshift.trainers.trainer import config_of

__all__ = ["Checkpoints", "Saved", "input_key", "no_key_reason", "training_key"]


def training_key(trainer: Any, source: Source, memory_bytes: int = 0) -> str | None:
    """Key of training with this trainer on this source; None where the source has none.

    The number of threads is left out: no result depends on it. One may depend on the memory
    budget, where it leaves words out.
    """
    from vocabshift import __version__

    text = source_key(source)
    if text is None:
        return None
    special = getattr(trainer, "special_tokens_from", None)
    contents = [] if special is None else sorted(special_contents(special))
    return config_hash(
        {
            "version": __version__,
            "config": config_of(trainer),
            "input": text,
            "special": contents,
            "memory": memory_bytes,
        }
    )
