"""SentencePiece's rules: the core's shapes against the plain reading, and what may be cut."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from reference import piece_rule
from strategies import examples
from vocabshift import _core
from vocabshift.tokenizer.metaspace_reader import NEVER_IN_PIECES, decimal_digits

CHARACTERS = "▁▁ab1२９яйあカー漢\u0301\u0951क्.।😀\t▅"
texts = st.one_of(st.text(CHARACTERS, max_size=7), st.text(max_size=5), st.text("▁a", max_size=20))


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    flags = ("script", "number", "space")
    return {
        **{f"split_by_{name}": draw(st.booleans()) for name in flags},
        "split_digits": draw(st.booleans()),
        "space_is_suffix": draw(st.booleans()),
        "space_runs": draw(st.booleans()),
        "max_characters": draw(st.sampled_from((1, 2, 4, 16))),
        "digits": decimal_digits(),
        "never": NEVER_IN_PIECES,
    }


@example(text="ラー", options={})
@example(text="a\u0301b", options={})
@example(text="\u0301a", options={})
@example(text="▁▁", options={"space_runs": False})
@example(text="a1я", options={"split_by_number": False, "digits": "1", "split_digits": False})
@examples(1000)
@given(text=texts, options=rules())
def test_the_rule_equals_its_plain_twin(text: str, options: dict[str, Any]) -> None:
    expected = piece_rule.allows(text, **options)
    assert _core.PieceRule(**options).allows(text.encode()) == expected
    merging = _core.MergeRule(pieces=_core.PieceRule(**options))
    assert merging.allows(text.encode()) == expected


@examples(1000)
@given(
    before=texts, left=texts.filter(bool), right=texts.filter(bool), behind=texts, options=rules()
)
def test_what_may_not_join_is_in_no_piece(
    before: str, left: str, right: str, behind: str, options: dict[str, Any]
) -> None:
    rule = _core.PieceRule(**options)
    if not rule.may_join(left.encode(), right.encode()):
        assert not rule.allows((before + left + right + behind).encode())
    if options["split_by_space"]:  # then nothing that comes later can help
        assert rule.may_join(left.encode(), right.encode()) == rule.allows((left + right).encode())


@given(data=st.binary(max_size=12))
def test_bytes_that_are_no_text_are_no_piece(data: bytes) -> None:
    rule = _core.PieceRule(max_characters=100, split_by_script=False)
    try:
        assert rule.allows(data) == piece_rule.allows(
            data.decode(), max_characters=100, split_by_script=False
        )
    except UnicodeDecodeError:
        assert not rule.allows(data)
        assert not rule.may_join(data, b"a")
        assert not rule.may_join(b"a", data)
