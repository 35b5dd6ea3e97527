"""From a corpus to counted words: weights, patterns without a scanner, the fingerprint."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from reference.pre_tokenize import pre_tokenizer
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED, Pattern, Split
from vocabshift.text.weighing import WEIGHT_UNIT, Group

TEXTS = {
    "hin": ["राम का घर है। राम का नाम है।", "घर घर"],
    "eng": ["the cat, the cat's mat", "the " * 50 + "a_rather_long_word_of_its_own " * 3],
}


def words_of(reader: CorpusReader, threads: int = 1) -> list[Counter[bytes]]:
    counter = reader.count_words(threads=threads)
    return [Counter(dict(counter.words(group))) for group in range(counter.group_count)]


def expected(texts: list[str], pattern: Pattern) -> Counter[bytes]:
    split = pre_tokenizer(pattern)
    return Counter(piece.encode() for text in texts for piece in split(text))


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_counts(name: str, threads: int) -> None:
    reader = CorpusReader(Corpus.from_texts(TEXTS), NAMED[name])
    every = [text for texts in TEXTS.values() for text in texts]
    assert [expected(every, NAMED[name])] == words_of(reader, threads)


def test_many_distinct_words_of_every_length() -> None:
    """Words to 16 bytes live in the table itself, longer ones beside it; both grow."""
    texts = [f"{'x' * (n % 40)}{n} " * (1 + n % 3) for n in range(9000)]
    pattern = (Split(r"\s+", "Removed"),)
    reader = CorpusReader(Corpus.from_texts(texts), pattern)
    assert [expected(texts, pattern)] == words_of(reader)


def test_one_group_for_each_weight() -> None:
    corpus = Corpus.from_texts(
        {**TEXTS, "tam": ["அ ஆ"]}, weights={"hin": 2.0, "eng": 0.5, "tam": 2.0}
    )
    reader = CorpusReader(corpus, NAMED["o200k"])
    words = words_of(reader)
    assert [2.0, 0.5] == reader.weights
    assert expected([*TEXTS["hin"], "அ ஆ"], NAMED["o200k"]) == words[0]
    assert expected(TEXTS["eng"], NAMED["o200k"]) == words[1]
    assert [2 * WEIGHT_UNIT, WEIGHT_UNIT // 2] == reader.fixed_point_weights()
    assert 3 * WEIGHT_UNIT == reader.min_count(3)


def reader_of(weights: list[float]) -> CorpusReader:
    groups = [Group(None, weight) for weight in weights]
    return CorpusReader(Corpus.from_texts(["a"]), (), groups=groups)


@pytest.mark.parametrize(
    ("weights", "fixed", "min_count"),
    [
        ([1.0], [1], 2),
        ([7.5], [1], 2),
        ([1.0, 2.0], [4096, 8192], 8192),
        ([2.0, 1.0], [8192, 4096], 8192),
        ([1.0, 1e-6], [1_000_000, 1], 2_000_000),
        ([0.1, 1.0], [410, 4096], 8192),
    ],
)
def test_fixed_point_weights(weights: list[float], fixed: list[int], min_count: int) -> None:
    """Weights all alike change nothing; the smallest is never below one unit."""
    reader = reader_of(weights)
    assert fixed == reader.fixed_point_weights()
    assert min_count == reader.min_count(2)


@pytest.mark.parametrize("weights", [[1e-9, 1e12], [1e-300, 1.0], [1.0, 1e16]])
def test_weights_that_leave_no_room_to_count(weights: list[float]) -> None:
    """What could not be counted in 64 bits is refused, not wrapped around."""
    with pytest.raises(ValueError, match="less different"):
        reader_of(weights).fixed_point_weights()
    close = reader_of([1.0, 2.0])
    assert [4096, 8192] == close.fixed_point_weights(unit=1 << 30)
    close.groups[0].n_bytes = 1 << 40
    with pytest.raises(ValueError, match="less different"):
        close.fixed_point_weights(unit=1 << 30)


def test_a_min_frequency_beyond_all_counts() -> None:
    """It fits the core's 64 bits, and no count reaches it."""
    assert 1 << 62 == reader_of([1.0, 2.0]).min_count(10**30, unit=4096)


def test_an_empty_special_token_is_refused() -> None:
    """It stands everywhere, and would leave single characters."""
    with pytest.raises(ValueError, match="special token is empty"):
        CorpusReader(Corpus.from_texts(["a cat"]), (), special_tokens=("<s>", ""))


def test_a_language_without_text_is_refused() -> None:
    """Its name stands in the error; blank lines are no text."""
    reader = CorpusReader(Corpus.from_texts({"hin": [""], "eng": ["a cat"]}), NAMED["o200k"])
    with pytest.raises(CorpusError, match="no text in 'hin'"):
        reader.count_words()


def test_min_frequency_is_compared_with_the_weighted_count() -> None:
    """Two occurrences of weight 1 are two, whichever weight comes first."""
    one, other = reader_of([0.1, 1.0]), reader_of([1.0, 0.1])
    assert other.min_count(2) == one.min_count(2)


def test_figures_and_progress() -> None:
    reader = CorpusReader(Corpus.from_texts(TEXTS), NAMED["o200k"])
    seen: list[tuple[int, int | None]] = []
    reader.count_words(progress=lambda done, total: seen.append((done, total)))
    n_bytes = sum(len(text.encode()) for texts in TEXTS.values() for text in texts)
    assert n_bytes == reader.n_bytes
    assert 4 == reader.n_documents
    assert n_bytes == seen[-1][0]


def fingerprint(corpus: Corpus, pattern: Pattern = ()) -> str:
    reader = CorpusReader(corpus, pattern)
    for _ in reader.read():
        pass
    return reader.fingerprint


def test_fingerprint_is_of_text_labels_and_weights() -> None:
    same = fingerprint(Corpus.from_texts(TEXTS))
    assert 16 == len(same)
    assert same == fingerprint(Corpus.from_texts(TEXTS), NAMED["deepseek"])
    others = [
        fingerprint(Corpus.from_texts({**TEXTS, "eng": ["another"]})),
        fingerprint(Corpus.from_texts({"hi": TEXTS["hin"], "eng": TEXTS["eng"]})),
        fingerprint(Corpus.from_texts(TEXTS, weights={"hin": 2.0})),
        fingerprint(Corpus.from_texts({"hin": ["ab", "c"]})),
        fingerprint(Corpus.from_texts({"hin": ["a", "bc"]})),
    ]
    assert 6 == len({same, *others})


def test_text_that_changes_between_two_passes_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("one two\n", encoding="utf-8")
    reader = CorpusReader(Corpus.from_files({"eng": file}), NAMED["o200k"])
    reader.count_words()
    again = reader.again(NAMED["ist-stage2"])
    assert 1 == len(list(again.read()))
    file.write_text("one, two\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="changed between two passes"):
        list(reader.again(NAMED["ist-stage2"]).read())


def test_normalized_before_it_is_cut() -> None:
    reader = CorpusReader(Corpus.from_texts(["e\u0301 ﬁ"]), NAMED["o200k"], "nfkc")
    assert [Counter(["é".encode(), b" fi"])] == words_of(reader)
