"""What a merge may make: the rule against its plain twin, and grapheme-safe training."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference import bpe, merge_rule, superword
from reference.pre_tokenize import pre_tokenizer
from reference.syllables import borders
from strategies import LETTERS, MARKS, documents, examples, terminals, words
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED
from vocabshift.text.writing import LINKERS, TERMINALS
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.trainers.superword import SuperwordTrainer

CONJOINERS = "".join(LINKERS.values())
indic = st.text("कषत्ि़ंক্তেક્ષഅല്‍‌ꯀ꫶க்ஷ ", min_size=1, max_size=6)
short = st.lists(
    st.one_of(
        words,
        indic,
        terminals,
        st.sampled_from((*MARKS, " ", "  ", "😀", "a ", "\U0010ffff", "\x00")),
    ),
    min_size=1,
    max_size=4,
).map("".join)


@st.composite
def products(draw: st.DrawFn) -> bytes:
    """Bytes that stand in some text: from and to anywhere."""
    data = draw(short).encode()
    begin = draw(st.integers(0, len(data) - 1))
    return data[begin : begin + draw(st.integers(1, len(data)))]


@example(product=b" a b", chosen="", limits=(0, 1), whole=False, conjoiners="")
@example(product=b"a b  c", chosen="", limits=(0, 2), whole=False, conjoiners="")
@example(product="।".encode()[1:], chosen="।", limits=(0, 0), whole=False, conjoiners="")
@example(product=b"\xa4a", chosen=".", limits=(0, 0), whole=True, conjoiners="")
@example(product="अक्\u200d".encode(), chosen="", limits=(0, 0), whole=False, conjoiners="्")
@example(product="अक्\u200c".encode(), chosen="", limits=(0, 0), whole=False, conjoiners="्")
@example(product="क्\u200dष".encode(), chosen="", limits=(0, 0), whole=False, conjoiners="्")
@example(product="\u200dष".encode(), chosen="", limits=(0, 0), whole=False, conjoiners="्")
@examples(750)
@given(
    product=products(),
    chosen=st.sampled_from(("", ".", "।\n", "".join(TERMINALS.values()) + ".\n", "aक😀")),
    limits=st.tuples(st.sampled_from((0, 0, 3, 8)), st.sampled_from((0, 0, 1, 2))),
    whole=st.booleans(),
    conjoiners=st.sampled_from(("", CONJOINERS, "्")),
)
def test_the_rule_equals_its_plain_twin(
    product: bytes, chosen: str, limits: tuple[int, int], whole: bool, conjoiners: str
) -> None:
    options = {
        "max_token_bytes": limits[0],
        "max_words": limits[1],
        "forbidden": {b"a", "क".encode(), b" a"},
        "terminals": chosen,
        "whole_characters": whole,
        "conjoiners": conjoiners,
    }
    assert merge_rule.allows(product, **options) == _core.MergeRule(**options).allows(product)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("product", "allowed"),
    [
        ("क्\u200d", True),  # a part of one syllable
        ("क्\u200dष", True),  # one syllable
        ("अक्\u200d", False),  # the letter after it is of the last syllable
        ("अक्\u200c", True),  # ZWNJ parts: the next letter begins another
        ("\u200dष", False),  # begins inside of one and goes on
        ("अक्\u200dष", True),  # whole syllables
    ],
)
def test_a_zero_width_joiner_joins(product: str, allowed: bool) -> None:
    """Half forms are written with it (क्‍ष): a token that ends there cuts a syllable."""
    assert allowed == _core.MergeRule(conjoiners=CONJOINERS).allows(product.encode())
    assert allowed == merge_rule.allows(product.encode(), conjoiners=CONJOINERS)


@example(text="\u0d4dE")  # a Latin letter is not joined
@example(text="?\u094d\u0915\u094d")  # nor is one behind a sign that no letter has
@example(text="E\u0b95\u094d")  # what such a sign does behind another script's letter is left open
@examples(500)
@given(text=short)
def test_what_is_allowed_cuts_no_syllable(text: str) -> None:
    """By the definition of syllables, whichever letter stands before and behind."""
    inside = [at - 1 for at in borders("क" + text) if 1 < at <= len(text)]
    is_one = not inside or (inside == [1] and text[0] == " " and merge_rule.is_letter(text[1]))
    if is_one or not _core.MergeRule(conjoiners=CONJOINERS).allows(text.encode()):
        return
    for letter in "कকകa":
        assert 1 in borders(letter + text)
        assert len(text) in borders(text + letter)


@given(data=st.binary(max_size=12))
@examples(500)
def test_any_bytes_have_an_answer(data: bytes) -> None:
    rule = _core.MergeRule(terminals=".।", whole_characters=True, conjoiners=CONJOINERS)
    assert rule.allows(data) in (True, False)
    if rule.allows(data) and not any(byte >= 0xF4 for byte in data):
        assert b"." not in data


@pytest.mark.parametrize("data", [b"\xf7\xbf\xbf\xbf", b"\xff\xbf\xbf\xbf", b"\xf4\x90\x80\x80"])
def test_no_character_lies_behind_the_last(data: bytes) -> None:
    assert not _core.MergeRule(whole_characters=True).allows(data)
    assert not _core.MergeRule(conjoiners=CONJOINERS).allows(b"ab" + data)


def learned_safely(
    texts: list[str], trainer: BpeTrainer
) -> tuple[list[bytes], list[tuple[int, int, int, int]]]:
    """Syllables first, then words, from the plain twins."""
    cut_words = pre_tokenizer(NAMED["o200k"])
    cut_syllables = pre_tokenizer((*NAMED["o200k"], *NAMED["syllables"]))

    def allowed(product: bytes) -> bool:
        return merge_rule.allows(
            product, conjoiners=CONJOINERS, max_token_bytes=trainer.max_token_bytes or 0
        )

    tokens = bpe.alphabet()
    syllables = Counter(part.encode() for text in texts for part in cut_syllables(text))
    sequences = [(superword.encode(part, tokens, []), n) for part, n in syllables.items()]
    size = 256 + round(0.3 * (trainer.vocab_size - 256))
    merges = bpe.learn(tokens, sequences, size, trainer.min_frequency, allowed)
    counts = Counter(part.encode() for text in texts for part in cut_words(text))
    sequences = [(superword.encode(part, tokens, merges), n) for part, n in counts.items()]
    more = bpe.learn(tokens, sequences, trainer.vocab_size, trainer.min_frequency, allowed)
    return tokens, merges + more


@st.composite
def indic_documents(draw: st.DrawFn) -> list[str]:
    """Words of syllables that come back, in scripts where letters are joined."""
    parts = draw(st.lists(st.one_of(indic, words), min_size=1, max_size=6))
    glue = st.sampled_from(("", "", " ", " ", "।", "\u200c"))
    piece = st.tuples(st.sampled_from(parts), glue).map("".join)
    document = st.lists(piece, min_size=1, max_size=25).map("".join)
    return draw(st.lists(document, min_size=1, max_size=4))


@examples(60)
@given(
    texts=st.one_of(indic_documents(), indic_documents(), documents()),
    vocab_size=st.integers(256, 380),
    min_frequency=st.integers(1, 2),
    max_token_bytes=st.sampled_from((None, None, 9)),
)
def test_grapheme_safe_merges_equal_the_reference(
    texts: list[str], vocab_size: int, min_frequency: int, max_token_bytes: int | None
) -> None:
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        max_token_bytes=max_token_bytes,
        grapheme_safe=True,
    )
    tokens, merges = learned_safely(texts, trainer)
    images = [byte_level.to_image(token) for token in tokens]
    tokenizer = trainer.train(Corpus.from_texts(texts))
    assert [(images[a], images[b]) for a, b, _, _ in merges] == list(tokenizer.model.merges)
    assert images == list(tokenizer.model.vocab)


@pytest.mark.parametrize("kind", [BpeTrainer, SuperwordTrainer, MatraTrainer])
@examples(30)
@given(
    texts=st.one_of(indic_documents(), documents()), vocab_size=st.sampled_from((290, 340, 1000))
)
def test_grapheme_safe_tokens(kind: type[BpeTrainer], texts: list[str], vocab_size: int) -> None:
    training = kind(vocab_size=vocab_size, grapheme_safe=True).run(Corpus.from_texts(texts))
    tokenizer = training.tokenizer
    for left, right in tokenizer.model.merges:
        product = byte_level.to_bytes(left + right)
        assert merge_rule.allows(product, conjoiners=CONJOINERS)
    assert () == unreachable_tokens(tokenizer)
    encodings = tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == training.report.training_tokens
    ids, _ = Encoder(tokenizer).encode_batch(texts)
    assert [i for encoding in encodings for i in encoding.ids] == ids.tolist()
    assert texts == tokenizer.backend.decode_batch([encoding.ids for encoding in encodings])


def test_the_strategy_has_all_scripts_that_join() -> None:
    """Or the tests above would look at nothing."""
    letters = "".join(LETTERS) + "कক્ഷ്"
    assert sum(any(c in letters for c in sign) for sign in LINKERS.values() if sign) >= 4
