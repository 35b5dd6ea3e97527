"""The vocabulary by script: which row a token stands in, and what a row says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from vocabshift.checks.vocabulary_report import VocabularyReport, VocabularyRow, vocabulary_report
from vocabshift.report.tables import vocabulary_table
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

TEXT = {"hi": 60, "mr": 20, "ks_Arab": 10, "code": 5, None: 5}


def holding(*tokens: str | bytes) -> Tokenizer:
    """A byte-level tokenizer of the 256 bytes and these tokens."""
    data = [token.encode() if isinstance(token, str) else token for token in tokens]
    images = dict.fromkeys([*byte_level.ALPHABET, *map(byte_level.to_image, data)])
    decoder = {"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True)
    model = BpeModel({image: i for i, image in enumerate(images)}, ())
    return Tokenizer(model, decoder=decoder, name="mine")


def rows(report: VocabularyReport) -> dict[str, VocabularyRow]:
    return {row.name: row for row in report.rows}


@pytest.mark.parametrize(
    ("token", "name"),
    [
        ("the", "Latin"),
        (" घर", "Devanagari"),
        ("ि", "Devanagari"),  # a mark alone
        ("क\u200dष", "Devanagari"),  # a joiner has no script
        ("\u093c\u0301", "Devanagari"),  # nukta, and an accent that is inherited
        (" है।", "Devanagari"),  # the danda is shared by many scripts
        ("ক", "Bengali"),
        ("ꯃꯅꯤ", "Meetei_Mayek"),
        ("\u0301", "Inherited"),
        ("a क", "letters of several scripts"),
        ("漢か", "letters of several scripts"),
        ("१२", "digits"),
        ("v2", "Latin"),
        (" 2024", "digits"),
        ("।", "punctuation and symbols"),
        (");", "punctuation and symbols"),
        ("😀", "punctuation and symbols"),
        (" \n\t", "whitespace"),
        ("क".encode()[:2], "parts of characters"),
        (b"ab" + "क".encode()[:1], "parts of characters"),
    ],
)
def test_the_row_of_a_token(token: str | bytes, name: str) -> None:
    """One token more than the bytes alone, in exactly one row."""
    before, after = rows(vocabulary_report(holding())), rows(vocabulary_report(holding(token)))
    grown = {
        row.name
        for row in after.values()
        if row.tokens > (before[row.name].tokens if row.name in before else 0)
    }
    assert {name} == grown


def test_the_256_bytes_are_counted() -> None:
    of = rows(vocabulary_report(holding()))
    assert 52 == of["Latin"].tokens
    assert 10 == of["digits"].tokens
    assert 6 == of["whitespace"].tokens
    assert 128 == of["parts of characters"].tokens
    assert 60 == of["punctuation and symbols"].tokens


def test_what_a_row_says() -> None:
    report = vocabulary_report(holding("घर में", " घर", "a b"))
    assert "mine" == report.tokenizer
    assert 259 == report.vocab_size
    assert 2 == report.superwords
    row = rows(report)["Devanagari"]
    assert (2, 2 / 259, 1) == (row.tokens, row.share, row.superwords)
    assert (16 + 7) / 2 == row.mean_bytes
    assert 1 == rows(report)["Latin"].superwords


def test_scripts_by_size_then_the_classes() -> None:
    report = vocabulary_report(holding("क", "ख", "த", "a क"))
    assert [
        *("Latin", "Devanagari", "Tamil", "letters of several scripts", "digits"),
        *("punctuation and symbols", "whitespace", "parts of characters"),
    ] == [row.name for row in report.rows]


def test_special_tokens_of_the_model_have_a_row_of_their_own() -> None:
    plain = holding("<s>")
    tokenizer = replace(plain, added_tokens=(AddedToken("<s>", 256), AddedToken("</s>", 900)))
    report = vocabulary_report(tokenizer)
    assert 1 == rows(report)["special tokens"].tokens
    assert 257 == sum(row.tokens for row in report.rows) == report.vocab_size


def test_training_text_beside_the_vocabulary() -> None:
    """Two languages of one script add up; a label that is no language keeps its name."""
    of = rows(vocabulary_report(holding("क"), language_bytes=TEXT))
    assert pytest.approx(0.8) == of["Devanagari"].training_share
    assert (0, pytest.approx(0.1)) == (of["Arabic"].tokens, of["Arabic"].training_share)
    assert (0, pytest.approx(0.05)) == (of["code"].tokens, of["code"].training_share)
    assert pytest.approx(0.05) == of["no language"].training_share
    assert of["Latin"].training_share is None
    assert rows(vocabulary_report(holding(), language_bytes={"hi": 0}))["Devanagari"].tokens == 0


def test_plain_json_values() -> None:
    report = vocabulary_report(holding("क"), language_bytes=TEXT)
    back = json.loads(json.dumps(report.to_dict()))
    assert report.to_dict() == back
    assert list(VocabularyRow.__slots__) == list(back["rows"][0])


def test_the_table() -> None:
    without = _rendered(vocabulary_report(holding("घर में")))
    assert "Devanagari" in without
    assert "share of text" not in without
    assert "share of text" in _rendered(vocabulary_report(holding(), language_bytes=TEXT))


def _rendered(report: VocabularyReport) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(vocabulary_table(report))
    return capture.get()
