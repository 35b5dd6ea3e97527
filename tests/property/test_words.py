"""Words by name: each is one token, chains are those of the reference, other text keeps its ids."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.words import chains, tokens_of
from small_models import ENGLISH, HINDI, joining_tokenizer, train
from strategies import examples
from vocabshift.extension.named_tokens import NamedTokens
from vocabshift.extension.one_token import MergeChains
from vocabshift.extension.words import add_words
from vocabshift.tokenizer.components import metaspace_decoder, space_to_metaspace
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

LETTERS = "theacdo é\u0924\u093e\U0001f642"


def metaspace() -> Tokenizer:
    """Characters and some merges, "▁" for the space, no pre-tokenizer; unknown text is lost."""
    merges = (
        ("t", "h"),
        ("th", "e"),
        ("▁", "the"),
        ("e", "r"),
        ("▁", "a"),
        ("a", "t"),
        ("er", "▁a"),
    )
    tokens = ["<unk>", "▁", *"theacdory", *dict.fromkeys(map("".join, merges))]
    return Tokenizer(
        BpeModel({token: i for i, token in enumerate(tokens)}, merges, unk_token="<unk>"),
        normalizer=space_to_metaspace(add_prefix=False),
        decoder=metaspace_decoder(strip_prefix=False),
    )


BYTES = train([*ENGLISH, *HINDI], 300)
BASES = {
    "byte-level": BYTES,
    "merge skipping": replace(BYTES, model=replace(BYTES.model, ignore_merges=True)),
    "joining": joining_tokenizer(("t", "h"), ("th", "e"), ("e", "Ġ"), ("a", "a"), ("aa", "a")),
    "metaspace": metaspace(),
}

words = st.lists(
    st.text(LETTERS.replace(" ", ""), min_size=1, max_size=7), min_size=1, max_size=5, unique=True
)


@pytest.mark.parametrize("name", BASES)
@examples(30)
@given(strings=words)
def test_chains_are_those_of_the_reference(name: str, strings: list[str]) -> None:
    """The same new tokens and merges, and each string is one token by merges alone."""
    model = BASES[name].model
    spelled = [string if name == "metaspace" else _image(string) for string in strings]
    found = MergeChains(model)
    for string in spelled:
        found.add(string)
    expected = chains(
        dict(model.vocab), list(model.merges), spelled, ignore_merges=model.ignore_merges
    )
    assert (found.tokens, found.merges) == expected
    vocab = {**model.vocab, **{token: model.size + i for i, token in enumerate(found.tokens)}}
    merges = [*model.merges, *found.merges]
    for string in spelled:
        assert model.ignore_merges or tokens_of(vocab, merges, string) == [string]


@pytest.mark.parametrize("name", BASES)
@examples(30)
@given(strings=words, texts=st.lists(st.text(LETTERS, max_size=12), max_size=4))
def test_words_are_tokens_and_other_text_keeps_its_ids(
    name: str, strings: list[str], texts: list[str]
) -> None:
    """Text in which no two neighbouring tokens are a new merge is segmented as before."""
    base = BASES[name]
    added = add_words(base, NamedTokens(words=tuple(strings)))
    longer = added.tokenizer
    assert isinstance(longer, Tokenizer)
    for row in added.rows:
        assert row.alone == 1
        assert row.how in ("present", "merges", "added")
        assert row.spaced == 1 or row.how == "added"
    assert {t: longer.vocab[t] for t in base.vocab} == base.vocab
    assert longer.model.merges[: len(base.model.merges)] == base.model.merges
    assert set(longer.unreachable()) <= set(base.unreachable())
    again = add_words(base, NamedTokens(words=tuple(strings)))
    assert again.tokenizer.to_json() == longer.to_json()

    new = set(longer.model.merges[len(base.model.merges) :])
    contents = [token.content for token in longer.added_tokens if token not in base.added_tokens]
    fresh = set(longer.vocab) - set(base.vocab)
    names = {i: token for token, i in base.vocab.items()}
    for text in texts:
        ids = base.encode_batch([text])[0].tolist()
        tokens = [names.get(i, "") for i in ids]
        is_touched = (
            any(pair in new for pair in pairwise(tokens))
            or any(content in text for content in contents)
            or any(len(token) == 1 and token in _spelled(base, text) for token in fresh)
            or (base.model.ignore_merges and any(t in _spelled(base, text) for t in fresh))
        )
        if not is_touched:
            assert longer.encode_batch([text])[0].tolist() == ids
    expected = longer.backend.encode_batch(texts, add_special_tokens=False)
    assert longer.encode_batch(texts)[0].tolist() == [i for each in expected for i in each.ids]


def _image(text: str) -> str:
    return _spelled(BYTES, text)


def _spelled(tokenizer: Tokenizer, text: str) -> str:
    """A text as the model reads it, without cuts."""
    backend = tokenizer.backend
    if backend.normalizer is not None:
        text = backend.normalizer.normalize_str(text)
    if backend.pre_tokenizer is None:
        return text
    return "".join(part for part, _ in backend.pre_tokenizer.pre_tokenize_str(text))
