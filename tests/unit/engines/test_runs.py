"""Counted runs: the rows of a part of the text, and sums that are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from run_counting import LABELLED, call, count_runs, count_words, sketch
from vocabshift import _core
from vocabshift.engines import Borders, CountRuns, RunSums
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.run_folder import RunFolder, join_runs
from vocabshift.trainers.matra import MatraTrainer
from vocabshift.trainers.superword import SuperwordTrainer

ROWS = [("en", "a b a b a b. a b"), ("en", "b a b a"), ("hi", "राम का घर का घर")]


def borders_of(trainer: SuperwordTrainer, folder: Path) -> Borders:
    texts: dict[str, list[str]] = {"en": [], "hi": []}
    for language, text in ROWS:
        texts[language].append(text)
    plan = trainer.plan_runs(count_words(Corpus.from_texts(texts), trainer, folder))
    return sketch(plan, [[ROWS]])


@pytest.fixture(scope="module")
def borders(tmp_path_factory: pytest.TempPathFactory) -> Borders:
    trainer = SuperwordTrainer(vocab_size=300, transition=0.9)
    return borders_of(trainer, tmp_path_factory.mktemp("words") / "words")


@pytest.fixture(scope="module")
def job(borders: Borders) -> CountRuns:
    return CountRuns(borders.plan, borders, 2, LABELLED)


def summed(job: CountRuns, batches: list[pa.RecordBatch], folder: Path) -> dict[str, bytes]:
    sums = RunSums(job)
    for batch in batches:
        sums.add(batch)
    folder.mkdir()
    sums.write(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_what_the_rows_are(job: CountRuns) -> None:
    """Runs of at least two ids, and three figures for each language."""
    rows = pa.Table.from_batches(call(job, [[ROWS]]))
    types = [("language", pa.string()), ("run", pa.binary()), ("count", pa.uint64())]
    assert pa.schema(types) == rows.schema
    lengths = [len(run) for run in rows.column("run").to_pylist()]
    assert [11] * 6 == [length for length in lengths if length % 4]
    assert min(length for length in lengths if length % 4 == 0) >= 8


def test_the_same_bytes_from_any_parts(job: CountRuns, borders: Borders, tmp_path: Path) -> None:
    one = summed(job, call(job, [[ROWS]]), tmp_path / "one")
    small = CountRuns(borders.plan, borders, 2, LABELLED, memory_bytes=0)
    batches = call(small, [[ROWS[2:], ROWS[:1]], [], [ROWS[1:2]]])
    assert one == summed(job, batches[::-1], tmp_path / "many")
    table = pa.Table.from_batches(batches).group_by(["language", "run"])
    once = table.aggregate([("count", "sum")]).rename_columns(["language", "run", "count"])
    assert one == summed(job, once.to_batches(), tmp_path / "summed")


def test_a_long_piece_is_one_run(tmp_path: Path) -> None:
    """Of any number of tokens, if no border in it is rare."""
    trainer = SuperwordTrainer(vocab_size=300, transition=0.9)
    texts = [" ".join("ab" * times) for times in (16, 31, 32, 33, 64, 100)]
    parts = [[[("en", text) for text in texts]]]
    plan = trainer.plan_runs(count_words(Corpus.from_texts({"en": texts}), trainer, tmp_path / "w"))
    runs = count_runs(sketch(plan, parts), 1, parts, tmp_path / "r")
    [(_, ends, counts)] = runs.read(0)
    assert [1] * len(texts) == counts.tolist()
    assert runs.tokens * 4 == ends[-1]


def test_parts_of_the_text_are_added_up(job: CountRuns, tmp_path: Path) -> None:
    """Each was cut by the sketch of all, so their sum is what one pass over all gives."""
    one = summed(job, call(job, [[ROWS]]), tmp_path / "one")
    for number, rows in enumerate([ROWS[:1], ROWS[1:]]):
        summed(job, call(job, [[rows]]), tmp_path / f"part{number}")
    parts = [RunFolder.open(tmp_path / f"part{number}") for number in range(2)]
    (tmp_path / "sum").mkdir()
    join_runs(parts, _core.WordCounter(_core.PreTokenizer([])), tmp_path / "sum")
    assert one == {file.name: file.read_bytes() for file in (tmp_path / "sum").iterdir()}


def test_a_sentence_has_a_second_row_for_its_weight(tmp_path: Path) -> None:
    trainer = MatraTrainer(vocab_size=300, alpha=0.5)
    weighted = borders_of(trainer, tmp_path / "words")
    runs = count_runs(weighted, 1, [[ROWS]], tmp_path / "runs")
    rows: dict[bytes, int] = {}
    for group in range(len(runs.groups)):
        for data, ends, counts in runs.read(group):
            starts = [0, *ends.tolist()[:-1]]
            for start, end, count in zip(starts, ends.tolist(), counts.tolist(), strict=True):
                rows[data[start:end]] = count
    plain = {run: count for run, count in rows.items() if len(run) % 4 == 0}
    assert {run + b"w" for run in plain} == rows.keys() - plain.keys()
    factors = {rows[run + b"w"] / count for run, count in plain.items()}
    assert {4096.0, 8192.0} == factors


@pytest.mark.parametrize("missing", [0, -1])
def test_rows_are_missing(job: CountRuns, missing: int, tmp_path: Path) -> None:
    batches = call(job, [[ROWS]])
    del batches[missing]
    with pytest.raises(CorpusError, match="missing or damaged"):
        summed(job, batches, tmp_path / "runs")


def test_a_part_is_there_twice_without_its_figures(job: CountRuns, tmp_path: Path) -> None:
    batches = call(job, [[ROWS]])
    with pytest.raises(CorpusError, match="missing or damaged"):
        summed(job, [*batches, batches[0]], tmp_path / "runs")


@pytest.mark.parametrize("bound", [1, 3])
def test_runs_under_another_bound(job: CountRuns, borders: Borders, bound: int) -> None:
    other = CountRuns(borders.plan, borders, bound, LABELLED)
    sums = RunSums(job)
    with pytest.raises(CorpusError, match="another stage 1, sketch or bound"):
        for batch in call(other, [[ROWS]]):
            sums.add(batch)


def test_runs_by_another_sketch(job: CountRuns, borders: Borders) -> None:
    other = sketch(borders.plan, [[ROWS[:1]]])
    sums = RunSums(job)
    with pytest.raises(CorpusError, match="another stage 1, sketch or bound"):
        for batch in call(CountRuns(borders.plan, other, 2, LABELLED), [[ROWS]]):
            sums.add(batch)


def test_a_language_without_words(job: CountRuns) -> None:
    with pytest.raises(CorpusError, match="has the language 'ta'"):
        call(job, [[[("ta", "x y")]]])
    [batch, *_] = call(job, [[ROWS]])
    with pytest.raises(CorpusError, match="has the language 'ta'"):
        RunSums(job).add(batch.set_column(0, "language", pa.array(["ta"] * len(batch))))
