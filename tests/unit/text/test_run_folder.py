"""Folders of runs that are damaged, foreign or counted under other settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.text.count_shards import ShardWriter
from vocabshift.text.run_folder import FILE, RunFolder, join_runs, write_runs

RUNS = [np.array(ids, "<u4").tobytes() for ids in ((1, 2), (1, 2, 3), (255, 7))]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    counter = _core.WordCounter(_core.PreTokenizer([]))
    ends = np.cumsum([len(run) for run in RUNS])
    counter.add_words(b"".join(RUNS), ends, np.array([5, 6, 7], np.uint64), 0)
    folder = tmp_path_factory.mktemp("runs")
    write_runs(
        counter, [("en", 40, 99), (None, 0, 0)], {"cut": "here"}, folder, bound=3, borders="ab"
    )
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "runs"))


def change(folder: Path, **fields: Any) -> None:
    document = json.loads((folder / FILE).read_text("utf-8"))
    (folder / FILE).write_text(json.dumps(document | fields), "utf-8")


def test_what_it_says(written: Path) -> None:
    runs = RunFolder.open(written)
    assert (3, 40, {"cut": "here"}) == (runs.bound, runs.tokens, runs.settings)
    assert [("en", 40, 99, 3, 18), (None, 0, 0, 0, 0)] == [
        (g.language, g.tokens, g.bytes, g.runs, g.occurrences) for g in runs.groups
    ]
    [(data, ends, counts)] = runs.read(0)
    assert (b"".join(RUNS), [8, 20, 28], [5, 6, 7]) == (data, ends.tolist(), counts.tolist())


def test_other_settings(written: Path) -> None:
    runs = RunFolder.open(written)
    runs.require({"cut": "here"})
    with pytest.raises(CorpusError, match=r'another cut \("here"\) than training has \("there"\)'):
        runs.require({"cut": "there"})
    with pytest.raises(CorpusError, match=r"another stage 1 \(null\)"):
        runs.require({"cut": "here", "stage_1": "x"})


def test_a_folder_without_runs(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="is no folder of runs"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": 1}', "[" * 100_000])
def test_a_damaged_description(folder: Path, content: str) -> None:
    (folder / FILE).write_text(content, "utf-8")
    with pytest.raises(CorpusError, match="count the runs again"):
        RunFolder.open(folder)


GROUP = {"language": "en", "tokens": 1, "bytes": 1, "runs": 1, "occurrences": 1, "shard": "x"}


@pytest.mark.parametrize(
    "fields",
    [
        {"format": 2},
        {"settings": []},
        {"bound": -1},
        {"bound": 1.5},
        {"bound": 1 << 64},
        {"borders": 7},
        {"groups": 7},
        {"groups": [{}]},
        {"groups": [GROUP | {"language": 3}]},
        {"groups": [GROUP | {"tokens": "1"}]},
        {"groups": [GROUP | {"shard": "../x"}]},
    ],
)
def test_a_description_of_other_types(folder: Path, fields: dict[str, Any]) -> None:
    change(folder, **fields)
    with pytest.raises(CorpusError, match="count the runs again"):
        RunFolder.open(folder)


def test_a_missing_shard(folder: Path) -> None:
    (folder / "runs-00000.parquet").unlink()
    with pytest.raises(CorpusError, match="is missing"):
        RunFolder.open(folder)


def test_a_flipped_byte(folder: Path) -> None:
    shard = folder / "runs-00000.parquet"
    data = bytearray(shard.read_bytes())
    data[30] ^= 1
    shard.write_bytes(data)
    with pytest.raises(CorpusError):
        RunFolder.open(folder)


def test_a_shard_of_words(folder: Path) -> None:
    writer = ShardWriter(folder / "runs-00000.parquet")
    writer.close()
    with pytest.raises(CorpusError, match=r"needed are run \(binary\)"):
        RunFolder.open(folder)


def test_fewer_runs_than_the_description_says(folder: Path) -> None:
    shutil.copy(folder / "runs-00001.parquet", folder / "runs-00000.parquet")
    with pytest.raises(CorpusError, match=r"holds 0 runs and 0 occurrences; .* says 3 and 18"):
        RunFolder.open(folder)


def joined(parts: list[Path], out: Path) -> RunFolder:
    out.mkdir()
    counter = _core.WordCounter(_core.PreTokenizer([]))
    join_runs([RunFolder.open(part) for part in parts], counter, out)
    return RunFolder.open(out)


def test_parts_that_were_cut_at_the_same_borders(written: Path, tmp_path: Path) -> None:
    """Groups are those of the first part, whatever their order in others."""
    counter = _core.WordCounter(_core.PreTokenizer([]))
    ends, runs = np.array([8, 16]), RUNS[0] + RUNS[2]
    counter.add_words(runs, ends, np.array([1, 2], np.uint64), 1)
    counter.add_words(RUNS[1], ends[:1] + 4, np.array([3], np.uint64), 0)
    (tmp_path / "b").mkdir()
    about = [(None, 10, 20), ("en", 30, 40)]
    write_runs(counter, about, {"cut": "here"}, tmp_path / "b", bound=3, borders="ab")
    sums = joined([written, tmp_path / "b"], tmp_path / "sums")
    assert [("en", 70, 139, 3, 21), (None, 10, 20, 1, 3)] == [
        (g.language, g.tokens, g.bytes, g.runs, g.occurrences) for g in sums.groups
    ]
    [(data, _, counts)] = sums.read(0)
    assert (b"".join(RUNS), [6, 6, 9]) == (data, counts.tolist())
    assert ({"cut": "here"}, 3, "ab") == (sums.settings, sums.bound, sums.borders)
    assert {"bound": 3, "groups": 2, "tokens": 80, "bytes": 159, "runs": 4, "occurrences": 24} == (
        sums.figures
    )
    told: list[tuple[int, int | None]] = []
    counter, again = _core.WordCounter(_core.PreTokenizer([])), tmp_path / "again"
    again.mkdir()
    parts = [RunFolder.open(written), RunFolder.open(tmp_path / "b")]
    join_runs(parts, counter, again, progress=lambda done, total: told.append((done, total)))
    assert [(3, 6), (4, 6), (6, 6)] == told
    alone = joined([written], tmp_path / "alone")
    assert all(
        file.read_bytes() == (written / file.name).read_bytes() for file in alone.path.iterdir()
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"borders": "cd"}, "were cut at different borders"),
        ({"borders": None}, "were cut at different borders"),
        ({"bound": 4}, "other options, words or bound"),
        ({"settings": {"cut": "there"}}, "other options, words or bound"),
        ({"groups": []}, "other options, words or bound"),
    ],
)
def test_parts_that_cannot_be_added_up(
    written: Path, folder: Path, tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    change(folder, **fields)
    with pytest.raises(CorpusError, match=message):
        joined([written, folder], tmp_path / "sums")


def test_older_folders_do_not_say_at_which_borders_they_were_cut(
    folder: Path, tmp_path: Path
) -> None:
    document = json.loads((folder / FILE).read_text("utf-8"))
    del document["borders"]
    (folder / FILE).write_text(json.dumps(document), "utf-8")
    with pytest.raises(CorpusError, match="were cut at different borders"):
        joined([folder, folder], tmp_path / "sums")
