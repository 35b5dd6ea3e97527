"""Robustness: by hand, and against a slow reference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import vocabshift as vs
from reference import linguistic as reference
from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.texts import read_lines
from vocabshift.evaluation.metrics.robustness import CHANGES, METRICS, TYPOS, robustness, typo
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.tokenizer import Tokenizer

MakeTokenizer = Callable[..., Tokenizer]
TRAINED = engine_of(
    vs.SuperwordTrainer(vocab_size=330, transition=0.85).train(
        vs.Corpus.from_texts({"all": ["the cat sat on the mat", "नदी की क्षमा कीमत", "café é"] * 9})
    )
)
WORDS = st.sampled_from(["the", "cat", "sat", "mat", "नदी", "कीमत", "é", "e\u0301", "\0", "🙂"])
LINES = st.lists(WORDS, max_size=6).map(" ".join)


def encode(engine: Engine, line: str) -> tuple[list[int], list[bytes]]:
    found = engine.tokenizer.backend.encode(line, add_special_tokens=False)
    return found.ids, [byte_level.to_bytes(token) for token in found.tokens]


def expected(engine: Engine, lines: list[str]) -> dict[str, float]:
    """All metrics that say something, by the reference."""
    shares: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        ids, pieces = encode(engine, line)
        for name, change in CHANGES.items():
            if change(line) != line:
                changed = encode(engine, change(line))[0]
                shares.setdefault(f"{name}_change", []).append(
                    (reference.edit_distance(ids, changed), max(len(ids), len(changed)))
                )
        for kind in TYPOS:
            made = typo(line, kind)
            if made is None:
                continue
            changed, new_pieces = encode(engine, made.text)
            shares.setdefault(f"{kind}_change", []).append(
                (reference.edit_distance(ids, changed), max(len(ids), len(changed)))
            )
            word = (len(line[: made.begin].encode()), len(line[: made.end].encode()))
            grown = len(made.text.encode()) - len(line.encode())
            kept = reference.kept_outside(pieces, new_pieces, word, grown)
            shares.setdefault(f"{kind}_locality", []).append(kept)
    sums = {name: [sum(column) for column in zip(*of, strict=True)] for name, of in shares.items()}
    return {name: above / below for name, (above, below) in sums.items() if below}


@given(st.lists(LINES, min_size=1, max_size=4))
def test_equals_the_reference(lines: list[str]) -> None:
    """NULs and lone marks among them; blank lines are left out."""
    assume("".join(lines).strip())
    found = robustness({"own": TRAINED}, {"xx": lines})
    assert {row.metric: row.value for row in found} == pytest.approx(
        expected(TRAINED, read_lines(lines)["all"])
    )
    assert {metric.name for metric in METRICS} >= {row.metric for row in found}


def test_by_hand(make_tokenizer: MakeTokenizer) -> None:
    """ "cat Ġsat Ġhat": one word becomes letters, the other two stay."""
    merges = [("a", "t"), ("c", "at"), ("s", "at"), ("h", "at")]
    merges += [("Ġ", "cat"), ("Ġ", "sat"), ("Ġ", "hat")]
    engine = engine_of(make_tokenizer(merges))
    found = robustness({"own": engine}, {"en": ["cat sat hat", "12"]})
    values = {row.metric: (row.value, row.n) for row in found}
    assert values["delete_locality"] == (1, 1)
    # one token becomes two letters, and a space where the word is not the first
    mistyped = typo("cat sat hat", "delete")
    assert mistyped is not None
    changed = 2 if mistyped.begin == 0 else 3
    assert values["delete_change"] == (changed / (2 + changed), 1)
    assert values["trailing_space_change"] == (2 / (4 + 3), 2)
    assert values["leading_space_change"] == ((1 + 1) / (3 + 3), 2)
    assert values["uppercase_change"] == (1, 1)
    assert not {"nfc_change", "nfd_change", "lowercase_change"} & set(values)


def test_superwords_spread_a_typo(make_tokenizer: MakeTokenizer) -> None:
    """A token that reaches from the mistyped word into another one has text of both, and goes."""
    line = "on mat"  # only "mat" is long enough to be mistyped
    words = [("o", "n"), ("m", "a"), ("ma", "t"), ("Ġ", "mat")]
    engine = engine_of(make_tokenizer(words))
    found = robustness({"own": engine}, {"en": [line]})
    assert found.value("own", "en", "delete_locality") == 1
    corpus = vs.Corpus.from_texts({"en": [line] * 20})
    superwords = engine_of(vs.SuperwordTrainer(vocab_size=264, transition=0.99).train(corpus))
    assert len(superwords.encode_batch([line])[0]) == 1
    found = robustness({"own": superwords}, {"en": [line]})
    assert found.value("own", "en", "delete_locality") == 0


def test_bad_texts() -> None:
    with pytest.raises(CorpusError, match="no line of text for hi"):
        robustness({"own": TRAINED}, {"hi": []})
    with pytest.raises(CorpusError, match="surrogate"):
        robustness({"own": TRAINED}, {"hi": ["a\udfff"]})
