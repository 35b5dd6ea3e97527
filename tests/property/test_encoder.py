"""The encoder gives the ids of `tokenizers`, and its ids give the text back."""

from __future__ import annotations

import functools
import itertools
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference.encode import encode_piece
from strategies import examples
from strategies import text as texts
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, Split, get_pattern, to_spec
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.token_bytes import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer

# Written for this test: a few words that come back, in several scripts, with many boundaries.
DOCUMENTS = [
    "the cat sat on the mat. the cat's mat is on the floor! is the cat on it?\n",
    "राम घर गया। सीता घर आई। राम और सीता घर पर हैं॥ क्या राम घर पर है?",
    "அவன் வந்தான். அவள் வந்தாள். அவர்கள் வந்தார்கள்.",
    "if (a != b) {\n    return a + 1;\n}\n\n    // a comment: a\tb 12345 ३४५६\r\n",
    "وہ گھر گیا۔ وہ گھر آیا؟ 猫は家にいる。猫は寝る。 ТЫ и я, ты и он\u00a0и она…",
    "it's what we've said: don't they'll I'm he'd 👩‍👩‍👧 ❤️ ❤️ a b c a b c aaaa     aaaa",
]

SPECIAL = (
    ("<s>", {}),
    ("<|end|>", {"lstrip": True}),
    ("<mask>", {"rstrip": True}),
    ("[both]", {"lstrip": True, "rstrip": True}),
    ("<s>cat", {"special": False}),
    ("sat on", {"special": False, "normalized": True}),
    (" the", {"special": False, "rstrip": True}),
    ("घर", {"special": False}),
)

TRAINERS = {
    "bpe": BpeTrainer(vocab_size=420),
    "bpe, gpt2": BpeTrainer(vocab_size=420, pre_tokenizer="gpt2"),
    "bpe, deepseek": BpeTrainer(vocab_size=420, pre_tokenizer="deepseek"),
    "bpe, nfc": BpeTrainer(vocab_size=420, normalizer="nfc"),
    "bpe, nfkc": BpeTrainer(vocab_size=420, normalizer="nfkc"),
    "ist": SuperwordTrainer(vocab_size=500, transition=0.75),
    "ist, nfkc": SuperwordTrainer(vocab_size=500, transition=0.75, normalizer="nfkc"),
    "superbpe": SuperBpeTrainer(vocab_size=500, transition=0.7),
    "no cut": SuperwordTrainer(vocab_size=600, transition=0.6, stage2_pre_tokenizer=()),
}


@functools.cache
def trained(name: str, *, special: bool = False) -> Encoder:
    tokenizer = TRAINERS[name].train(Corpus.from_texts(DOCUMENTS))
    if special:
        first = tokenizer.row_count
        added = tuple(
            AddedToken(content, first + i, **flags) for i, (content, flags) in enumerate(SPECIAL)
        )
        if tokenizer.normalizer is not None:  # `tokenizers` alone matches normalized tokens
            added = tuple(replace(token, normalized=False) for token in added)
        tokenizer = replace(tokenizer, added_tokens=added)
    return Encoder(tokenizer)


def peer_ids(encoder: Encoder, text: str) -> list[int]:
    return list(encoder.tokenizer.backend.encode(text, add_special_tokens=False).ids)


# Any text, with stretches of what the tokenizers were trained on.
familiar = st.builds(
    lambda text, start, length: text[start : start + length],
    st.sampled_from(DOCUMENTS),
    st.integers(0, 60),
    st.integers(1, 60),
)
mixed = st.lists(texts | familiar, max_size=4).map("".join)
with_special = st.lists(
    texts | familiar | st.sampled_from([content for content, _ in SPECIAL] + [" ", "\u00a0\n"]),
    max_size=8,
).map("".join)


# Making up a text costs much more than encoding it: each goes through every tokenizer.


