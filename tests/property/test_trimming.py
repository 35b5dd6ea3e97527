"""Trimmed Unigram and WordPiece models: text of characters that are tokens always comes back."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from strategies import examples
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus

LETTERS = "abc"
pieces = st.lists(st.text(LETTERS, min_size=2, max_size=4), max_size=10, unique=True)
texts = st.lists(
    st.lists(st.text(LETTERS, min_size=1, max_size=7), min_size=1, max_size=4).map(" ".join),
    min_size=1,
    max_size=5,
)
scores = st.floats(-20, 0, allow_nan=False)


@st.composite
def unigrams(draw: st.DrawFn) -> Backend:
    longer = draw(pieces)
    starts = [f"\u2581{piece}" for piece in draw(pieces)]
    tokens = draw(st.permutations([*LETTERS, "\u2581", *longer, *starts]))
    vocab = [("<unk>", 0.0), *((token, draw(scores)) for token in tokens)]
    backend = Backend(models.Unigram(vocab, unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return backend


@st.composite
def word_pieces(draw: st.DrawFn) -> Backend:
    inside = [f"##{piece}" for piece in [*LETTERS, *draw(pieces)]]
    tokens = draw(st.permutations([*LETTERS, *draw(pieces), *inside]))
    vocab = {token: i for i, token in enumerate(["[UNK]", *tokens])}
    backend = Backend(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.decoder = decoders.WordPiece()
    return backend


def size(backend: Backend) -> int:
    """Tokens of more than one letter, but the one of the lowest score."""
    vocab: Any = json.loads(backend.to_str())["model"]["vocab"]
    tokens = [entry[0] for entry in vocab] if isinstance(vocab, list) else list(vocab)
    lowest = min(vocab, key=lambda entry: entry[1])[0] if isinstance(vocab, list) else None
    letters = [token.removeprefix("##") for token in tokens if token != lowest]
    return sum(len(token) > 1 for token in letters) - ("<unk>" in letters or "[UNK]" in letters)


@given(st.one_of(unigrams(), word_pieces()), texts, texts, st.integers(0, 10**6))
@examples(100)
def test_text_comes_back_at_every_size(
    base: Backend, seen: list[str], unseen: list[str], share: int
) -> None:
    if size(base) == 0:
        return
    n = 1 + share % size(base)
    pruning = prune_with_report(base, Corpus.from_texts(seen), PruningOptions(n_tokens=n))
    assert pruning.report.n_removable == size(base)
    assert pruning.report.round_trip_failures == 0
    small = pruning.tokenizer.backend
    for text in [*seen, *unseen]:
        ids = small.encode(text).ids
        assert 0 not in ids
        assert small.decode(ids) == text


@given(unigrams(), texts)
@examples(50)
def test_text_without_a_removed_token_is_cut_as_before(base: Backend, seen: list[str]) -> None:
    if size(base) == 0:
        return
    pruning = prune_with_report(base, Corpus.from_texts(seen), PruningOptions(n_tokens=size(base)))
    removed = {base.id_to_token(token_id) for token_id in pruning.removed.tolist()}
    for text in seen:
        tokens = base.encode(text).tokens
        if not removed & set(tokens):
            assert pruning.tokenizer.backend.encode(text).tokens == tokens
