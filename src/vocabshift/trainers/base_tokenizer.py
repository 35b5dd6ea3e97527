"""The tokenizer that superwords are put on: checked, named by its content, numbered for the core.

Owns which tokenizers can carry superwords, and the way between their ids (which may have holes)
and the dense ids of training. Knows nothing of patterns or of what is learned.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.bpe import byte_level, tokenizer_json
from vocabshift.bpe.added_tokens import vocab_with
from vocabshift.bpe.compiled_model import images_bytes
from vocabshift.bpe.load import as_tokenizer
from vocabshift.bpe.token_bytes import is_byte_level
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.bpe.tokenizer_reader import normalizer_name
from vocabshift.text.patterns import Pattern, to_spec
from vocabshift.trainers.stage import Stage


class BaseTokenizer:
    """A tokenizer that superwords can be put on; ValueError for one that cannot have any.

    As a value of a configuration it is its name and the hash of its content.
    """

    def __init__(self, source: Any) -> None:
        if isinstance(source, BaseTokenizer):
            source = source.tokenizer if source.path is None else source.path
        self.path: Path | None = Path(source) if isinstance(source, str | Path) else None
        self.tokenizer: Tokenizer = as_tokenizer(source)
        _check(self.tokenizer)
        normalizer_name(self.tokenizer)  # which training must know
        text = tokenizer_json.to_json(self.tokenizer)
        self.fingerprint = hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.tokenizer.name} {self.fingerprint}"

    def __repr__(self) -> str:
        return f"BaseTokenizer({str(self)!r})"

    def __deepcopy__(self, _memo: object) -> BaseTokenizer:
        return self  # frozen, and large: dataclasses.asdict copies what it does not know

    @cached_property
    def vocab(self) -> dict[str, int]:
        """All tokens by id, added ones included: `tokenizer.json` must hold them all, for an added
        token outside the vocabulary would be numbered anew behind the superwords."""
        return vocab_with(dict(self.tokenizer.model.vocab), self.tokenizer.added_tokens)

    def stage(self) -> Stage:
        """Its tokens and merges as a stage of training; ids are places in `vocab`."""
        place = {token: i for i, token in enumerate(self.vocab)}
        merges = np.array(
            [
                (place[left], place[right], place[left + right])
                for left, right in self.tokenizer.model.merges
            ],
            dtype=np.uint32,
        ).reshape(-1, 3)
        return Stage.of_merges(images_bytes(list(self.vocab)), merges, "vocab_size")

    def forbidden(self) -> set[bytes]:
        """What no merge may make: an added token must not come out of ordinary text."""
        return {token.content.encode() for token in self.tokenizer.added_tokens}

    def lifted(self, pattern: Pattern) -> Tokenizer:
        """It with other walls, without merge skipping, and all tokens in the vocabulary.

        Merge skipping makes a whole piece one token if it is in the vocabulary, whatever the
        merges say. Pieces are sentences now: a superword would be found by look-up in a piece that
        it fills and by merges elsewhere, and text would be cut otherwise than in training.
        """
        model = replace(self.tokenizer.model, vocab=self.vocab, ignore_merges=False)
        return replace(self.tokenizer, model=model, pre_tokenizer=to_spec(pattern))

    def extended(self, pattern: Pattern, learned: Stage) -> Tokenizer:
        """`lifted` with what `learned` adds to `stage()`; new ids are behind all others."""
        new = byte_level.all_to_images(learned.tokens[len(self.vocab) :])
        first = self.tokenizer.row_count
        names = [*self.vocab, *new]
        merges = [(names[left], names[right]) for left, right, _ in learned.merges.tolist()]
        lifted = self.lifted(pattern)
        model = replace(
            lifted.model,
            vocab=self.vocab | {token: first + i for i, token in enumerate(new)},
            merges=(*lifted.model.merges, *merges),
        )
        return replace(lifted, model=model)


def _check(tokenizer: Tokenizer) -> None:
    name, model = tokenizer.name, tokenizer.model
    spec: Mapping[str, Any] = tokenizer.pre_tokenizer or {}
    last = (spec["pretokenizers"] or [{}])[-1] if spec.get("type") == "Sequence" else spec
    if not is_byte_level(tokenizer) or not model.is_byte_level or last.get("type") != "ByteLevel":
        raise ValueError(
            f"{name} is not byte-level (its pre-tokenizer must end in ByteLevel, and all 256 bytes "
            "be tokens); superwords can be put on byte-level tokenizers only, such as those of "
            "Llama-3, Qwen or Mistral Nemo"
        )
    if last.get("add_prefix_space", True):
        raise ValueError(
            f"{name} puts a space before every text (add_prefix_space), which a superword "
            "tokenizer must not: text would not come back; give a base without it"
        )
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        raise ValueError(f"{name} marks parts of words by a prefix or suffix; that is not byte BPE")
    for token in tokenizer.added_tokens:
        if token.single_word or (token.normalized and tokenizer.normalizer is not None):
            raise ValueError(
                f"the added token {token.content!r} of {name} is matched "
                + ("as a single word" if token.single_word else "in normalized text")
                + ", which training does not do; set that flag to false"
            )
