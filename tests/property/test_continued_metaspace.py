"""Continued BPE of SentencePiece-like tokenizers: every merge against the slow reference, and the
extended tokenizer, run by `tokenizers`, where training ended."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from metaspace_training import learn_metaspace
from reference import continued_metaspace, piece_rule
from strategies import examples
from vocabshift.extension.continued import extended, learn
from vocabshift.extension.counting import count_metaspace
from vocabshift.extension.effect import measure
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.components import SentencePieceRules
from vocabshift.tokenizer.formats.sentencepiece import Piece, PieceType, Settings, from_pieces
from vocabshift.tokenizer.metaspace_reader import (
    NEVER_IN_PIECES,
    GroupCutter,
    ceilings,
    decimal_digits,
)
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer

LETTERS = "abт1२カー漢\u0301."
BYTES = [Piece(f"<0x{byte:02X}>", 0.0, PieceType.BYTE) for byte in range(256)]
SPLIT = {"String": " "}
PRE_TOKENIZERS: tuple[dict[str, Any] | None, ...] = (
    None,
    None,
    {"type": "Split", "pattern": SPLIT, "behavior": "MergedWithPrevious", "invert": False},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
)


@st.composite
def tokenizers(draw: st.DrawFn) -> Tokenizer:
    """A vocabulary with all splits as merges, as converted from a SentencePiece model."""
    known = draw(st.sets(st.sampled_from("▁" + LETTERS), min_size=1)) | {"▁"}
    part = st.text("▁ab" + "".join(sorted(known)), min_size=2, max_size=4)
    longer = draw(st.lists(part, max_size=12, unique=True))
    texts = draw(st.permutations(sorted(known | set(longer))))
    own = draw(st.lists(st.sampled_from(("ab▁", "[x]")), max_size=2, unique=True))
    pieces = [
        Piece("<unk>", 0.0, PieceType.UNKNOWN),
        Piece("<s>", 0.0, PieceType.CONTROL),
        *[Piece(text, 0.0, PieceType.USER_DEFINED) for text in own if text not in texts],
        *BYTES,
        *[Piece(text, -float(i)) for i, text in enumerate(texts)],
    ]
    settings = Settings(
        roles={"unk": 0, "bos": 1},
        byte_fallback=draw(st.sampled_from((True, True, False))),
        add_dummy_prefix=draw(st.booleans()),
        remove_extra_whitespaces=False,
    )
    tokenizer = from_pieces(pieces, settings)
    pre_tokenizer = draw(st.sampled_from(PRE_TOKENIZERS))
    if pre_tokenizer is not None and pre_tokenizer["type"] == "Metaspace":
        tokenizer = replace(tokenizer, normalizer=None)
    return replace(tokenizer, pre_tokenizer=pre_tokenizer)


texts = st.lists(
    st.lists(
        st.one_of(
            st.text(" " + LETTERS, max_size=8), st.sampled_from(("<s>", "[x]", "  ", "é", "\n"))
        ),
        min_size=1,
        max_size=8,
    )
    .map("".join)
    .filter(lambda text: bool(text.strip())),
    min_size=1,
    max_size=4,
)
rules = st.builds(
    SentencePieceRules,
    max_length=st.sampled_from((2, 3, 5, 16)),
    split_by_script=st.booleans(),
    split_by_number=st.booleans(),
    split_digits=st.booleans(),
    split_by_whitespace=st.booleans(),
    whitespace_as_suffix=st.booleans(),
    whitespace_only=st.booleans(),
)


def plain_rule(rules: SentencePieceRules, text: str) -> bool:
    return piece_rule.allows(
        text,
        max_characters=rules.max_length,
        split_by_script=rules.split_by_script,
        split_by_number=rules.split_by_number,
        split_digits=rules.split_digits,
        split_by_space=rules.split_by_whitespace,
        space_is_suffix=rules.whitespace_as_suffix,
        space_runs=rules.whitespace_only,
        digits=decimal_digits(),
        never=NEVER_IN_PIECES,
    )


def stands_alone(tokenizer: Tokenizer) -> set[str]:
    return {piece.text for piece in BYTES} | {token.content for token in tokenizer.added_tokens}


def segmented(tokenizer: Tokenizer, documents: list[str]) -> list[list[int]]:
    return continued_metaspace.segments(tokenizer.backend, documents)


@examples(100)
@given(
    base=tokenizers(),
    documents=texts,
    rules=rules,
    n_tokens=st.integers(1, 30),
    min_frequency=st.integers(1, 3),
    tie_break=st.sampled_from(("id", "lexicographic")),
    coverage=st.sampled_from((None, 0.5, 0.9995, 1.0)),
    threads=st.integers(1, 3),
    weight=st.sampled_from((1, 1, 2)),
)
def test_every_merge_and_count(
    base: Tokenizer,
    documents: list[str],
    rules: SentencePieceRules,
    n_tokens: int,
    min_frequency: int,
    tie_break: Literal["id", "lexicographic"],
    coverage: float | None,
    threads: int,
    weight: int,
) -> None:
    """`weight`: what each document but the first counts."""
    corpus = Corpus.from_texts(documents)
    if len(documents) > 1:
        by_language = {"x": documents[:1], "y": documents[1:]}
        corpus = Corpus.from_texts(by_language, weights={"y": float(weight)})
    unit = 4096 if len(documents) > 1 and weight > 1 else 1  # of weighted counts
    learned = learn_metaspace(
        base,
        corpus,
        n_tokens=n_tokens,
        min_frequency=min_frequency,
        tie_break=tie_break,
        rules=rules,
        add_characters=coverage,
        threads=threads,
    )
    with_characters = extended(base, replace(learned, tokens=learned.characters, merges=()))
    tokens = {token_id: token for token, token_id in with_characters.model.vocab.items()}
    first, rest = (segmented(with_characters, part) for part in (documents[:1], documents[1:]))
    sequences = first + rest
    merges, counts = continued_metaspace.learn(
        tokens,
        sequences,
        [unit] * len(first) + [unit * weight] * len(rest),
        n_tokens=n_tokens,
        min_frequency=min_frequency * unit,
        alone=stands_alone(base),
        held={part for merge in base.model.merges for part in merge},
        allows=lambda text: plain_rule(rules, text),
        lexicographic=tie_break == "lexicographic",
    )
    assert list(learned.merges) == merges
    assert list(learned.counts) == counts
    longer = extended(base, learned)
    assert {token_id: token for token, token_id in longer.model.vocab.items()} == tokens
    if tie_break == "id":
        assert segmented(longer, documents) == sequences
        assert set(unreachable_tokens(longer)) <= set(unreachable_tokens(base))
    # Only unknown characters, for which the base has no byte pieces, may come back better.
    for text in documents:
        old, new = (t.backend.encode(text, add_special_tokens=False) for t in (base, longer))
        if base.model.byte_fallback or base.model.vocab["<unk>"] not in old.ids:
            assert longer.backend.decode(new.ids) == base.backend.decode(old.ids)


@examples(75)
@given(base=tokenizers(), documents=texts, rules=rules, coverage=st.sampled_from((0.7, 1.0)))
def test_characters_come_the_most_frequent_first(
    base: Tokenizer, documents: list[str], rules: SentencePieceRules, coverage: float
) -> None:
    corpus = Corpus.from_texts(documents)
    found = count_metaspace(base, corpus, rules=rules, add_characters=coverage).characters
    known = {token for token in base.model.vocab if len(token) == 1}
    text = "".join(documents).replace(" ", "▁")
    text = "".join(character for character in text if character not in NEVER_IN_PIECES)
    missing = sorted(set(text) - known, key=lambda c: (-text.count(c), c))
    assert list(found) == missing[: len(found)]
    held = [sum(text.count(c) for c in {*known, *missing[:n]}) for n in range(len(missing) + 1)]
    assert held[len(found)] >= coverage * len(text) or len(found) == len(missing)
    assert not found or held[len(found) - 1] < coverage * len(text)


@examples(50)
@given(base=tokenizers(), documents=texts, rules=rules)
def test_the_ceiling_is_bytes_per_group(
    base: Tokenizer, documents: list[str], rules: SentencePieceRules
) -> None:
    """Groups are runs of tokens of which every two neighbours may be in one piece; merges without
    end never get beyond."""
    corpus = Corpus.from_texts({"xx": documents})
    found = ceilings(base, corpus, rules=rules, add_characters=None)
    counted = count_metaspace(base, corpus, rules=rules, add_characters=None)
    effect = measure(counted.form, learn(counted.form, counted.text, n_tokens=1), counted.text)
    n_bytes = sum(len(document.encode()) for document in documents)
    groups = 0
    names = {token_id: token for token, token_id in base.model.vocab.items()}
    alone = stands_alone(base)
    rule = GroupCutter(base, rules).rule
    for ids in segmented(base, documents):
        groups += 1
        for left, right in pairwise(ids):
            pair = (names[left], names[right])
            may = rule.may_join(pair[0].encode(), pair[1].encode())
            groups += not may or bool(set(pair) & alone)
    assert found == {"xx": n_bytes / groups}
    assert effect.ceiling == n_bytes / groups
    endless = learn_metaspace(base, corpus, n_tokens=10_000, rules=rules, add_characters=None)
    assert sum(map(len, segmented(extended(base, endless), documents))) >= groups
