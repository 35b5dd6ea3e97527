"""What tokenizers pay for changing the language, and which tokens reach across."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabshift as vs
from vocabshift.errors import CorpusError
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.metrics.code_switching import METRICS, code_switching, mix
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.tokenizer import Tokenizer

MakeTokenizer = Callable[..., Tokenizer]
TRAINED = engine_of(
    vs.SuperwordTrainer(vocab_size=360, transition=0.8).train(
        vs.Corpus.from_texts({"all": ["यह cat है", "the नदी is", "cat है the नदी"] * 12})
    )
)
LINES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["यह", "है", "नदी"]), min_size=1, max_size=12).map(" ".join),
        st.lists(st.sampled_from(["the", "cat", "is"]), min_size=1, max_size=12).map(" ".join),
    ),
    min_size=1,
    max_size=4,
)


def pieces(engine: Engine, line: str) -> list[bytes]:
    tokens = engine.tokenizer.backend.encode(line, add_special_tokens=False).tokens
    return [byte_level.to_bytes(token) for token in tokens]


@given(LINES)
def test_equals_a_count_token_by_token(pairs: list[tuple[str, str]]) -> None:
    texts = {"hi": [one for one, _ in pairs], "en": [other for _, other in pairs]}
    paid = expected = 0.0
    spanned = n_switches = 0
    for line, pair in zip(mix(texts, ["hi+en"])["hi+en"].lines, pairs, strict=True):
        tokens = pieces(TRAINED, line.text)
        paid += len(tokens)
        for own, taken in zip(pair, line.n_words, strict=True):
            expected += len(pieces(TRAINED, own)) / len(own.split()) * taken
        n_switches += len(line.switches)
        for at in line.switches:
            begin = 0
            for token in tokens:
                place = len(line.text[:at].encode())
                spanned += begin < place and begin + len(token) > place + 1
                begin += len(token)
    found = code_switching({"own": TRAINED}, texts, ["hi+en"])
    values = {row.metric: row.value for row in found}
    assert values.pop("code_switch_premium") == pytest.approx(paid / expected)
    assert values == ({"switch_span_rate": spanned / n_switches} if n_switches else {})
    assert {row.metric for row in found} <= {metric.name for metric in METRICS}


def test_some_tokens_of_the_trained_one_reach_across() -> None:
    """Or the test above would say nothing of them."""
    texts = {"hi": ["cat cat", "the the"], "en": ["है है", "नदी नदी"]}
    found = code_switching({"own": TRAINED}, texts, ["hi+en"])
    assert found.value("own", "hi+en", "switch_span_rate") > 0


def test_a_premium_by_hand(make_tokenizer: MakeTokenizer) -> None:
    """ "a Ġb" and "x Ġy" know their neighbours, "a Ġy" does not: four tokens for two."""
    merges = [("Ġ", "b"), ("Ġ", "y")]
    engine = engine_of(make_tokenizer(merges))
    found = code_switching({"own": engine}, {"l1": ["a b", "a b"], "l2": ["x y", "x y"]}, ["l1+l2"])
    assert found.value("own", "l1+l2", "code_switch_premium") == 1
    texts = {"l1": ["a b", "a b"], "l2": ["x z", "x z"]}  # "Ġz" is two tokens
    found = code_switching({"own": engine}, texts, ["l1+l2"])
    # a|Ġ|z and x|Ġb: five tokens; half of a|Ġb and half of x|Ġ|z each: 2 * (1 + 1.5)
    assert found.value("own", "l1+l2", "code_switch_premium") == 1
    assert found.value("own", "l1+l2", "switch_span_rate") == 0


@pytest.mark.parametrize(
    ("texts", "pair", "error", "message"),
    [
        ({"hi": ["a"], "en": ["b", "c"]}, "hi+en", CorpusError, "parallel"),
        ({"hi": ["a"]}, "hi+en", CorpusError, "needs text of en, and there is only text of hi"),
        ({"hi": ["a"]}, "hi", ValueError, "no pair"),
        ({"hi": [], "en": []}, "hi+en", CorpusError, "no line of text for hi"),
    ],
)
def test_bad_texts(
    texts: dict[str, list[str]], pair: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        code_switching({"own": TRAINED}, texts, [pair])
