"""The vocabulary report is what a look at each token alone gives, added up."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from reference.token_class import token_class
from strategies import examples, text
from vocabshift.checks.vocabulary_report import vocabulary_report
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

spellings = st.one_of(
    text.map(str.encode),
    st.tuples(text, st.integers(0, 6), st.integers(0, 30)).map(
        lambda drawn: drawn[0].encode()[drawn[1] : drawn[2]]
    ),
    st.binary(max_size=5),
)


@given(st.lists(spellings, max_size=12))
@examples(300)
def test_rows_are_the_tokens_added_up(tokens: list[bytes]) -> None:
    images = dict.fromkeys([*byte_level.ALPHABET, *map(byte_level.to_image, tokens)])
    vocab = {image: i for i, image in enumerate(images)}
    decoder = {"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True)
    report = vocabulary_report(Tokenizer(BpeModel(vocab, ()), decoder=decoder))

    expected: dict[str, list[bytes]] = defaultdict(list)
    for image in vocab:
        data = byte_level.to_bytes(image)
        expected[token_class(data)].append(data)
    assert {row.name for row in report.rows} == set(expected)
    for row in report.rows:
        own = expected[row.name]
        assert row.tokens == len(own)
        assert row.share == len(own) / len(vocab)
        assert row.superwords == sum(b" " in data.strip() for data in own)
        assert row.mean_bytes == sum(map(len, own)) / len(own)
        assert row.training_share is None
    assert report.vocab_size == len(vocab)
    assert report.superwords == sum(row.superwords for row in report.rows)
