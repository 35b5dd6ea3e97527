"""Metaspace, Punctuation and Falcon's steps run in the core, with the ids of `tokenizers`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from strategies import examples
from vocabshift.text.scanners import compile_pattern, cuts_of
from vocabshift.text.writing import PUNCTUATION_RANGES
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")

PIECES = (
    *("▁", "▁▁", " ", "  ", "a", "b", "ab", "é", "क", "ಲ", "ಲ್", "_", "-", "!", "।", "…", "\n"),
    *("<s>", "[x]", "<t>", "1", "12", "²", "½", "३", "\u0378", "\u2e5d", "\U000111c9", "'s"),
)
"""Of text: spaces and what stands for them, added tokens, punctuation old and new, digits whose
bytes are digits for ByteLevel and digits whose bytes are none."""

text_of_pieces = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)

ADDED = (
    AddedToken("<s>", 500, special=True),
    AddedToken("[x]", 501, lstrip=True, rstrip=True, special=True),
    AddedToken("<t>", 502, special=False, normalized=True),
)


def character_model(space: str) -> BpeModel:
    """Characters, byte pieces for others, and a few merges with the space in them."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    characters = dict.fromkeys([space, "▁", *"ab_-!12 "])
    merges = [
        (space, "a"),
        ("a", "b"),
        (space, "ab"),
        (space, space),
        (space * 2, "ab"),
        ("a", "!"),
    ]
    tokens = [*bytes_, "<unk>", *characters, *(left + right for left, right in merges)]
    vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    return BpeModel(vocab, tuple(merges), byte_fallback=True, unk_token="<unk>", fuse_unk=True)


def byte_level_model() -> BpeModel:
    """All bytes, and merges over what steps after ByteLevel may cut: parts of ಲ, and digits."""
    la = byte_level.to_image("ಲ".encode())
    pairs = [(la[0], la[1]), (la[0] + la[1], la[2]), (la[1], la[2]), ("1", "2"), ("12", "1")]
    pairs += [("Ġ", "a"), ("a", "b"), ("!", "!"), ("Ġ", "1"), (la, la[0]), (la[1], "1")]
    tokens = dict.fromkeys([*byte_level.ALPHABET, *(left + right for left, right in pairs)])
    return BpeModel({token: i for i, token in enumerate(tokens)}, tuple(pairs))


def agree(tokenizer: Tokenizer, text: str, engine: str = "core") -> None:
    """One text, and the same among others on two threads."""
    encoder = Encoder(tokenizer)
    assert engine == encoder.engine
    expected = tokenizer.backend.encode(text, add_special_tokens=False).ids
    assert expected == encoder.encode(text).tolist()
    ids, offsets = encoder.encode_batch([text, "", text], threads=2)
    assert expected * 2 == ids.tolist()
    assert [0, len(expected), len(expected), 2 * len(expected)] == offsets.tolist()


def metaspace(scheme: str, *, split: bool = True, space: str = "▁") -> dict[str, Any]:
    return {"type": "Metaspace", "replacement": space, "prepend_scheme": scheme, "split": split}


RESPACED = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
NORMALIZERS = {
    "core": (
        None,
        {"type": "NFC"},
        RESPACED,
        {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, RESPACED]},
    ),
    "core behind tokenizers": (
        {"type": "Lowercase"},
        {"type": "Strip", "strip_left": True, "strip_right": True},
    ),
}


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("scheme", ["always", "first", "never"])
@examples(60)
@given(text=text_of_pieces, space=st.sampled_from("▁▁▁_ "), added=st.booleans(), data=st.data())
@example(text="", space="▁", added=False, data=None)
@example(text="<s>a<s> a", space="▁", added=True, data=None)
@example(text=" [x] a", space="▁", added=True, data=None)
def test_metaspace(
    scheme: str, text: str, space: str, data: st.DataObject | None, *, split: bool, added: bool
) -> None:
    """`first` puts a space where the text begins, and nowhere after an added token."""
    engine = "core" if data is None else data.draw(st.sampled_from(sorted(NORMALIZERS)))
    normalizer = None if data is None else data.draw(st.sampled_from(NORMALIZERS[engine]))
    if engine != "core" and scheme == "first":
        engine = "tokenizers"  # it asks whether something was taken from the beginning
    tokens = tuple(token for token in ADDED if normalizer is None or not token.normalized)
    tokenizer = Tokenizer(
        character_model(space),
        normalizer=normalizer,
        pre_tokenizer=metaspace(scheme, split=split, space=space),
        added_tokens=tokens if added else (),
    )
    agree(tokenizer, text, engine)


