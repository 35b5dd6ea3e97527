"""Teachers: log-probabilities by windows, documents in rows, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import small_models
from vocabshift.cpt.chunks import MatchedRows, Reading, Stretch
from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.loop import Phase, pretrain
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.packed_ids import MappedRows, PackedIds
from vocabshift.cpt.packing import PlacedDocuments, document_ends, pack_ids
from vocabshift.cpt.teacher import LiveTeacher
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.teach import live_teacher

torch = pytest.importorskip("torch")

CONFIG = LoopConfig(
    objective="likelihood-matching", debiasing=False, sequence_length=16, batch_size=4
)
TEXTS = ["the cat and the heater", "a cat", "बिल्ली और the other cat", "x", "another day"]
LONG = " ".join(["the cat and the other heater"] * 12)


@pytest.fixture(scope="module")
def old() -> tuple[Any, Tokenizer]:
    """A teacher's model, and its tokenizer with BOS."""
    tokenizer = small_models.old_tokenizer()
    return small_models.build("llama", tokenizer), tokenizer


@pytest.fixture(scope="module")
def teacher(old: tuple[Any, Tokenizer]) -> LiveTeacher:
    return live_teacher(*old, context=32, overlap=8)


def plain(model: Any, ids: Sequence[int], n_skipped: int) -> tuple[list[float], list[Any]]:
    """Log-probability of each id after those before it, and of all ids in its place."""
    logits = model(input_ids=torch.tensor([ids])).logits[0].detach().double()
    shares = torch.log_softmax(logits, -1)
    picked = [float(shares[place - 1, ids[place]]) for place in range(n_skipped, len(ids))]
    return picked, list(shares[n_skipped:])


@pytest.mark.parametrize("has_bos", [True, False])
def test_a_document_in_windows(old: tuple[Any, Tokenizer], has_bos: bool) -> None:
    """As the model gives it, window by window; boundaries are the sum over their tokens."""
    model, tokenizer = old
    bos = model.config.bos_token_id
    model.config.bos_token_id = bos if has_bos else None
    try:
        teacher = live_teacher(model, tokenizer, context=32, overlap=8, batch_tokens=64)
        short, long = teacher.read_texts([TEXTS[0], LONG])
    finally:
        model.config.bos_token_id = bos
    prefix = [bos] if has_bos else []
    ids = [prefix + Encoder(tokenizer).encode(text).tolist() for text in (TEXTS[0], LONG)]
    expected, following = plain(model, ids[0], 1)
    n_lost = 0 if has_bos else 1
    assert np.isnan(short.logprobs[:n_lost]).all()
    np.testing.assert_allclose(short.logprobs[n_lost:], expected, rtol=1e-4)
    spelled = tokenizer.token_bytes
    spaces = [i for i, data in spelled.items() if data[:1] in (b" ", b"\n", b"\t", b"\r")]
    spaces += [token.id for token in tokenizer.added_tokens]
    boundaries = [float(each[spaces].exp().sum().log()) for each in following]
    if has_bos:
        np.testing.assert_allclose(short.boundaries, boundaries, rtol=1e-4)
    assert short.ends[-1] == len(TEXTS[0])

    room = 32 - len(prefix)
    own = ids[1][len(prefix) :]
    assert len(own) > 2 * room
    second = prefix + own[room - 8 : room - 8 + room]
    expected, _ = plain(model, second, len(prefix) + 8)
    np.testing.assert_allclose(long.logprobs[room : room + len(expected)], expected, rtol=1e-4)
    assert not np.isnan(long.logprobs[n_lost:]).any()
    assert not np.isnan(long.boundaries).any()


def test_only_the_windows_that_are_needed(teacher: LiveTeacher) -> None:
    """The numbers of a stretch, and of the end before it, are those of the whole document."""
    (whole,) = teacher.read_texts([LONG])
    stretch = Stretch(0, LONG.encode, 200, 240)
    (part,) = teacher.read([stretch])
    at = int(np.searchsorted(whole.ends, part.ends[0]))
    same = slice(at, at + len(part.ends))
    assert (whole.ends[same] == part.ends).all()
    inside = (whole.ends >= 200) & (whole.ends <= 240)
    assert 5 < inside[same].sum() == inside.sum()
    assert len(part.ends) < len(whole.ends)
    np.testing.assert_allclose(part.logprobs, whole.logprobs[same], rtol=1e-4)
    np.testing.assert_allclose(part.boundaries, whole.boundaries[same], rtol=1e-4)


