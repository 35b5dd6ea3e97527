"""The repaired pre-tokenizer in a tokenizer: what changes, what stays, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from repaired import repaired_pattern
from vocabshift.extension.options import repair_drift, repaired
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import get_pattern, to_spec
from vocabshift.text.regexes import CL100K, GPT2
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json

Make = Callable[..., Tokenizer]
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": False,
    "use_regex": True,
}
MARKED = "be\u0301x"  # with a combining accent
WORDS = (MARKED, "the")


def split(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def llama_like(make: Make) -> Tokenizer:
    return make(*WORDS, specials=("<end>",), pre_tokenizer=to_spec(get_pattern("cl100k")))


def test_only_the_pre_tokenizer_changes(make_byte_level: Make) -> None:
    base = llama_like(make_byte_level)
    mended = repaired(base)
    assert to_spec(repaired_pattern(get_pattern("cl100k"))) == mended.pre_tokenizer
    assert replace(mended, pre_tokenizer=base.pre_tokenizer).__dict__ == base.__dict__
    text = f"the {MARKED}the<end>{MARKED} "
    assert mended.backend.encode(text).ids == Encoder(mended).encode(text).tolist()
    assert to_json(mended) == to_json(Tokenizer.from_json(to_json(mended)))
    assert "core" == Encoder(mended).engine


def test_byte_level_with_its_own_regex_is_taken_apart(make_byte_level: Make) -> None:
    base = make_byte_level(*WORDS, pre_tokenizer=BYTE_LEVEL)
    steps = (repaired(base).pre_tokenizer or {})["pretokenizers"]
    new = repaired_pattern(get_pattern("gpt2"))[0].regex
    assert [split(new), {**BYTE_LEVEL, "use_regex": False}] == steps
    implied = {key: value for key, value in BYTE_LEVEL.items() if key != "use_regex"}
    again = repaired(replace(base, pre_tokenizer=implied))
    assert steps == (again.pre_tokenizer or {})["pretokenizers"]


def test_other_steps_stay_where_they_are(make_byte_level: Make) -> None:
    digits = {"type": "Digits", "individual_digits": True}
    own = {"type": "Split", "pattern": {"String": "_"}, "behavior": "Removed", "invert": False}
    inner = {"type": "Sequence", "pretokenizers": [own, split(CL100K)]}
    last = {**BYTE_LEVEL, "use_regex": False}
    spec = {"type": "Sequence", "pretokenizers": [digits, inner, last]}
    mended = repaired(make_byte_level(*WORDS, pre_tokenizer=spec))
    new = repaired_pattern(get_pattern(CL100K))[0].regex
    assert [digits, own, split(new), last] == (mended.pre_tokenizer or {})["pretokenizers"]
    assert mended.backend.encode("कि 12").tokens  # `tokenizers` runs it


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (to_spec(get_pattern("indic")), "nothing to repair"),
        (to_spec(()), "nothing to repair"),
        ({**BYTE_LEVEL, "add_prefix_space": True}, "a space before every text"),
        ({"type": "ByteLevel"}, "a space before every text"),
    ],
)
def test_what_cannot_be_repaired(make_byte_level: Make, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"{message}.*(kept)"):
        repaired(make_byte_level(*WORDS, pre_tokenizer=spec))


def test_sentencepiece_has_nothing_to_repair(make_metaspace: Make) -> None:
    with pytest.raises(ValueError, match="not byte-level"):
        repaired(make_metaspace("ab"))


def test_what_is_repaired_is_not_repaired_again(make_byte_level: Make) -> None:
    with pytest.raises(ValueError, match="nothing to repair"):
        repaired(repaired(llama_like(make_byte_level)))


def test_drift_by_language(make_byte_level: Make) -> None:
    """A word of one token is several pieces, cut at its marks; English does not change."""
    base = llama_like(make_byte_level)
    corpus = Corpus.from_texts({"fr": [f"{MARKED}, {MARKED}", "b"], "en": ["the cat", "don't 1"]})
    drift = repair_drift(base, repaired(base), corpus, threads=2)
    assert (0.0, 0.0) == drift.languages["en"].shares
    french = drift.languages["fr"]
    assert (2, 1) == (french.documents, french.changed_documents)
    assert 0 < french.changed_tokens <= french.tokens
    assert byte_level.to_image(MARKED.encode()) in drift.gained
    assert () == drift.lost
    shown = drift.to_dict()
    assert {"fr": 0.5, "en": 0.0} == shown["changed_lines"]
    assert len(drift.gained) == shown["tokens_gained"]
    assert 0 == shown["tokens_lost"]


def test_a_piece_of_a_mark_and_punctuation_goes_with_the_boundary(make_byte_level: Make) -> None:
    """A vowel sign and what follows it were a piece; now the sign belongs to its letter."""
    base = make_byte_level("क", "ि!", pre_tokenizer=to_spec(get_pattern(GPT2)))
    drift = repair_drift(base, repaired(base), Corpus.from_texts(["कि!"]))
    assert () == drift.lost  # behind a space the two are a piece as before
    assert 1 == drift.languages["unlabelled"].changed_documents
