"""Words by name in vendor tokenizers of every kind of BPE: one token each, other text as before."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from real_text import eval_lines
from real_text import vendor as loaded
from vendor_checks import vendor_params
from vocabshift.extension.named_tokens import NamedTokens, with_special_tokens
from vocabshift.extension.words import add_words
from vocabshift.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.shared

WORDS = (
    *("kubernetes", "hyperparameter", "Õhtusöögiks", "the", "नमस्ते", "வணக்கம்", "C++", "gpt4"),
    *("New York", "911", "don't", "ෆ", "banana", "bananarama", "ananas", "\u07ca\u07db"),
)
VENDORS = {
    "tokenizers-hf/llama3": {"C++", "gpt4", "New York", "911", "don't", "नमस्ते", "வணக்கம்"},
    "tokenizers-hf/qwen25": {"C++", "gpt4", "New York", "911", "don't", "नमस्ते", "வணக்கம்"},
    "tokenizers-hf/mistral7b-v1": set(),
    "tokenizers/gguf-gemma-4": set(),
}


@pytest.mark.parametrize("path", vendor_params(VENDORS))
def test_every_word_is_one_token_and_other_lines_keep_their_ids(
    path: str, shared_data: Path
) -> None:
    """Lines without two neighbours that a new merge joins, or a new character, are unchanged."""
    base = loaded(shared_data / path)
    named = NamedTokens(words=WORDS, special_tokens={"<my think>": "private reasoning"})
    added = add_words(base, named)
    assert {row.word for row in added.rows if row.how == "added"} <= VENDORS[path]
    for row in added.rows:
        assert row.alone == 1, row
        # Where digits take no space along, the space before "911" is a token of its own.
        assert row.spaced == 1 or row.how == "added" or row.word == "911", row
    longer, [special] = with_special_tokens(added.tokenizer, named)
    assert isinstance(longer, Tokenizer)
    assert special.id == longer.row_count - 1
    meaning = {**base.vocab, **{token.content: token.id for token in base.added_tokens}}
    now = {**longer.vocab, **{token.content: token.id for token in longer.added_tokens}}
    assert meaning.items() <= now.items()
    assert set(longer.unreachable()) <= set(base.unreachable())

    lines = [line for text in eval_lines(shared_data, 4_000).values() for line in text]
    before, after = base.encode_batch(lines), longer.encode_batch(lines)
    names = {token_id: token for token, token_id in meaning.items()}
    merges = set(longer.model.merges[len(base.model.merges) :])
    fresh = [token for token in longer.vocab if token not in base.vocab and len(token) == 1]
    contents = [token.content for token in longer.added_tokens if token.content not in meaning]
    n_same = 0
    for i, line in enumerate(lines):
        old = before[0][before[1][i] : before[1][i + 1]].tolist()
        new = after[0][after[1][i] : after[1][i + 1]].tolist()
        tokens = [names[token_id] for token_id in old]
        is_touched = any(pair in merges for pair in pairwise(tokens)) or any(
            text in line for text in (*contents, *fresh)
        )
        if not is_touched:
            n_same += 1
            assert new == old
    assert n_same > 0.5 * len(lines)
    texts = [*lines[::20], *WORDS, *(f"a {word}." for word in WORDS), "x<my think> y"]
    expected = longer.backend.encode_batch(texts, add_special_tokens=False)
    assert longer.encode_batch(texts)[0].tolist() == [i for each in expected for i in each.ids]