def test_metaspace_as_older_files_spell_it() -> None:
    for spec in (
        {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
        {"type": "Metaspace", "replacement": "▁", "str_rep": "▁", "add_prefix_space": True},
        {"type": "Sequence", "pretokenizers": [metaspace("first")]},
    ):
        tokenizer = Tokenizer(character_model("▁"), pre_tokenizer=spec)
        for text in ("a ab  ab", "▁a", " a", "", " "):
            agree(tokenizer, text)


def test_metaspace_beside_other_steps_is_left_to_tokenizers() -> None:
    steps = [{"type": "Digits", "individual_digits": True}, metaspace("first")]
    tokenizer = Tokenizer(
        character_model("▁"), pre_tokenizer={"type": "Sequence", "pretokenizers": steps}
    )
    agree(tokenizer, "a1 ab 1a", "tokenizers")


@pytest.mark.parametrize("behavior", BEHAVIORS)
@examples(60)
@given(text=text_of_pieces)
def test_punctuation(behavior: str, text: str) -> None:
    """Before a byte-level model, and before one of characters."""
    engine = "core behind tokenizers" if behavior == "Removed" else "core"
    step = {"type": "Punctuation", "behavior": behavior}
    agree(Tokenizer(character_model("▁"), pre_tokenizer=step), text, engine)
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    steps = {"type": "Sequence", "pretokenizers": [step, bytes_ | {"trim_offsets": True}]}
    agree(Tokenizer(byte_level_model(), pre_tokenizer=steps), text, engine)


def test_every_character_is_punctuation_or_none() -> None:
    """As `tokenizers` has it, whose Unicode is an old one."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    peer = pre_tokenizers.Punctuation("removed")
    kept = {piece for piece, _ in peer.pre_tokenize_str("a".join(characters))}
    told = {chr(code) for first, last in PUNCTUATION_RANGES for code in range(first, last + 1)}
    joined = "".join(kept)
    assert told == set(characters) - set(joined)


FALCON = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Punctuation", "behavior": "Contiguous"},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        {"type": "Digits", "individual_digits": False},
        {
            "type": "Split",
            "pattern": {"Regex": "[0-9][0-9][0-9]"},
            "behavior": "Isolated",
            "invert": False,
        },
    ],
}


@pytest.mark.parametrize("individual", [False, True])
@examples(150)
@given(text=text_of_pieces, ignore_merges=st.booleans(), added=st.booleans())
@example(text="ಲ12123ಲಲ121", ignore_merges=False, added=False)
@example(text="²1", ignore_merges=False, added=False)
def test_falcon(text: str, *, individual: bool, ignore_merges: bool, added: bool) -> None:
    """Digits are looked for among the images of bytes: those of "²" and of parts of "ಲ" are."""
    punctuation, bytes_, _, triples = FALCON["pretokenizers"]
    digits = {"type": "Digits", "individual_digits": individual}
    spec = {"type": "Sequence", "pretokenizers": [punctuation, bytes_, digits, triples]}
    model = byte_level_model()
    model = BpeModel(model.vocab, model.merges, ignore_merges=ignore_merges)
    agree(Tokenizer(model, pre_tokenizer=spec, added_tokens=ADDED if added else ()), text)


@given(text=text_of_pieces)
def test_an_unknown_step_after_byte_level(text: str) -> None:
    """`tokenizers` cuts, and its pieces are images of bytes."""
    steps = [*FALCON["pretokenizers"][:2], {"type": "Punctuation", "behavior": "Isolated"}]
    spec = {"type": "Sequence", "pretokenizers": steps}
    agree(Tokenizer(byte_level_model(), pre_tokenizer=spec), text, "core behind tokenizers")


def test_what_runs_falcon() -> None:
    cuts = cuts_of(FALCON)
    assert cuts is not None
    assert compile_pattern(cuts.splits, cuts.byte_steps) is not None
    assert 2 == len(cuts.byte_steps)
