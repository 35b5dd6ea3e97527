"""Which parts of a pipeline the core runs, and which `tokenizers`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from small_models import sentencepiece_tokenizer
from vocabshift.errors import InvalidTokenizerError
from vocabshift.text.patterns import Split, splitter
from vocabshift.text.splits import uncovered
from vocabshift.tokenizer import components
from vocabshift.tokenizer.any_tokenizer import encode_flat
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer


@pytest.mark.parametrize("pattern", [{"String": " "}, {"Regex": r"[^\n]+|\n+"}])
def test_spaces_are_replaced_before_another_pre_tokenizer(
    pattern: dict[str, Any], tmp_path: Path
) -> None:
    """Gemma's tokenizers have the first, after a normalizer that leaves no space to split at."""
    split = {"type": "Split", "pattern": pattern, "behavior": "MergedWithPrevious", "invert": False}
    tokenizer = replace(
        sentencepiece_tokenizer(tmp_path),
        normalizer=components.space_to_metaspace(add_prefix=False),
        pre_tokenizer=split,
    )
    for text in ("the cat sat", "a  12\n b"):
        expected = tokenizer.backend.encode(text, add_special_tokens=False).ids
        assert expected == tokenizer.encode_batch([text])[0].tolist()


ENDLESS = r"(?<=(a|aa)*)(a+)+!"
"""Beyond our automaton, so Oniguruma runs it: 2 ** 40 ways to read forty letters."""


def endless(model: models.Model) -> Backend:
    backend = Backend(model)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(ENDLESS), "isolated")
    return backend


def test_a_regex_that_backtracks_without_end_is_an_error() -> None:
    """Not a hang, and not a panic, which `except Exception` would let through."""
    bpe = as_tokenizer(endless(models.BPE({"a": 0}, [])))
    unigram = endless(models.Unigram([("<unk>", 0.0), ("a", -1.0)], 0))
    split = splitter((Split(ENDLESS),))
    for use in (
        lambda text: bpe.encode_batch([text])[0].tolist(),
        lambda text: encode_flat(unigram, [text], parse_special=False)[0].tolist(),
        split,
    ):
        assert 4 == len(use("aaaa")) or ["aaaa"] == use("aaaa")
        with pytest.raises(InvalidTokenizerError, match=r"gave up on a text: .*retry-limit"):
            use("a" * 40)


def test_decoders_and_the_search_for_gaps_have_the_same_end(tmp_path: Path) -> None:
    """A decoder may replace by regex; `check` tries regexes on text of all kinds."""
    base = sentencepiece_tokenizer(tmp_path)
    step = {"type": "Replace", "pattern": {"Regex": "(a|aa)+!"}, "content": ""}
    decoders = {"type": "Sequence", "decoders": [{"type": "Fuse"}, step]}
    tokenizer = replace(base, decoder=decoders)
    ids, offsets = tokenizer.encode_batch(["a" * 60])
    for use in (
        lambda: tokenizer.decode_batch(ids, offsets),
        lambda: Encoder(tokenizer).decode(ids),
        lambda: uncovered(r"(?:[\s\S]|[\s\S]|[\s\S])+\z(?!)"),
    ):
        with pytest.raises(InvalidTokenizerError, match=r"gave up on a text: .*retry-limit"):
            use()


def test_regexes_of_our_automaton_need_no_bound(tmp_path: Path) -> None:
    """The classic cases take time linear in the text there."""
    base = sentencepiece_tokenizer(tmp_path)
    for regex in (r"(a+)+$", r"(a|aa)+c", r"(a|a)*b"):
        split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated"}
        tokenizer = replace(base, pre_tokenizer={**split, "invert": False})
        ids, _ = tokenizer.encode_batch(["a" * 100_000 + "x"])
        assert len(ids) > 0


def test_a_byte_that_an_alphabet_lacks_is_spelled() -> None:
    """With byte fallback, `tokenizers` takes <0x63> for it, though the vocabulary is byte-level."""
    tokens = ["a", "b", *(f"<0x{byte:02X}>" for byte in range(256))]
    vocab = {token: token_id for token_id, token in enumerate(tokens)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    tokenizer = Tokenizer(
        BpeModel(vocab, (), byte_fallback=True),
        pre_tokenizer=byte_level | {"trim_offsets": True},
    )
    ids = Encoder(tokenizer).encode("acb").tolist()
    assert [0, vocab["<0x63>"], 1] == ids == tokenizer.backend.encode("acb").ids
