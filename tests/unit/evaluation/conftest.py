"""Small byte-level tokenizers for the evaluation tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

MakeTokenizer = Callable[..., Tokenizer]


@pytest.fixture
def make_tokenizer() -> MakeTokenizer:
    """Makes a byte-level tokenizer: `merges` as pairs, in order of rank."""

    def make(
        merges: Sequence[tuple[str, str]] = (),
        *,
        name: str = "tiny",
        added_tokens: Sequence[AddedToken] = (),
    ) -> Tokenizer:
        tokens = [*byte_level.ALPHABET, *("".join(merge) for merge in merges)]
        model = BpeModel({token: i for i, token in enumerate(tokens)}, tuple(merges))
        spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
        return Tokenizer(
            model,
            pre_tokenizer={**spec, "use_regex": True},
            decoder={**spec, "use_regex": True},
            added_tokens=tuple(added_tokens),
            name=name,
        )

    return make
