"""Which tokens does a tokenizer's own pipeline never let through?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from vocabshift.checks.reachability import unreachable_by_pipeline
from vocabshift.text.patterns import get_pattern, to_spec
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer


def with_merges(*merges: tuple[str, str], pattern: str = "o200k", **changes: object) -> Tokenizer:
    tokens = [*byte_level.ALPHABET, *(left + right for left, right in merges)]
    model = BpeModel({token: i for i, token in enumerate(tokens)}, merges)
    return Tokenizer(model, pre_tokenizer=to_spec(get_pattern(pattern)), **changes)


def test_a_plain_tokenizer_is_clean(small: Tokenizer) -> None:
    assert () == unreachable_by_pipeline(small)


@pytest.mark.parametrize(
    ("merge", "pattern", "found"),
    [
        (("a", "Ġ"), "o200k", True),  # a word never ends with a space
        (("a", "Ġ"), "ist-stage2", False),
        (("1", "a"), "o200k", True),
        (("!", "Ċ"), "o200k", False),  # "!" and newlines are one piece there
        (("!", "Ċ"), "gpt2", True),
        ((";", "a"), "ist-stage2", False),
        (("!", "a"), "ist-stage2", True),  # across a sentence end
        ((".", "a"), "ist-stage2", False),  # no sentence end: no space follows
        (("Ġ", "a"), "o200k", False),
        (("Ġ", "Ġ"), "o200k", False),  # a run of spaces before a word gives its last one away
    ],
)
def test_boundaries_of_the_pattern(merge: tuple[str, str], pattern: str, found: bool) -> None:
    tokenizer = with_merges(merge, pattern=pattern)
    assert (("".join(merge),) if found else ()) == unreachable_by_pipeline(tokenizer)


def test_what_the_normalizer_rewrites() -> None:
    composed = byte_level.to_image("é".encode())
    ligature = byte_level.to_image("ﬁ".encode())
    merges = (tuple(composed), tuple(ligature[:2]), (ligature[:2], ligature[2]))
    assert () == unreachable_by_pipeline(with_merges(*merges))
    nfkc = with_merges(*merges, normalizer={"type": "NFKC"})
    assert (ligature,) == unreachable_by_pipeline(nfkc)


def test_half_characters_are_left_out() -> None:
    """No text is spelt so; STT tests them."""
    tokenizer = with_merges(tuple(byte_level.to_image(b"\xa4\x95")), ("\u00e9", "a"))
    assert () == unreachable_by_pipeline(tokenizer)


def test_a_token_that_merge_skipping_alone_produces() -> None:
    tokens = [*byte_level.ALPHABET, "zz"]
    model = BpeModel({token: i for i, token in enumerate(tokens)}, ())
    tokenizer = Tokenizer(model, pre_tokenizer=to_spec(get_pattern("o200k")))
    assert ("zz",) == unreachable_by_pipeline(tokenizer)
    skipping = replace(tokenizer, model=replace(model, ignore_merges=True))
    assert () == unreachable_by_pipeline(skipping)


def test_a_token_inside_an_added_token_is_still_text() -> None:
    """Special tokens are read as text here."""
    special = (AddedToken("ab", 258),)
    tokenizer = with_merges(("a", "b"), ("ab", "c"), added_tokens=special)
    assert () == unreachable_by_pipeline(tokenizer)


def test_metaspace_tokens_that_only_stand_at_the_start() -> None:
    """ "▁a" is what Prepend makes of "a"; "a" alone needs something before it."""
    vocab = {"▁": 0, "a": 1, "▁a": 2, "<unk>": 3}
    steps = [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ]
    tokenizer = Tokenizer(
        BpeModel(vocab, (("▁", "a"),), unk_token="<unk>"),
        normalizer={"type": "Sequence", "normalizers": steps},
        decoder={
            "type": "Metaspace",
            "replacement": "▁",
            "prepend_scheme": "always",
            "split": False,
        },
    )
    assert () == unreachable_by_pipeline(tokenizer)
