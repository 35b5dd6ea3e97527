"""A tokenizer as the vocabulary of a GGUF file: chosen by ids, and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from small_models import (
    HINDI,
    SPECIALS,
    old_tokenizer,
    sentencepiece_tokenizer,
    special_ids,
    tiny_tokenizer,
    train,
)
from vocabshift.errors import InvalidTokenizerError, NoPreTokenizerError
from vocabshift.text import patterns
from vocabshift.text.held_out import sample_texts
from vocabshift.tokenizer import components
from vocabshift.tokenizer.formats.gguf import from_metadata
from vocabshift.tokenizer.formats.gguf_write import converter_hash, to_vocabulary
from vocabshift.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def hindi() -> Tokenizer:
    """Words of Hindi are tokens, where a pattern leaves them whole."""
    return replace(train(HINDI, 400, SPECIALS), config={"eos_token": "</s>"})


def with_pattern(tokenizer: Tokenizer, name: str) -> Tokenizer:
    return replace(tokenizer, pre_tokenizer=patterns.to_spec(patterns.get_pattern(name)), name=name)


@pytest.mark.parametrize(
    ("pattern", "pre"),
    [("gpt2", "gpt-2"), ("cl100k", "dbrx"), ("qwen2", "qwen2"), ("qwen35", "qwen35")],
)
def test_the_same_pattern_is_taken_first(pattern: str, pre: str, hindi: Tokenizer) -> None:
    """Of two names for a pattern, the one that skips merges as the tokenizer does."""
    tokenizer = with_pattern(hindi, pattern)
    found = to_vocabulary(tokenizer, tokenizer.row_count)
    assert (pre, ()) == (found.pre, found.warnings)
    skipping = replace(tokenizer, model=tokenizer.model.unchecked(ignore_merges=True))
    if pattern == "cl100k":
        assert "llama-bpe" == to_vocabulary(skipping, skipping.row_count).pre
    again = from_metadata(dict(found.keys))
    for text in (*HINDI, "In 2024,  don't\n\n"):
        assert tokenizer.backend.encode(text).ids == again.backend.encode(text).ids, text


def test_a_contraction_inside_a_foreign_word_is_seen(make_byte_level) -> None:
    """Turkish "İstanbul'da" is no "'d": of the texts in the package, one in every script has it."""
    tokenizer = with_pattern(make_byte_level("'da"), "tekken")
    assert "deepseek-v3" == to_vocabulary(tokenizer, tokenizer.row_count).pre


def test_another_pattern_with_equal_ids_is_taken_with_a_warning() -> None:
    """`tekken` means another pattern in llama.cpp, but ten merges meet it nowhere."""
    tokenizer = with_pattern(tiny_tokenizer(), "tekken")
    found = to_vocabulary(tokenizer, tokenizer.row_count)
    assert any("is not written as llama.cpp's 'gpt-2'" in warning for warning in found.warnings)


def test_ids_decide_and_not_the_name(hindi: Tokenizer) -> None:
    """llama.cpp's `gpt-4o` cuts words at marks, so a tokenizer of that pattern is not `gpt-4o`."""
    found = to_vocabulary(with_pattern(hindi, "o200k"), hindi.row_count)
    assert "gpt-4o" != found.pre
    theirs = with_pattern(hindi, "o200k")
    again = from_metadata(dict(found.keys), pattern="o200k")
    assert theirs.backend.encode(HINDI[0]).ids == again.backend.encode(HINDI[0]).ids


def test_what_no_name_fits_is_refused_with_lines_to_paste(hindi: Tokenizer) -> None:
    """Syllables; other texts can be the reason too."""
    tokenizer = with_pattern(hindi, "syllables")
    with pytest.raises(NoPreTokenizerError, match=r"the nearest, '.*chkhsh [0-9a-f]{64}") as error:
        to_vocabulary(tokenizer, tokenizer.row_count)
    assert f'if chkhsh == "{converter_hash(tokenizer)}":' in error.value.patch
    assert 'tokenizer_pre == "syllables") {' in error.value.patch
    assert "LLAMA_VOCAB_PRE_TYPE_SYLLABLES = N," in error.value.patch
    given = to_vocabulary(tokenizer, tokenizer.row_count, pre="mine")
    assert ("mine", 0) == (given.pre, given.n_texts)
    assert "no ids were compared" in given.warnings[-1]
    lower = replace(with_pattern(hindi, "gpt2"), normalizer={"type": "Lowercase"})
    with pytest.raises(NoPreTokenizerError):
        to_vocabulary(lower, lower.row_count)


def test_more_texts_are_compared() -> None:
    tokenizer = with_pattern(tiny_tokenizer(), "tekken")
    plain = to_vocabulary(tokenizer, tokenizer.row_count)
    more = to_vocabulary(tokenizer, tokenizer.row_count, texts=["", "the cat"])
    assert plain.n_texts + 1 == more.n_texts
    assert plain.n_texts > len(sample_texts()) > 400


def test_words_of_the_tokens_are_compared(make_byte_level) -> None:
    """No sample has this one, which llama.cpp's patterns do not cut before the capital."""
    assert not [text for text in sample_texts() if "вЩ" in text]
    tokenizer = with_pattern(make_byte_level("вЩ"), "tekken")
    with pytest.raises(NoPreTokenizerError, match=r"for 1 of [0-9]+ texts, such as .*вЩ"):
        to_vocabulary(tokenizer, tokenizer.row_count)


