"""Cuts compared with a base's."""

from __future__ import annotations

from vocabshift.evaluation.lines.counts import count_lines
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.token_facts import TokenFacts
from vocabshift.evaluation.metrics import ratios
from vocabshift.evaluation.metrics.metric import OnText
from vocabshift.tokenizer.added_tokens import AddedToken


def test_tokens_are_the_same_by_their_bytes(make_tokenizer) -> None:
    """Ids do not matter: a token is the same where it stands for the same bytes."""
    special = AddedToken("ab", 300, special=True)
    ends = [AddedToken("<s>", 258)], [AddedToken("<s>", 400)]
    base = engine_of(make_tokenizer([("a", "b"), ("c", "d")], added_tokens=ends[0]))
    ours = engine_of(make_tokenizer([("c", "d"), ("x", "y")], added_tokens=ends[1]))
    facts = [TokenFacts(engine) for engine in (ours, base)]
    of_ours, of_base = (of_engine.hashes for of_engine in facts)
    assert of_base[257] == of_ours[256]  # cd
    assert of_base[258] == of_ours[400]  # <s>
    assert of_ours[257] not in of_base  # xy
    counts = [
        count_lines(engine, of_engine, ["cd cd", "ab", "xyz"])
        for engine, of_engine in zip((ours, base), facts, strict=True)
    ]
    on = OnText(counts[0], lambda: of_ours, 0, 0, 1.0, counts[1], of_base)
    edits, same = (metric.formula.terms(on)[0] for metric in ratios.DRIFT)
    assert [0, 2, 2] == edits.tolist()  # a|b for ab; xy for x|y
    assert [1, 0, 0] == same.tolist()
    other = TokenFacts(engine_of(make_tokenizer(added_tokens=[special])))
    assert other.hashes[300] not in of_base  # a special "ab" is no "ab" of text
