"""How tokenizers split numbers: into meaningful groups, and consistently?

Owns the sample of numbers and the metrics. Arithmetic is easier for models if a digit's position in
its token determines its place in the number (Singh & Strouse 2024, "Tokenization counts"): groups
of three from the right, as in 1,234,567, or single digits. India groups by lakh and crore: three
digits, then twos (12,34,567). Knows nothing of texts: numbers are encoded alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from vocabshift.evaluation.lines.counts import Ints
from vocabshift.evaluation.lines.placing import flat_spans
from vocabshift.evaluation.metrics.metric import Better, Metric, Terms, ratio_rows
from vocabshift.results import Result, Results
from vocabshift.tokenizer.engine import Engine

Flags = npt.NDArray[np.bool_]


def _metric(name: str, label: str, note: str, better: Better = "higher") -> Metric:
    return Metric(name, "numbers", label, note, better, needs=frozenset())


METRICS = (
    _metric("tokens_per_digit", "tokens per digit", "of numbers", "lower"),
    _metric("single_token_digits", "digits that are tokens", "share of ten"),
    _metric("thousands_grouping", "1,234,567", "share of numbers cut like it"),
    _metric("thousands_border_rate", "borders at thousands", "share of them where a token ends"),
    _metric("lakh_grouping", "12,34,567", "share of numbers cut like it"),
    _metric(
        "digit_consistency", "digits cut alike", "share of numbers cut as after one more digit"
    ),
)
"""Tokens over digits, of numbers without an unknown token. Of the ten digits, those that are one
token. Of the numbers of four digits and more, those cut into groups of three from the right and
nowhere else; of the places where these have a thousands separator, those where a token ends; those
cut into lakh and crore and nowhere else. Of all numbers, those that are cut as they are cut after
one more digit in front."""

ZEROS: Mapping[str, str] = {
    "ASCII": "0",
    "Arabic": "\u0660",
    "Arabic-Extended": "\u06f0",  # Urdu, Sindhi, Kashmiri, Persian
    "Devanagari": "\u0966",
    "Bengali": "\u09e6",
    "Gurmukhi": "\u0a66",
    "Gujarati": "\u0ae6",
    "Oriya": "\u0b66",
    "Tamil": "\u0be6",
    "Telugu": "\u0c66",
    "Kannada": "\u0ce6",
    "Malayalam": "\u0d66",
    "Ol_Chiki": "\u1c50",
    "Meetei_Mayek": "\uabf0",
}
"""The digit zero of each script; the other nine follow it (Unicode's Nd come in runs of ten)."""

LONGEST = 12
PER_LENGTH = 100
_SEED = 7


def numbers(
    engines: Mapping[str, Engine],
    scripts: Iterable[str] | None = None,
    *,
    longest: int = LONGEST,
    per_length: int = PER_LENGTH,
    threads: int = 1,
) -> Results:
    """METRICS for each engine and kind of digits, with intervals over numbers.

    The language of a row is the name of the digits, a key of ZEROS (default: all of them). The
    sample: of each length from 1 to `longest` digits, `per_length` numbers that do not begin with
    zero, drawn with a fixed seed, the same for every script. ValueError for unknown digits or a
    sample of nothing.
    """
    wanted = list(ZEROS) if scripts is None else list(dict.fromkeys(scripts))
    unknown = [script for script in wanted if script not in ZEROS]
    if unknown:
        raise ValueError(f"no digits are named {unknown[0]!r}; known are: {', '.join(ZEROS)}")
    sample = sample_numbers(longest, per_length)
    rows: list[Result] = []
    for script in wanted:
        digits = [chr(ord(ZEROS[script]) + value) for value in range(10)]
        written = str.maketrans("0123456789", "".join(digits))
        texts = [number.translate(written) for number in sample]
        terms = {name: _terms(engine, texts, threads) for name, engine in engines.items()}
        rows += ratio_rows(script, terms)
        single = {
            name: {"single_token_digits": _single(engine, digits, threads)}
            for name, engine in engines.items()
        }
        rows += ratio_rows(script, single)
    return Results(rows)


def sample_numbers(longest: int = LONGEST, per_length: int = PER_LENGTH) -> list[str]:
    """Numbers in pairs, in ASCII digits: each, and then the same after one more digit."""
    if longest < 1 or per_length < 1:
        raise ValueError(
            f"a sample of {per_length} numbers of up to {longest} digits is empty; "
            "both must be at least 1"
        )
    generator = np.random.default_rng(_SEED)
    sample = []
    for length in range(1, longest + 1):
        digits = generator.integers(0, 10, (per_length, length + 1))
        digits[:, :2] = generator.integers(1, 10, (per_length, 2))
        for row in digits.tolist():
            longer = "".join(map(str, row))
            sample += [longer[1:], longer]
    return sample


def _terms(engine: Engine, texts: Sequence[str], threads: int) -> dict[str, Terms]:
    """Terms over the numbers, (n_pairs,): the longer one of each pair only serves to compare."""
    width = len(texts[0][0].encode())  # bytes of a digit
    sizes = np.array([len(text.encode()) for text in texts[::2]])
    cuts, n_tokens, known = _cuts_from_the_right(engine, texts, threads)
    shorter, longer = cuts[::2], cuts[1::2]
    long_enough = (sizes > 3 * width).astype(np.int64)

    def cut_exactly(groups: Sequence[int]) -> Terms:
        expected = _separators(sizes, [width * group for group in groups], cuts.shape[1])
        return (shorter == expected).all(axis=1) * long_enough, long_enough

    thousands = _separators(sizes, [3 * width], cuts.shape[1])
    inside = np.arange(cuts.shape[1]) < sizes[:, None]
    alike = (shorter == (longer & inside)).all(axis=1)
    consistent = (alike & known[::2] & known[1::2]).astype(np.int64)
    return {
        "tokens_per_digit": (n_tokens[::2] * known[::2], sizes // width * known[::2]),
        "thousands_grouping": cut_exactly([3]),
        "thousands_border_rate": ((shorter & thousands).sum(axis=1), thousands.sum(axis=1)),
        "lakh_grouping": cut_exactly([3, 2]),
        "digit_consistency": (consistent, np.ones_like(consistent)),
    }


def _cuts_from_the_right(
    engine: Engine, texts: Sequence[str], threads: int
) -> tuple[Flags, Ints, Flags]:
    """Whether each text is cut so many bytes from its end, (n_texts, longest size + 1), never at
    its end or beginning; its tokens; whether it has no unknown one."""
    spans = flat_spans(engine, texts, threads=threads)
    in_text = spans.ends > spans.starts
    unknown = np.zeros(len(spans.ids), dtype=np.bool_)
    if engine.unknown_id is not None:
        unknown = spans.ids == engine.unknown_id
    sizes = np.array([len(text.encode()) for text in texts])
    cuts = np.zeros((len(texts), int(sizes.max()) + 1), dtype=np.bool_)
    line = spans.line[in_text]
    for borders in (spans.starts[in_text], spans.ends[in_text]):
        cuts[line, sizes[line] - borders] = True
    cuts[:, 0] = False
    cuts[np.arange(len(texts)), sizes] = False
    return cuts, spans.per_line(in_text), spans.per_line(unknown) == 0


def _separators(sizes: Ints, groups: Sequence[int], width: int) -> Flags:
    """Where numbers of `sizes` bytes are cut into groups from the right, (n_numbers, width); the
    last group repeats."""
    places = np.zeros(width, dtype=np.bool_)
    at, number = groups[0], 0
    while at < width:
        places[at] = True
        number = min(number + 1, len(groups) - 1)
        at += groups[number]
    return places & (np.arange(width) < sizes[:, None])


def _single(engine: Engine, digits: Sequence[str], threads: int) -> Terms:
    """Whether each of the ten digits is one token."""
    _, n_tokens, known = _cuts_from_the_right(engine, digits, threads)
    return ((n_tokens == 1) & known).astype(np.int64), np.ones(len(digits), dtype=np.int64)
