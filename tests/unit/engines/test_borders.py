"""The sketch of borders: what a part of the text adds, and sums that are refused."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from run_counting import LABELLED, batch_of, call, count_words, sketch
from vocabshift import _core
from vocabshift.engines import Borders, RunPlan, SketchBorders
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.trainers.superword import SuperwordTrainer

TEXTS = {"en": ["a b a b a b. a b", "b a b a"], "hi": ["राम का घर का घर"]}
ROWS = [(language, text) for language, texts in TEXTS.items() for text in texts]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> RunPlan:
    trainer = SuperwordTrainer(vocab_size=300, transition=0.9)
    corpus = Corpus.from_texts(TEXTS, weights={"hi": 2.0})
    return trainer.plan_runs(
        count_words(corpus, trainer, tmp_path_factory.mktemp("words") / "words")
    )


@pytest.fixture(scope="module")
def rows(plan: RunPlan) -> pa.RecordBatch:
    [batch] = call(SketchBorders(plan, LABELLED), [[ROWS]])
    return batch


def test_what_the_rows_are(plan: RunPlan, rows: pa.RecordBatch) -> None:
    """Cells with their counts, and one negative cell with the sum of these."""
    assert rows.schema == pa.schema([("cell", pa.int64()), ("count", pa.uint64())])
    cells, counts = rows.column(0).to_pylist(), rows.column(1).to_pylist()
    assert [False] * (len(cells) - 1) + [True] == [cell < 0 for cell in cells]
    assert sum(counts[:-1]) == counts[-1]
    borders = Borders.sum(plan, [rows])
    assert dict(zip(cells[:-1], counts[:-1], strict=True)) == {
        int(cell): int(borders.counts[cell]) for cell in np.flatnonzero(borders.counts)
    }


def test_the_counters_are_not_copied(plan: RunPlan) -> None:
    """A view of them, which keeps them alive and may not be written to."""
    core = _core.BorderPass(*plan.core(plan.read(Corpus.from_texts(TEXTS))), [1], plan.cells)
    counts = core.counts
    assert (plan.cells, 0) == (len(counts), counts.sum())
    core.add(b"a b a b", np.array([0]), np.array([7]))
    assert counts.sum() > 0
    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 1
    del core
    gc.collect()
    assert counts.sum() > 0


def test_a_large_sketch_comes_in_batches(plan: RunPlan) -> None:
    large = replace(plan, superwords=1 << 20)
    batches = call(SketchBorders(large, LABELLED), [[ROWS]])
    assert large.cells >> 20 == len(batches)
    cells = [cell for batch in batches for cell in batch.column("cell").to_pylist()]
    assert cells[:-1] == sorted(set(cells[:-1]))
    assert cells[-1] < 0
    assert sketch(plan, [[ROWS]]).counts.sum() == Borders.sum(large, batches).counts.sum()


def test_a_part_without_text(plan: RunPlan, rows: pa.RecordBatch) -> None:
    [alone] = call(SketchBorders(plan, LABELLED), [[]])
    assert [0] == alone.column("count").to_pylist()
    both = Borders.sum(plan, [alone, rows])
    assert both.counts.tolist() == Borders.sum(plan, [rows]).counts.tolist()


def test_rows_may_have_been_summed(plan: RunPlan) -> None:
    parts = [[ROWS[:1]], [ROWS[1:]]]
    batches = call(SketchBorders(plan, LABELLED), parts)
    table = pa.Table.from_batches(batches).group_by("cell").aggregate([("count", "sum")])
    summed = table.rename_columns(["cell", "count"]).to_batches()
    expected = sketch(plan, parts).counts.tolist()
    assert expected == Borders.sum(plan, summed).counts.tolist()


def test_the_bound_to_try_first(plan: RunPlan) -> None:
    borders = sketch(plan, [[ROWS]])
    assert 4096 == borders.guess_bound()
    assert 7 == replace(borders, plan=replace(plan, min_count=7)).guess_bound()
    few = replace(plan, superwords=1, min_count=1)
    counts = np.arange(1, 101, dtype=np.uint64)
    assert 100 - 67 == Borders(few, counts).guess_bound()


@pytest.mark.parametrize(("superwords", "cells"), [(1, 4096), (100, 1 << 16), (1 << 20, 1 << 26)])
def test_the_sketch_grows_with_what_is_wanted(plan: RunPlan, superwords: int, cells: int) -> None:
    assert cells == replace(plan, superwords=superwords).cells


def test_nothing_is_no_sketch(plan: RunPlan) -> None:
    with pytest.raises(CorpusError, match="missing or damaged"):
        Borders.sum(plan, [])


def test_rows_are_missing(plan: RunPlan, rows: pa.RecordBatch) -> None:
    for some in ([rows[1:]], [rows[:-1]], [rows, rows[:1]]):
        with pytest.raises(CorpusError, match="missing or damaged"):
            Borders.sum(plan, some)


def test_a_count_was_changed(plan: RunPlan, rows: pa.RecordBatch) -> None:
    counts = rows.column("count").to_numpy().copy()
    counts[0] += 1
    damaged = pa.record_batch([rows.column("cell"), pa.array(counts)], names=["cell", "count"])
    with pytest.raises(CorpusError, match="missing or damaged"):
        Borders.sum(plan, [damaged])


@pytest.mark.parametrize(
    "other",
    [
        {"weights": {"en": 1, "hi": 3}},
        {"normalizer": "nfc"},
        {"special_tokens": ("x",)},
        {"terminals": "."},
        {"superwords": 10_000},
        {"merges": np.zeros((0, 3), np.uint32)},
        {"pattern": ()},
    ],
)
def test_a_sketch_of_another_plan(
    plan: RunPlan, rows: pa.RecordBatch, other: dict[str, object]
) -> None:
    with pytest.raises(CorpusError, match="another stage 1, pattern, normalizer or weights"):
        Borders.sum(replace(plan, **other), [rows])
    mixed = call(SketchBorders(replace(plan, **other), LABELLED), [[ROWS]])
    with pytest.raises(CorpusError, match="another stage 1, pattern, normalizer or weights"):
        Borders.sum(plan, [rows, *mixed])


def test_a_cell_beyond_the_sketch(plan: RunPlan, rows: pa.RecordBatch) -> None:
    cells = rows.column("cell").to_numpy().copy()
    cells[0] = plan.cells
    damaged = pa.record_batch([pa.array(cells), rows.column("count")], names=["cell", "count"])
    with pytest.raises(CorpusError, match="another stage 1"):
        Borders.sum(plan, [damaged])


def test_a_language_without_words(plan: RunPlan) -> None:
    with pytest.raises(CorpusError, match="has the language 'ta', and the words were counted of"):
        list(SketchBorders(plan, LABELLED)([batch_of([("ta", "x y")])]))


def test_text_that_is_not_utf8(plan: RunPlan) -> None:
    batch = pa.record_batch(
        [pa.array(["en"]), pa.array([b"\xff"], pa.binary())], names=["language", "text"]
    )
    with pytest.raises(CorpusError, match="not UTF-8"):
        list(SketchBorders(plan, LABELLED)([batch]))


def test_bad_rows_that_are_kept_elsewhere(plan: RunPlan, rows: pa.RecordBatch) -> None:
    """They were kept when the words were counted, and are left out here."""
    labels, texts = zip(*ROWS, strict=True)
    columns = [[*labels, "en"], [*(text.encode() for text in texts), b"a b\xff"]]
    batch = pa.record_batch([pa.array(column) for column in columns], names=["language", "text"])
    kept = SketchBorders(plan, replace(LABELLED, bad_rows="keep"))
    assert [rows] == list(kept([batch]))


def test_weights_are_of_the_words(plan: RunPlan, tmp_path: Path) -> None:
    """An occurrence in a language of weight 2 counts twice as much, in fixed point."""
    assert {"en": 4096, "hi": 8192} == dict(plan.weights)
    alone = {label: sketch(plan, [[[row]]]) for label, row in (("en", ROWS[1]), ("hi", ROWS[2]))}
    assert {4096} == {int(c) // int(c // 4096) for c in alone["en"].counts if c}
    assert 0 == int(alone["hi"].counts.sum()) % 8192