def test_nfc_is_left_to_the_caller(hindi: Tokenizer) -> None:
    tokenizer = replace(with_pattern(hindi, "qwen2"), normalizer={"type": "NFC"})
    found = to_vocabulary(tokenizer, tokenizer.row_count)
    assert ("qwen2", ("llama.cpp does not normalize: give it text in NFC",)) == (
        found.pre,
        found.warnings,
    )


def test_tokens_types_and_roles() -> None:
    tokenizer = old_tokenizer()
    ids, n = special_ids(tokenizer), tokenizer.row_count
    listed = (*tokenizer.added_tokens[:-1], replace(tokenizer.added_tokens[-1], special=False))
    tokenizer = replace(tokenizer, added_tokens=listed, chat_template="hello")
    keys = to_vocabulary(
        tokenizer, n + 2, roles={"bos": 3, "mask": 4}, ends=[ids["</s>"], ids["<|turn|>"], n + 1]
    ).keys
    assert [3, 3, 3, 3, 4, 5, 5] == keys["tokenizer.ggml.token_type"][-7:]
    assert [f"[PAD{n}]", f"[PAD{n + 1}]"] == keys["tokenizer.ggml.tokens"][-2:]
    named = {
        name.split(".")[-1].removesuffix("_token_id"): value
        for name, value in keys.items()
        if name.endswith("_token_id")
    }
    assert named == {
        "bos": ids["<s>"],
        "eos": ids["</s>"],
        "eot": ids["<|turn|>"],
        "padding": ids["<pad>"],
        "mask": 4,
    }
    assert keys["tokenizer.ggml.add_bos_token"] and not keys["tokenizer.ggml.add_eos_token"]
    assert "hello" == keys["tokenizer.chat_template"]
    with pytest.raises(InvalidTokenizerError, match=f"has {n} ids and the model only {n - 1} rows"):
        to_vocabulary(tokenizer, n - 1)


def test_a_byte_level_vocabulary_without_merges(make_byte_level) -> None:
    tokenizer = make_byte_level()
    with pytest.raises(InvalidTokenizerError, match="has no merges"):
        to_vocabulary(tokenizer, tokenizer.row_count, pre="gpt-2")


def test_three_ends_of_a_text_are_written() -> None:
    tokenizer = old_tokenizer()
    end = special_ids(tokenizer)["</s>"]
    found = to_vocabulary(tokenizer, tokenizer.row_count, ends=[7, end, 8, 9, 10])
    written = [found.keys[f"tokenizer.ggml.{role}_token_id"] for role in ("eos", "eot", "eom")]
    assert [end, 7, 8] == written
    assert "llama.cpp has three ends of a text; not written are the ids [9, 10]" in found.warnings


def test_what_llama_cpp_does_not_know_is_a_warning() -> None:
    tokenizer = old_tokenizer()
    strips = (replace(tokenizer.added_tokens[0], lstrip=True), *tokenizer.added_tokens[1:])
    bare = replace(tokenizer, added_tokens=strips, config={}, post_processor=None)
    eos, flags = to_vocabulary(bare, bare.row_count).warnings[:2]
    assert "no EOS token is named" in eos
    assert "no lstrip, rstrip, single_word, as '<s>' has" in flags
    ids = special_ids(tokenizer)
    twice: Any = components.template(("<s>", ids["<s>"]), ("</s>", ids["</s>"]))
    twice["single"].insert(0, twice["single"][0])
    more = replace(tokenizer, post_processor=twice)
    assert "more than BOS and EOS" in to_vocabulary(more, more.row_count).warnings[0]


def test_sentencepiece_like(tmp_path: Path) -> None:
    """By scores, if spaces are kept as they are; by merges, if a token would be made otherwise."""
    collapsing = sentencepiece_tokenizer(tmp_path)
    with pytest.raises(NoPreTokenizerError, match="'llama, a space before texts', gives others"):
        to_vocabulary(collapsing, collapsing.row_count)
    for has_prefix in (True, False):
        spaces = components.space_to_metaspace(add_prefix=has_prefix)
        tokenizer = replace(collapsing, normalizer=spaces)
        found = to_vocabulary(tokenizer, tokenizer.row_count + 2)
        keys = dict(found.keys)
        assert tokenizer.row_count + 2 == len(keys["tokenizer.ggml.scores"])
        assert ("llama", "default") == (keys["tokenizer.ggml.model"], found.pre)
        assert has_prefix is keys["tokenizer.ggml.add_space_prefix"]
        again = from_metadata(keys)
        for text in (*HINDI, "the  cat 12\n\nß"):
            assert tokenizer.backend.encode(text).ids == again.backend.encode(text).ids, text
    given = to_vocabulary(collapsing, collapsing.row_count, pre="default")
    assert given.keys["tokenizer.ggml.add_space_prefix"]
    assert "texts get other ids, such as" in given.warnings[-1]
    pairs = tuple(pair for pair in tokenizer.model.merges if "▁" not in pair[0])
    fewer = replace(tokenizer, model=replace(tokenizer.model, merges=pairs))
    found = to_vocabulary(fewer, fewer.row_count)
    assert ("gemma4", "gemma4") == (found.keys["tokenizer.ggml.model"], found.pre)
    assert "puts a BOS token before each text" in found.warnings[-1]
    with pytest.raises(InvalidTokenizerError, match="it is default or gemma4"):
        to_vocabulary(fewer, fewer.row_count, pre="llama-bpe")
    without = replace(fewer, model=replace(fewer.model, byte_fallback=False))
    with pytest.raises(InvalidTokenizerError, match="all 256 byte pieces"):
        to_vocabulary(without, without.row_count)