class Slowly(MatchedRows):
    """For every row, all of each document in it: what `MatchedRows` does for a row at a time."""

    def _edges(self, number: int, first: int, last: int) -> Any:
        lengths = [len(self._engine.spelled[i]) for i in self.documents.ids(number)]
        return np.cumsum([0, *lengths])[first : last + 1]


class WholeDocuments:
    """A teacher that reads all of each document for every stretch of it."""

    def __init__(self, teacher: LiveTeacher) -> None:
        self.teacher, self.has_boundaries = teacher, True
        self.unmatched: set[int] = set()
        self._whole = cache(lambda text: teacher.read_texts([text])[0])

    def fits(self, document: int, text: bytes) -> bool:
        return self.teacher.fits(document, text)

    def read(self, stretches: Sequence[Stretch]) -> list[Reading]:
        return [self._whole(each.text().decode()) for each in stretches]


def mixed(seed: int, n_words: Sequence[int]) -> list[str]:
    """Documents of so many words, drawn at random."""
    words = ["the", "cat", "and", "other", "heater", "बिल्ली", "दूसरी", "day", "letter,", "x"]
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(words, n)) for n in n_words]


@pytest.mark.parametrize("debiasing", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_long_documents_against_the_slow_way(
    seed: int, debiasing: bool, teacher: LiveTeacher, tmp_path: Path
) -> None:
    """Any rows in any order, documents shorter and much longer than rows and windows."""
    spaced = seed == 3  # a tokenizer that puts a space in front
    tokenizer = small_models.train(small_models.HINDI, 300 + seed, small_models.SPECIALS)
    if spaced:
        tokenizer = small_models.sentencepiece_tokenizer(tmp_path)
    generator = np.random.default_rng(seed)
    texts = mixed(seed, generator.choice([1, 3, 20, 90], 6))
    length = int(generator.integers(2, 24))
    rows, documents = packed(texts, tokenizer, length)
    config = replace(CONFIG, debiasing=debiasing, boundary_threshold=0.01)
    matched = MatchedRows(rows, documents, length, tokenizer, teacher, config)
    slow = Slowly(rows, documents, length, tokenizer, WholeDocuments(teacher), config)
    order = generator.permutation(len(rows.rows))
    for some in np.array_split(order, 3):
        found, expected = matched.chunks(some), slow.chunks(some)
        assert found.numbers.tolist() == expected.numbers.tolist()
        np.testing.assert_allclose(found.teacher, expected.teacher, rtol=1e-4, atol=1e-5)
    assert (found.numbers >= 0).any()


def test_a_book_is_read_once(teacher: LiveTeacher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not again for each of its rows: neither its tokens nor its windows. Other corpora's
    documents of that number are others."""
    tokenizer = small_models.old_tokenizer()
    spans, nats = teacher._spans, teacher._nats
    encoded: list[str] = []
    windows: list[int] = []
    monkeypatch.setattr(teacher, "_spans", lambda texts: (encoded.extend(texts), spans(texts))[1])
    monkeypatch.setattr(teacher, "_nats", lambda some: (windows.append(len(some)), nats(some))[1])
    for seed in (0, 1):
        texts = mixed(seed, [2, 300])
        rows, documents = packed(texts, tokenizer, 16)
        matched = MatchedRows(rows, documents, 16, tokenizer, teacher, CONFIG)
        n_rows = len(rows.rows)
        assert n_rows > 30
        (first,) = (matched.chunks(np.array([index])) for index in [n_rows // 2])
        for index in range(n_rows):
            matched.chunks(np.array([index]))
        assert np.isfinite(first.teacher).any()
        assert encoded.count(texts[1]) == 1
        assert sum(windows) < 4 * n_rows
        windows.clear()


def test_special_tokens_have_no_probability(teacher: LiveTeacher) -> None:
    """So that no chunk holds one."""
    (reading,) = teacher.read_texts(["a cat</s> the cat"])
    assert np.isnan(reading.logprobs).sum() == 1


class ByBytes:
    """A teacher that ends a token after every byte, with log-probability -1 each."""

    has_boundaries = True

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [text.encode() for text in texts]
        self.unmatched: set[int] = set()

    def fits(self, document: int, text: bytes) -> bool:
        return text == self.texts[document]

    def read(self, stretches: Sequence[Stretch]) -> list[Reading]:
        found = []
        for each in stretches:
            assert each.text() == self.texts[each.document]
            ones = np.ones(len(self.texts[each.document]), dtype=np.float32)
            found.append(Reading(np.arange(1, len(ones) + 1), -ones, -0.01 * ones))
        return found


def packed(texts: Sequence[str], tokenizer: Tokenizer, length: int) -> tuple[Any, PlacedDocuments]:
    """All texts in order, as rows."""
    ids, offsets = Encoder(tokenizer).encode_batch(list(texts))
    sizes = np.array([len(text.encode()) for text in texts])
    separator = (small_models.special_ids(tokenizer)["</s>"],)
    documents = PlacedDocuments(
        indexes=np.arange(len(texts)),
        n_bytes=sizes,
        ends=document_ends(np.diff(offsets), 1),
        n_between=1,
        ids=lambda number: ids[offsets[number] : offsets[number + 1]],
    )
    return pack_ids(ids, offsets, sizes, separator=separator, length=length), documents


@pytest.mark.parametrize("debiasing", [True, False])
def test_rows_against_bytes(debiasing: bool) -> None:
    """To a teacher of bytes every token is a chunk, and costs its bytes; separators are none.

    With debiasing the last token of a row is no chunk: the model does not read it.
    """
    tokenizer = small_models.old_tokenizer()
    config = replace(CONFIG, debiasing=debiasing)
    rows, documents = packed(TEXTS, tokenizer, 16)
    matched = MatchedRows(rows, documents, 16, tokenizer, ByBytes(TEXTS), config)
    found = matched.chunks(np.arange(len(rows.rows)))
    lengths = {i: len(data) for i, data in tokenizer.token_bytes.items()}
    for row, numbers, teacher in zip(rows.rows.tolist(), *found, strict=True):
        expected = [lengths.get(token_id, 0) for token_id in row[1:]]
        if debiasing:
            expected[-1] = 0
        is_chunk = [length > 0 for length in expected]
        assert (numbers >= 0).tolist() == is_chunk
        assert numbers[is_chunk].tolist() == list(range(sum(is_chunk)))
        own = [-length - (0.01 if debiasing else 0) for length in expected if length]
        np.testing.assert_allclose(teacher[~np.isnan(teacher)], own, rtol=1e-6)
    assert matched.teacher.unmatched == set()


def test_a_space_in_front_and_byte_pieces(tmp_path: Path) -> None:
    """SentencePiece: the dummy prefix is no byte of the text, a lone byte is one."""
    tokenizer = small_models.sentencepiece_tokenizer(tmp_path)
    texts = ["the cat ☃ and", "another"]
    rows, documents = packed(texts, tokenizer, 40)
    matched = MatchedRows(rows, documents, 40, tokenizer, ByBytes(texts), CONFIG)
    _, teacher = matched.chunks(np.array([0]))
    total = -sum(len(text.encode()) for text in texts)
    assert np.nansum(teacher) == pytest.approx(total)
    lone = {i for i, data in tokenizer.token_bytes.items() if data in (b"\xe2", b"\x98", b"\x83")}
    assert 3 == np.isin(documents.ids(0), sorted(lone)).sum()


def test_documents_of_another_text() -> None:
    """They have no chunks and are counted; where there are no others, the run is refused."""
    tokenizer = small_models.old_tokenizer()
    rows, documents = packed(TEXTS, tokenizer, 16)
    changed = [TEXTS[0], "a dog", *TEXTS[2:]]
    matched = MatchedRows(rows, documents, 16, tokenizer, ByBytes(changed), CONFIG)
    _, teacher = matched.chunks(np.arange(len(rows.rows)))
    assert matched.teacher.unmatched == {1}
    total = sum(len(text.encode()) for text in TEXTS if text != "a cat")
    assert np.nansum(teacher) == -total
    others = [text.upper() for text in TEXTS]
    with pytest.raises(CorpusError, match="do not spell the text that the teacher read, in none"):
        MatchedRows(rows, documents, 16, tokenizer, ByBytes(others), CONFIG)


def test_another_student_of_the_same_teacher() -> None:
    """Documents that one student's ids do not spell are matched with the next student's."""
    tokenizer = small_models.old_tokenizer()
    teacher = ByBytes(TEXTS)
    others = [TEXTS[0], "a dog", *TEXTS[2:]]
    for texts, n_lost in ((others, 1), (TEXTS, 0)):
        rows, documents = packed(texts, tokenizer, 16)
        matched = MatchedRows(rows, documents, 16, tokenizer, teacher, CONFIG)
        _, found = matched.chunks(np.arange(len(rows.rows)))
        total = sum(len(text.encode()) for text in TEXTS) - n_lost * len(TEXTS[1])
        assert np.nansum(found) == -total


def test_a_special_token_inside_of_a_text() -> None:
    """It is in no chunk of the student either."""
    tokenizer = small_models.old_tokenizer()
    texts = ["a cat</s> the cat"]
    rows, documents = packed(texts, tokenizer, 40)
    matched = MatchedRows(rows, documents, 40, tokenizer, ByBytes(texts), CONFIG)
    _, teacher = matched.chunks(np.array([0]))
    assert np.nansum(teacher) == -len("a cat the cat")


def test_a_special_token_after_the_last_chunk_of_a_row() -> None:
    """The row ends with it, and no boundary is likely there: the chunk before it stays."""
    tokenizer = small_models.old_tokenizer()
    text = "a cat</s> the cat"

    class Unlikely(ByBytes):
        def read(self, stretches: Sequence[Stretch]) -> list[Reading]:
            readings = super().read(stretches)
            for reading in readings:
                reading.boundaries[text.index(" the") - 1] = -99
            return readings

    ids = Encoder(tokenizer).encode(text).tolist()
    length = ids.index(small_models.special_ids(tokenizer)["</s>"]) + 1  # after a separator
    rows, documents = packed([text], tokenizer, length)
    config = replace(CONFIG, debiasing=True)
    matched = MatchedRows(rows, documents, length, tokenizer, Unlikely([text]), config)
    numbers, _ = matched.chunks(np.array([0]))
    assert [0, 1, -1] == numbers[0].tolist()


def test_texts_in_memory_and_packed(teacher: LiveTeacher, tmp_path: Path) -> None:
    """The same steps, bit for bit."""
    tokenizer = small_models.train(small_models.HINDI, 340, small_models.SPECIALS)
    texts = [*TEXTS, LONG]
    pack_corpus(tokenizer, Corpus.from_texts(texts), tmp_path / "packed", PackOptions(eos="</s>"))
    runs = [
        pretrain(
            small_models.build("llama", tokenizer),
            tokenizer,
            source,
            phases=[Phase(n_bytes=900)],
            config=CONFIG,
            teacher=teacher,
        )
        for source in (texts, PackedIds.open(tmp_path / "packed"))
    ]
    assert runs[0] == runs[1]
    assert all(step.chunks and step.matched_share for step in runs[0])


def test_a_teacher_and_its_objective(
    make_model: Callable[..., Any], byte_tokenizer: Tokenizer, teacher: LiveTeacher
) -> None:
    """Each needs the other."""
    arguments: dict[str, Any] = {"phases": [Phase(n_bytes=9)]}
    with pytest.raises(ValueError, match="a teacher is missing"):
        pretrain(make_model(), byte_tokenizer, TEXTS, config=CONFIG, **arguments)
    config = LoopConfig(sequence_length=16)
    with pytest.raises(ValueError, match="a teacher is given"):
        pretrain(make_model(), byte_tokenizer, TEXTS, config=config, teacher=teacher, **arguments)


def test_mapped_rows_tell_their_documents(tmp_path: Path) -> None:
    """The ids of the chosen documents, in the order of the stream, without their EOS."""
    tokenizer = small_models.old_tokenizer()
    pack_corpus(tokenizer, Corpus.from_texts(TEXTS), tmp_path / "packed", PackOptions(eos="</s>"))
    rows = MappedRows(
        PackedIds.open(tmp_path / "packed"), np.array([2, 0]), separator=(7, 8), length=16
    )
    documents = rows.documents
    assert documents.n_bytes.tolist() == [len(TEXTS[i].encode()) for i in (2, 0)]
    stream = rows.take(np.arange(len(rows.row_bytes)))[:, :-1].flatten().tolist()
    for number, index in enumerate((2, 0)):
        ids = Encoder(tokenizer).encode(TEXTS[index]).tolist()
        assert documents.ids(number).tolist() == ids
        start = int(documents.ends[number])
        assert stream[start : start + len(ids)] == ids
        assert int(documents.ends[number + 1]) == start + len(ids) + documents.n_between
