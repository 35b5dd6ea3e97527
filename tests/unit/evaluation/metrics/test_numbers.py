"""How numbers are cut: tokenizers whose cuts are known, digits of every script."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Regex, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from real_text import vendor_engine
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.metrics.numbers import METRICS, ZEROS, numbers, sample_numbers
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.tokenizer import Tokenizer

MakeTokenizer = Callable[..., Tokenizer]


def cutter(pattern: str) -> Engine:
    """Cuts digits by `pattern`, and leaves what that gives (up to three digits) whole."""
    pieces = [f"{n:0{width}}" for width in (1, 2, 3) for n in range(10**width)]
    vocab = {"[UNK]": 0, **{piece: i for i, piece in enumerate(pieces, 1)}}
    backend = Backend(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    return engine_of(backend)


ENGINES = {
    "from the left": cutter(r"\d{1,3}"),
    "thousands": cutter(r"\d{1,3}(?=(\d{3})*$)"),
    "lakh": cutter(r"\d{3}$|\d{1,2}(?=(\d\d)*\d{3}$)|\d{1,2}$"),
    "digits": cutter(r"\d"),
}


def test_known_ways_to_cut() -> None:
    """Each way of cutting has the figures that follow from it; of 1..12 digits, 9 in 12 exceed
    three, and one in three of those is cut into thousands from the left as well."""
    found = numbers(ENGINES, ["ASCII"])
    values = {
        name: {row.metric: row.value for row in found.where(subject=name)} for name in ENGINES
    }
    assert all(set(of) == {metric.name for metric in METRICS} for of in values.values())
    assert all(of["single_token_digits"] == 1 for of in values.values())

    assert values["digits"]["tokens_per_digit"] == 1
    assert values["digits"]["thousands_grouping"] == 0
    assert values["digits"]["thousands_border_rate"] == 1
    assert values["digits"]["digit_consistency"] == 1

    assert values["thousands"]["thousands_grouping"] == 1
    assert values["thousands"]["thousands_border_rate"] == 1
    assert values["thousands"]["digit_consistency"] == 1
    # 4 and 5 digits have the same groups both ways
    assert values["thousands"]["lakh_grouping"] == pytest.approx(2 / 9)
    assert values["lakh"]["lakh_grouping"] == 1
    assert values["lakh"]["thousands_grouping"] == pytest.approx(2 / 9)
    assert values["lakh"]["digit_consistency"] == 1

    left = values["from the left"]
    assert left["thousands_grouping"] == pytest.approx(3 / 9)  # 6, 9 and 12 digits
    # 1 to 3 digits have one separator less than groups: 3 * (1 + 2 + 3) in all
    assert left["thousands_border_rate"] == pytest.approx((1 + 2 + 3) / 18)
    # 1 and 2 digits fit in one token even behind one more
    assert left["digit_consistency"] == pytest.approx(2 / 12)
    tokens = sum(-(-length // 3) for length in range(1, 13))
    assert left["tokens_per_digit"] == pytest.approx(tokens / sum(range(1, 13)))


def test_units_and_intervals() -> None:
    """n is the numbers that a metric rests on; nothing is drawn twice differently."""
    found = numbers(ENGINES, ["ASCII"], longest=5, per_length=10)
    units = {row.metric: row.n for row in found.where(subject="digits")}
    assert units == {
        "tokens_per_digit": 50,
        "thousands_grouping": 20,
        "thousands_border_rate": 20,
        "lakh_grouping": 20,
        "digit_consistency": 50,
        "single_token_digits": 10,
    }
    assert found == numbers(ENGINES, ["ASCII"], longest=5, per_length=10, threads=2)
    assert not numbers(ENGINES, ["ASCII"], longest=3).where(metric="lakh_grouping")


def test_unknown_digits_are_no_tokens() -> None:
    """A digit that the vocabulary lacks is neither a token of its own nor cut consistently."""
    found = numbers({"own": ENGINES["digits"]}, ["Tamil"])
    assert found.value("own", "Tamil", "single_token_digits") == 0
    assert found.value("own", "Tamil", "digit_consistency") == 0
    assert not found.where(metric="tokens_per_digit")  # one for a whole number would be the best


def test_digits_in_bytes(make_tokenizer: MakeTokenizer) -> None:
    """Bytes of native digits: three tokens each, cut inside of digits and so never in groups."""
    found = numbers({"own": engine_of(make_tokenizer())})
    assert found.value("own", "Devanagari", "tokens_per_digit") == 3
    assert found.value("own", "Arabic-Extended", "tokens_per_digit") == 2
    assert found.value("own", "Devanagari", "single_token_digits") == 0
    assert found.value("own", "Devanagari", "thousands_grouping") == 0
    assert found.value("own", "Devanagari", "thousands_border_rate") == 1
    assert found.distinct("language") == list(ZEROS)


def test_sample() -> None:
    """Pairs of a number and the same behind one more digit, of every length; never a zero first."""
    sample = sample_numbers(6, 40)
    pairs = list(zip(sample[::2], sample[1::2], strict=True))
    assert [len(number) for number, _ in pairs] == [n for n in range(1, 7) for _ in range(40)]
    assert all(longer[1:] == number for number, longer in pairs)
    assert all(number[0] != "0" and longer[0] != "0" for number, longer in pairs)
    assert {digit for number, _ in pairs for digit in number} == set("0123456789")


def test_the_zeros_are_zeros() -> None:
    """Ten digits follow each, of the script that its name says."""
    for name, zero in ZEROS.items():
        digits = [chr(ord(zero) + value) for value in range(10)]
        assert [unicodedata.decimal(digit) for digit in digits] == list(range(10))
        spelled = unicodedata.name(zero).removesuffix("DIGIT ZERO").strip()
        assert spelled == {"ASCII": "", "Arabic": "ARABIC-INDIC"}.get(
            name, name.upper().replace("_", " ").replace("ARABIC-EXTENDED", "EXTENDED ARABIC-INDIC")
        )


@pytest.mark.parametrize(("longest", "per_length"), [(0, 1), (1, 0)])
def test_an_empty_sample(longest: int, per_length: int) -> None:
    with pytest.raises(ValueError, match="empty"):
        numbers(ENGINES, longest=longest, per_length=per_length)


def test_unknown_script() -> None:
    with pytest.raises(ValueError, match="no digits are named 'Roman'; known are: ASCII"):
        numbers(ENGINES, ["Roman"])


@pytest.mark.shared
def test_vendors(shared_data: Path) -> None:
    """Qwen cuts single digits, Llama-3 threes from the left: what their patterns say."""
    names = ("qwen25", "llama3")
    engines = {name: vendor_engine(shared_data / "tokenizers-hf" / name) for name in names}
    found = numbers(engines, ["ASCII"])
    assert found.value("qwen25", "ASCII", "tokens_per_digit") == 1
    assert found.value("qwen25", "ASCII", "digit_consistency") == 1
    assert found.value("llama3", "ASCII", "thousands_grouping") == pytest.approx(3 / 9)
    assert found.value("llama3", "ASCII", "digit_consistency") == pytest.approx(2 / 12)