@examples(200)
@given(text=mixed)
def test_trained_tokenizers(text: str) -> None:
    for name in TRAINERS:
        encoder = trained(name)
        ids = encoder.encode(text)
        assert peer_ids(encoder, text) == ids.tolist(), name
        normalizer = encoder.tokenizer.backend.normalizer
        kept = text if normalizer is None else normalizer.normalize_str(text)
        assert kept == encoder.decode(ids), name


@examples(120)
@given(text=with_special)
def test_trained_tokenizers_with_added_tokens(text: str) -> None:
    """As special tokens, and read as text."""
    for name in TRAINERS:
        encoder = trained(name, special=True)
        assert peer_ids(encoder, text) == encoder.encode(text).tolist(), name
        backend = encoder.tokenizer.backend
        backend.encode_special_tokens = True
        try:
            expected = peer_ids(encoder, text)
        finally:
            backend.encode_special_tokens = False
        assert expected == encoder.encode(text, parse_special=False).tolist(), name


@pytest.mark.parametrize("name", ["bpe", "ist", "ist, nfkc", "bpe, deepseek"])
@examples(30)
@given(batch=st.lists(mixed, max_size=8), copies=st.sampled_from((1, 1, 40)))
def test_a_batch_is_its_texts(name: str, batch: list[str], copies: int) -> None:
    """Whatever the threads; a batch of some size is shared out among them."""
    encoder = trained(name)
    expected = [peer_ids(encoder, text) for text in batch] * copies
    batch = batch * copies
    for threads in (1, 2, 3):
        ids, offsets = encoder.encode_batch(batch, threads=threads)
        bounds = itertools.pairwise(offsets.tolist())
        assert expected == [ids[start:end].tolist() for start, end in bounds]
        if encoder.tokenizer.normalizer is None:
            assert batch == encoder.decode_batch(ids, offsets)


@pytest.mark.parametrize(
    "name",
    [*(pytest.param(n, marks=pytest.mark.nightly) for n in ("bpe", "ist")), "ist, nfkc"],
)
def test_a_batch_of_many_parts(name: str) -> None:
    """Words of one byte to more than a cache remembers, on threads with a cache each."""
    draw = random.Random(name)
    words = [
        "".join(draw.choices("abc कख़्é😀", k=min(round(draw.paretovariate(0.5)), 200)))
        for _ in range(20_000)
    ]
    batch = [" ".join(draw.choices(words, k=40)) for _ in range(4_000)]
    assert sum(map(len, map(str.encode, batch))) > 8 << 18
    encoder = Encoder(trained(name).tokenizer)
    alone = [encoder.encode(text).tolist() for text in batch]
    for number in range(0, len(batch), 10):  # of all of them it would take most of a minute
        assert peer_ids(trained(name), batch[number]) == alone[number]
    expected = [id for ids in alone for id in ids]
    for threads in (3, 2, 1):
        encoder = Encoder(trained(name).tokenizer)  # whose caches know nothing
        assert expected == encoder.encode_batch(batch, threads=threads)[0].tolist()


# Models that no trainer makes: merges in any order, pairs listed twice, products that repeat.

# Letters, spaces of three kinds, and characters whose bytes begin or end alike.
CHARACTERS = "ab कख़्\u00a0\t!'é\u0320"


