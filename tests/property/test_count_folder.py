"""A folder of counts: equal bytes by any threads and memory, and the same merges as the corpus."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import documents, examples
from vocabshift import _core
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder, count_words_within, write_counts
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED
from vocabshift.text.scanners import compile_pattern

corpora = st.lists(
    st.tuples(documents(max_documents=3), st.sampled_from((0.5, 1.0, 1.0, 2.25))),
    min_size=1,
    max_size=3,
)


def corpus_of(by_language: list[tuple[list[str], float]]) -> Corpus:
    return Corpus.from_texts(
        {f"l{i}": texts for i, (texts, _) in enumerate(by_language)},
        weights={f"l{i}": weight for i, (_, weight) in enumerate(by_language)},
    )


def write(reader: CorpusReader, folder: Path, threads: int = 1, memory_bytes: int = 0) -> Path:
    folder.mkdir()
    counter = reader.count_words(threads=threads, memory_bytes=memory_bytes, spill_folder=folder)
    write_counts(counter, reader, folder)
    return folder


def merges(counter: _core.WordCounter, reader: CorpusReader) -> tuple[list, list, list]:
    weights = _core.WordWeights(reader.fixed_point_weights())
    trained = _core.train_bpe(counter, weights, 300)
    return trained.tokens, trained.merges.tolist(), trained.counts.tolist()


@examples(20)
@given(
    by_language=corpora,
    threads=st.integers(1, 3),
    memory_bytes=st.sampled_from((0, 1, 300_000)),
    normalizer=st.sampled_from((None, "nfkc")),
)
def test_counts_stand_for_the_corpus(
    tmp_path_factory: pytest.TempPathFactory,
    by_language: list[tuple[list[str], float]],
    threads: int,
    memory_bytes: int,
    normalizer: str | None,
) -> None:
    pattern = NAMED["o200k"]
    reader = CorpusReader(corpus_of(by_language), pattern, normalizer, by_language=True)
    base = tmp_path_factory.mktemp("counts")
    written = write(reader, base / "written", threads, memory_bytes)
    again = write(reader.again(pattern), base / "again")
    assert {file.name: file.read_bytes() for file in written.iterdir()} == {
        file.name: file.read_bytes() for file in again.iterdir()
    }
    folder = CountFolder.open(written)
    folder.require(pattern, normalizer, ())
    counter = _core.WordCounter(_core.PreTokenizer([]), threads)
    folder.load_into(counter)
    other = CorpusReader(corpus_of(by_language), pattern, normalizer, by_language=True)
    other.restore(folder.reader_state())
    assert other.state() == reader.state()
    assert merges(reader.count_words(), reader) == merges(counter, other)


@examples(40)
@given(by_language=corpora, threads=st.integers(1, 3))
def test_words_inside_counted_pieces(
    tmp_path_factory: pytest.TempPathFactory,
    by_language: list[tuple[list[str], float]],
    threads: int,
) -> None:
    """Stage 1 of two takes its words inside the pieces of stage 2."""
    boundaries, words = NAMED["ist-stage2"], NAMED["o200k"]
    corpus = corpus_of(by_language)
    folder = CountFolder.open(
        write(
            CorpusReader(corpus, boundaries, by_language=True),
            tmp_path_factory.mktemp("counts") / "boundaries",
        )
    )
    inner = compile_pattern(words)
    assert inner is not None
    found = count_words_within(folder, inner, threads=threads)
    expected = CorpusReader(corpus, (*boundaries, *words), by_language=True).count_words()
    for group in range(expected.group_count):
        assert sorted(expected.words(group)) == sorted(found.words(group))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = Corpus.from_texts({"eng": ["some words and some more"], "hin": ["राम का घर"]})
    reader = CorpusReader(corpus, NAMED["o200k"], by_language=True)
    return write(reader, tmp_path_factory.mktemp("counts") / "whole")


def test_every_damaged_byte_of_a_shard_is_found(whole: Path, tmp_path: Path) -> None:
    """Or changes nothing that is read: Parquet's own headers have no checksum."""
    broken = tmp_path / "broken"
    shutil.copytree(whole, broken)
    folder = CountFolder.open(whole)
    expected = [(d, e.tolist(), c.tolist()) for d, e, c in folder.read(0)]
    shard = broken / folder.groups[0].shard
    content = shard.read_bytes()
    found = 0
    for at in range(len(content)):
        for changed in (
            content[:at] + bytes([content[at] ^ 0x41]) + content[at + 1 :],
            content[:at],
        ):
            shard.write_bytes(changed)
            try:
                opened = CountFolder.open(broken)
                assert expected == [(d, e.tolist(), c.tolist()) for d, e, c in opened.read(0)]
            except ValueError as error:
                assert "words-00000.parquet" in str(error)
                found += 1
    assert found > len(content)
