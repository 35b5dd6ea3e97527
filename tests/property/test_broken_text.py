"""Bytes that are not UTF-8 are refused by every function of the core that takes text as bytes.

The scanners rely on whole characters: a broken one would be read past the end of the text. These
tests also run in a build with the address sanitizer, which sees such a read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strategies import examples, text
from vocabshift import _core
from vocabshift.text.documents import as_utf8, read_lines, stream_blocks

THREADS = 3
BROKEN = {
    "truncated after one byte": b"\xf0",
    "truncated after two bytes": b"\xe0\xa4",
    "truncated after three bytes": b"\xf0\x9f\x98",
    "lone continuation": b"\x80",
    "overlong in two bytes": b"\xc0\x80",
    "overlong in three bytes": b"\xe0\x80\x80",
    "overlong in four bytes": b"\xf0\x80\x80\x80",
    "surrogate": b"\xed\xa0\x80",
    "above U+10FFFF": b"\xf4\x90\x80\x80",
    "five bytes": b"\xf8\x88\x80\x80\x80",
    "no lead byte": b"\xff",
}
BYTES = [bytes([byte]) for byte in range(256)]
NO_MERGES = np.zeros((0, 3), dtype=np.uint32)
SPLITTER = _core.PreTokenizer([_core.Pattern.O200K])

Documents = tuple[bytes, np.ndarray, np.ndarray]
Door = Callable[[Documents], object]


@functools.cache
def encoder() -> _core.Encoder:
    return _core.Encoder(BYTES, np.arange(256, dtype=np.uint32), NO_MERGES)


@functools.cache
def encoder_of_characters() -> _core.Encoder:
    """Of "a" and "b" alone, with an unknown token."""
    return _core.Encoder(
        [b"a", b"b", b"?"],
        np.arange(3, dtype=np.uint32),
        NO_MERGES,
        byte_level=False,
        unk=2,
    )


def counts(documents: Documents) -> np.ndarray:
    return np.ones(len(documents[1]), dtype=np.uint64)


def counter() -> _core.WordCounter:
    return _core.WordCounter(SPLITTER, THREADS)


def stage(*, counted: bool = False) -> _core.SuperwordStage:
    return _core.SuperwordStage(encoder(), BYTES, SPLITTER, THREADS, counted=counted)


def boundless() -> _core.BoundlessStage:
    return _core.BoundlessStage(
        tokens=BYTES,
        merges=NO_MERGES,
        counts=np.zeros(0, dtype=np.uint64),
        may_join=[True] * 256,
        pieces=SPLITTER,
        words=SPLITTER,
        weights=[1],
        vocab_size=256,
        threads=THREADS,
    )


def segmentation() -> _core.BoundlessSegmentation:
    return _core.BoundlessSegmentation(
        encoder(), encoder(), NO_MERGES, [True] * 256, [1] * 256, SPLITTER, SPLITTER, THREADS
    )


DOORS: dict[str, Door] = {
    "WordCounter.add": lambda d: counter().add(*d),
    "WordCounter.add_counted": lambda d: counter().add_counted(d[0], d[2], counts(d)),
    "SuperwordStage.add": lambda d: stage().add(*d),
    "SuperwordStage.add, counted": lambda d: stage(counted=True).add(*d, counts=counts(d)),
    "BoundlessStage.count_borders": lambda d: boundless().count_borders(*d),
    "BoundlessStage.count_runs": lambda d: boundless().count_runs(*d),
    "BoundlessSegmentation.add": lambda d: segmentation().add(*d),
    "words_by_script": lambda d: _core.words_by_script(SPLITTER, *d, THREADS),
    "count_tokens": lambda d: _core.count_tokens(encoder(), SPLITTER, *d, THREADS),
    "count_characters": lambda d: _core.count_characters(*d, THREADS),
    "TextEncoder.encode_documents": lambda d: _core.TextEncoder(
        encoder(), pre_tokenizer=SPLITTER
    ).encode_documents(*d, THREADS),
}


def documents_of(parts: list[bytes]) -> Documents:
    ends = np.cumsum([len(part) for part in parts])
    return b"".join(parts), np.append(0, ends)[:-1], ends


@pytest.mark.parametrize("door", DOORS)
@examples(60)
@given(
    before=st.lists(text, max_size=4),
    prefix=text,
    broken=st.sampled_from(sorted(BROKEN.values())),
    suffix=text,
    after=st.lists(st.sampled_from([*BROKEN.values(), b"", "और ".encode()]), max_size=3),
)
@example(before=[], prefix="", broken=b"\xf0", suffix="", after=[])
@example(before=["ab"], prefix="क" * 40, broken=b"\xe0\xa4", suffix="", after=[])
def test_the_first_broken_document_is_named(
    door: str, before: list[str], prefix: str, broken: bytes, suffix: str, after: list[bytes]
) -> None:
    parts = [text.encode() for text in before]
    at = len(prefix.encode())
    parts += [prefix.encode() + broken + suffix.encode(), *after]
    message = rf"document {len(before)} is not UTF-8: byte {at} of it begins no character"
    with pytest.raises(ValueError, match=message):
        DOORS[door](documents_of(parts))


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("door", DOORS)
def test_every_kind_at_the_very_end(door: str, name: str) -> None:
    with pytest.raises(ValueError, match="document 1 is not UTF-8: byte 2 of it"):
        DOORS[door](documents_of([b"ab", b"a " + BROKEN[name]]))


@pytest.mark.parametrize("door", DOORS)
def test_a_document_that_begins_or_ends_inside_a_character(door: str) -> None:
    data = "कक".encode()
    for start, end, bad in ((1, 6, 0), (0, 4, 3)):
        documents = data[:end], np.array([start]), np.array([end])
        if door != "WordCounter.add_counted" or start == 0:  # whose documents leave no gap
            with pytest.raises(ValueError, match=f"document 0 is not UTF-8: byte {bad} of it"):
                DOORS[door](documents)


@pytest.mark.parametrize("door", sorted(set(DOORS) - {"WordCounter.add_counted"}))
def test_what_no_document_holds_is_not_looked_at(door: str) -> None:
    """Documents in any order, over one another, with broken bytes before, between and after."""
    data = b"\xff" + "aé क".encode() + b"\x80\xf0" + "😀 b".encode() + b"\xe0\xa4"
    starts, ends = np.array([10, 1, 1, 4, 10]), np.array([16, 8, 2, 8, 10])
    DOORS[door]((data, starts, ends))
    with pytest.raises(ValueError, match="document 4 is not UTF-8: byte 0 of it"):
        DOORS[door]((data, np.append(starts[:4], 8), ends))


@pytest.mark.parametrize("door", DOORS)
def test_text_is_taken(door: str) -> None:
    DOORS[door](documents_of([b"", "aé क 😀\ud7ff\ue000\U0010ffff".encode(), b" b"]))


def test_nothing_is_counted_of_documents_that_are_refused() -> None:
    words = counter()
    with pytest.raises(ValueError, match="document 1"):
        words.add(*documents_of([b"some words", b"\xff"]))
    assert 0 == words.group_count


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
def test_words_as_they_are(broken: bytes) -> None:
    """They may be any bytes, until something asks for their characters."""
    words = counter()
    words.add_words(b"a" + broken, np.array([1 + len(broken)]), np.array([2], dtype=np.uint64))
    assert [(b"a" + broken, 2)] == words.words(0)
    with pytest.raises(ValueError, match="not UTF-8"):
        words.split_words(SPLITTER)
    with pytest.raises(ValueError, match="not UTF-8"):
        _core.replay_merges(words, encoder_of_characters(), NO_MERGES)
    counts_by_bytes = _core.replay_merges(words, encoder(), NO_MERGES)[1]
    assert [2 * (1 + len(broken))] == counts_by_bytes.tolist()


@pytest.mark.parametrize("broken", BROKEN.values(), ids=list(BROKEN))
def test_tokens_of_a_model_of_characters(broken: bytes) -> None:
    with pytest.raises(ValueError, match="token 1 is not UTF-8"):
        _core.Encoder([b"a", broken], np.arange(2, dtype=np.uint32), NO_MERGES, byte_level=False)


def test_tokens_of_a_model_of_bytes_may_be_any() -> None:
    """Also where they look like a character above the last one, with a letter after it."""
    tokens = [*BYTES, b"\xf7\xbf", b"\xf7\xbf\xbf", b"\xf7\xbf\xbf\xbf", b" a"]
    tokens.append(tokens[258] + tokens[259])
    merges = [[0xF7, 0xBF, 256], [256, 0xBF, 257], [257, 0xBF, 258], [32, 97, 259], [258, 259, 260]]
    built = _core.Encoder(
        tokens, np.arange(261, dtype=np.uint32), np.array(merges, dtype=np.uint32)
    )
    assert [-1] * 256 + [0, 1, 2, 3, 4] == built.last_merges().tolist()


def test_cuts_inside_a_character() -> None:
    data, starts, ends = documents_of(["कक".encode()])
    for cuts in (np.array([1, 6]), np.array([3, 4, 6])):
        with pytest.raises(ValueError, match="the cuts do not fit"):
            segmentation().add(data, starts, ends, cuts, cuts)
    segmentation().add(data, starts, ends, np.array([6]), np.array([3, 6]))


def text_encoder() -> _core.TextEncoder:
    return _core.TextEncoder(encoder(), pre_tokenizer=SPLITTER)


SENTENCES = _core.SentenceWeights(scripts=[], terminals=".", unit=1, target=1)
STRINGS: dict[str, Callable[[str], object]] = {
    "PreTokenizer.split": SPLITTER.split,
    "SentenceWeights.split": SENTENCES.split,
    "TextEncoder.split_added": lambda text: text_encoder().split_added(text, normalized=True),
    "TextEncoder.encode": lambda text: text_encoder().encode(text),
    "TextEncoder.encode_normalized": lambda text: text_encoder().encode_normalized(text),
    "TextEncoder.encode_pieces": lambda text: text_encoder().encode_pieces([text]),
    "TextEncoder.encode_batch": lambda text: text_encoder().encode_batch([text]),
    "TextEncoder(prepend)": lambda text: _core.TextEncoder(encoder(), prepend=text),
    "TextEncoder(space_becomes)": lambda text: _core.TextEncoder(encoder(), space_becomes=text),
    "AddedToken": lambda text: _core.AddedToken(text, 0),
}


@pytest.mark.parametrize("name", STRINGS)
def test_where_a_str_is_asked_for_bytes_are_refused(name: str) -> None:
    STRINGS[name]("aé क 😀")
    with pytest.raises(TypeError):
        STRINGS[name](b"a\xe0\xa4")  # type: ignore[arg-type]
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        STRINGS[name]("a\ud800")


@given(st.lists(st.sampled_from([*BROKEN.values(), b"\n", b"\r\n", b"a", "\u0915".encode()])))
@example([b"\xf0\x9f", b"\n", b"\x98\x80"])
def test_replacements_are_python_s_for_blocks_of_any_size(parts: list[bytes]) -> None:
    """No character spans a line end, so that blocks of lines are repaired one by one."""
    content = b"".join(parts)
    wanted = content.decode("utf-8", "replace")
    lines = [line.removesuffix("\r") for line in wanted.split("\n")[:-1]] + [wanted.split("\n")[-1]]
    for block_bytes in (1, 3, 1000):
        blocks = stream_blocks(
            [content[at : at + 2] for at in range(0, len(content), 2)], block_bytes=block_bytes
        )
        found = [text for block in read_lines(blocks, "here", "replace") for text in block.texts()]
        assert [line for line in lines if line] == found
    assert wanted.encode() == as_utf8(content, "here", "replace")