@st.composite
def byte_level_models(draw: st.DrawFn) -> Tokenizer:
    """A byte-level tokenizer over CHARACTERS, with or without the rest of the alphabet."""
    images = [byte_level.to_image(character.encode()) for character in CHARACTERS]
    base = sorted({image for spelt in images for image in spelt})
    is_whole = draw(st.sampled_from((True, True, True, False)))
    alphabet = list(byte_level.ALPHABET) if is_whole else draw(st.permutations(base))
    unk = None if is_whole else "<unk>"
    if not is_whole:  # some bytes are unknown; the space never is
        kept = draw(st.integers(1, len(base)))
        alphabet = list(dict.fromkeys(["Ġ", *alphabet[:kept], "<unk>"]))
    start = [image for image in base if image in alphabet]
    merges = draw(merge_lists(start, [*images, byte_level.to_image(b"a a")]))
    model = draw(models(alphabet, merges, unk))
    names = st.sampled_from(("o200k", "ist-stage2", "gpt2", "deepseek", "", "", ""))
    return Tokenizer(
        model,
        pre_tokenizer=to_spec(NAMED.get(draw(names), ())),
        decoder={"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True),
    )


@st.composite
def sentencepiece_models(draw: st.DrawFn) -> Tokenizer:
    """Characters with "▁" for the space, byte pieces, an unknown token."""
    characters = draw(st.lists(st.sampled_from("▁ab कé!\t"), min_size=1, unique=True))
    if draw(st.booleans()):
        characters = ["▁", *(c for c in characters if c != "▁")]
    pieces = [f"<0x{byte:02X}>" for byte in sorted({*CHARACTERS.encode(), *" ▁xyz😀".encode()})]
    byte_fallback = draw(st.booleans())
    some_pieces = draw(st.sampled_from((pieces, pieces, [])))
    unk = draw(st.sampled_from((None, "<unk>"))) if byte_fallback and some_pieces else "<unk>"
    alphabet = [*some_pieces, *characters]
    if unk is not None and unk not in alphabet:
        alphabet.append(unk)
    merges = draw(merge_lists(characters, [*characters, "▁a", "a▁"]))
    steps = [{"type": "Prepend", "prepend": "▁"}] * draw(st.integers(0, 1))
    steps += [{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    decoder = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    return Tokenizer(
        draw(models(alphabet, merges, unk, byte_fallback)),
        normalizer={"type": "Sequence", "normalizers": steps},
        decoder={"type": "Sequence", "decoders": decoder},
    )


@st.composite
def merge_lists(draw: st.DrawFn, start: list[str], parts: list[str]) -> list[tuple[str, str]]:
    """Merges of short products in any order; some pairs twice, some products by several ways."""
    known = list(start)
    merges = []
    for _ in range(draw(st.integers(0, 14)) if known else 0):
        left = draw(st.sampled_from(known))
        right = draw(st.sampled_from(known))
        if len(left + right) <= 14:
            merges.append((left, right))
            known.append(left + right)
    for token in list(dict.fromkeys(known)):  # other ways to the same product
        cut = draw(st.integers(0, max(len(token) - 1, 0)))
        if cut and draw(st.booleans()) and {token[:cut], token[cut:]} <= set(known):
            merges.append((token[:cut], token[cut:]))
    again = draw(st.lists(st.sampled_from(merges), max_size=3)) if merges else []
    return list(draw(st.permutations([*merges, *again])))


@st.composite
def models(
    draw: st.DrawFn,
    alphabet: list[str],
    merges: list[tuple[str, str]],
    unk: str | None,
    byte_fallback: bool = False,
) -> BpeModel:
    tokens = list(dict.fromkeys([*alphabet, *(left + right for left, right in merges)]))
    if draw(st.booleans()):
        tokens.reverse()
    return BpeModel(
        {token: token_id for token_id, token in enumerate(tokens)},
        tuple(merges),
        ignore_merges=draw(st.booleans()),
        byte_fallback=byte_fallback,
        unk_token=unk,
        fuse_unk=draw(st.booleans()),
    )


dense_parts = (*CHARACTERS, *CHARACTERS, "a a", " क", "़ ", "xyz", "😀", "ab" * 60, "क " * 50)
dense = st.lists(st.sampled_from(dense_parts), max_size=24).map("".join)


@st.composite
def models_with_text(draw: st.DrawFn, kinds: st.SearchStrategy[Tokenizer]) -> tuple[Tokenizer, str]:
    """A model, and a text made of its own tokens and of what else there is."""
    tokenizer = draw(kinds)
    tokens = [token.decode(errors="ignore") for token in token_bytes(tokenizer).values()]
    own = sorted({token for token in tokens if set(token) <= set(CHARACTERS)})
    parts = st.sampled_from(own) if own else st.nothing()
    text = draw(st.lists(parts | parts | st.sampled_from(dense_parts), max_size=12).map("".join))
    return tokenizer, text


def agree(tokenizer: Tokenizer, text: str) -> None:
    """Our encoder, `tokenizers` and the plain reference."""
    encoder = Encoder(tokenizer)
    expected = peer_ids(encoder, text)
    assert expected == encoder.encode(text).tolist()
    assert expected == encoder.encode(text).tolist()  # from its cache
    ids, _ = encoder.encode_batch([text, text, text + "a"], threads=2)
    assert expected + expected + peer_ids(encoder, text + "a") == ids.tolist()


@examples(200)
@given(models_with_text(byte_level_models()))
def test_byte_level_models_in_any_order(case: tuple[Tokenizer, str]) -> None:
    tokenizer, text = case
    agree(tokenizer, text)
    if tokenizer.model.is_byte_level:
        encoder = Encoder(tokenizer)
        assert text == encoder.decode(encoder.encode(text))


@examples(200)
@given(models_with_text(sentencepiece_models()))
def test_sentencepiece_like_models_in_any_order(case: tuple[Tokenizer, str]) -> None:
    agree(*case)


@examples(150)
@given(models_with_text(st.one_of(byte_level_models(), sentencepiece_models())))
def test_the_reference_encodes_alike(case: tuple[Tokenizer, str]) -> None:
    """What `tokenizers` does to one piece is what the reference says."""
    tokenizer, text = case
    tokenizer = replace(tokenizer, normalizer=None, pre_tokenizer=None)
    model = tokenizer.model
    expected = encode_piece(
        text,
        model.vocab,
        model.merges,
        ignore_merges=model.ignore_merges,
        byte_fallback=model.byte_fallback,
        unk_token=model.unk_token,
        fuse_unk=model.fuse_unk,
    )
    encoder = Encoder(tokenizer)
    assert expected == peer_ids(encoder, text)
    assert expected == encoder.encode(text).tolist()


def byte_level_tokenizer(
    tokens: list[str], merges: list[tuple[str, str]], **flags: Any
) -> Tokenizer:
    model = BpeModel({token: i for i, token in enumerate(tokens)}, tuple(merges), **flags)
    return Tokenizer(model, pre_tokenizer=to_spec(()))


def character_tokenizer(
    tokens: list[str], merges: list[tuple[str, str]], **flags: Any
) -> Tokenizer:
    model = BpeModel({token: i for i, token in enumerate(tokens)}, tuple(merges), **flags)
    replace_spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    return Tokenizer(model, normalizer=replace_spaces)


def test_a_pair_listed_again_behind_the_first_rank_across_a_space() -> None:
    """Its later rank counts; merges of its product have an earlier one."""
    tokens = [*byte_level.ALPHABET, "ab", "abc", "cĠ"]
    merges = [("a", "b"), ("ab", "c"), ("c", "Ġ"), ("a", "b")]
    agree(byte_level_tokenizer(tokens, merges), "abc")
    tokens = ["<unk>", "a", "▁", "▁a", "▁aa", "a▁"]
    merges = [("▁", "a"), ("▁a", "a"), ("a", "▁"), ("▁", "a")]
    agree(character_tokenizer(tokens, merges, unk_token="<unk>"), " aa")


def test_unknown_letters_that_are_dropped_leave_no_boundary() -> None:
    """The spaces around them are neighbours and merge."""
    agree(byte_level_tokenizer(["Ġ", "ĠĠ"], [("Ġ", "Ġ")]), " a ")
    agree(character_tokenizer(["▁", "▁▁"], [("▁", "▁")]), " a ")


def test_unknown_runs_that_hold_an_unknown_space_are_fused() -> None:
    agree(byte_level_tokenizer(["<unk>", "!"], [], unk_token="<unk>", fuse_unk=True), "a b")


def test_byte_pieces_of_a_letter_may_merge_with_a_space() -> None:
    pieces = ["<0xC3>", "<0xA9>", "▁", "<0xA9>▁"]
    agree(character_tokenizer(pieces, [("<0xA9>", "▁")], byte_fallback=True), "é ")


def test_the_unknown_token_may_merge_with_a_space() -> None:
    agree(character_tokenizer(["<unk>", "▁", "<unk>▁"], [("<unk>", "▁")], unk_token="<unk>"), "é ")


def test_an_unknown_token_that_is_a_character_too() -> None:
    """Only unknown characters are fused, not a known one before them."""
    agree(character_tokenizer(["a"], [], unk_token="a", fuse_unk=True), "ab")


def test_an_unknown_token_waits_behind_byte_pieces() -> None:
    """What `tokenizers` does where some byte pieces are missing."""
    tokens = ["<unk>", "<0x61>"]
    agree(character_tokenizer(tokens, [], unk_token="<unk>", byte_fallback=True), "ba")


@st.composite
def added_and_text(draw: st.DrawFn) -> tuple[list[str], str]:
    """Contents of added tokens, and a text that is mostly made of them.

    None begins with a space (the test below has those), and none is a token of the vocabulary,
    which would keep its id there: all single characters are.
    """
    content = st.text("ab <>", min_size=2, max_size=4).filter(lambda text: text[0] != " ")
    unknown = content.filter(lambda text: text not in trained("bpe").tokenizer.model.vocab)
    contents = draw(st.lists(unknown, unique=True, min_size=1, max_size=5))
    parts = st.sampled_from(contents) | st.sampled_from(contents) | st.text("ab <>\t\u00a0")
    return contents, "".join(draw(st.lists(parts, min_size=1, max_size=7)))


@example((["<<", "<<<"], "<<<"), [(False, True, False, False), (True, True, False, False)], False)
@examples(200)
@given(
    contents_and_text=added_and_text(),
    flags=st.lists(st.tuples(*[st.booleans()] * 4), min_size=5, max_size=5),
    parse_special=st.booleans(),
)
def test_added_tokens_that_overlap(
    contents_and_text: tuple[list[str], str], flags: list[tuple[bool, ...]], parse_special: bool
) -> None:
    """Prefixes of one another, with spaces inside and at the edges, stripping or not."""
    contents, text = contents_and_text
    base = trained("bpe").tokenizer
    added = tuple(
        AddedToken(content, base.row_count + i, special, normalized, False, lstrip, rstrip)
        for i, (content, (special, normalized, lstrip, rstrip)) in enumerate(
            zip(contents, flags, strict=False)
        )
    )
    encoder = Encoder(replace(base, added_tokens=added))
    backend = encoder.tokenizer.backend
    backend.encode_special_tokens = not parse_special
    expected = peer_ids(encoder, text)
    assert expected == encoder.encode(text, parse_special=parse_special).tolist()


@pytest.mark.parametrize("content", [" ", " a", "  "])
def test_added_tokens_that_begin_with_a_space_another_has_taken(content: str) -> None:
    """A token whose characters were stripped away by the one before it is none."""
    base = trained("bpe").tokenizer
    for flags in ({"lstrip": True, "rstrip": True}, {"lstrip": True}, {"rstrip": True}):
        token = AddedToken(content, base.row_count, special=False, **flags)
        taker = AddedToken("<b>", base.row_count + 1, rstrip=True)
        encoder = Encoder(replace(base, added_tokens=(token, taker)))
        for text in (content * 2, content * 3, f"<b>{content}", f"<b>{content} {content}"):
            try:
                expected = peer_ids(encoder, text)
            except BaseException as error:
                if type(error).__name__ != "PanicException":
                    raise
                continue  # `tokenizers` cannot do it ("bad split"): nothing to be equal to
            assert expected == encoder.encode(text).tolist()


@pytest.mark.parametrize("regex", [r"\s+", "a|b", r"(?=क)", "!"])
@pytest.mark.parametrize(
    "behavior", ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
)
@examples(15)
@given(text=dense, invert=st.booleans())
def test_any_split_step(regex: str, behavior: str, text: str, invert: bool) -> None:
    base = trained("ist").tokenizer
    pattern = (Split(regex, behavior, invert), *get_pattern("o200k"))
    agree(replace(base, pre_tokenizer=to_spec(pattern)), text)
