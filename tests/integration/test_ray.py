"""`EncodeTexts` and `CountPieces` in actors of Ray Data, one of which is killed.

Ray is not installed for continuous integration (a wheel of 79 MB, 240 MB on disk, and a cluster to
start); run this after `pip install 'vocabshift[ray]'`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vocabshift.cli.main import main
from vocabshift.engines import CountPieces, EncodeTexts

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'vocabshift[ray]'")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore")  # of ray and what it imports

TEXTS = [f"the cat {number} sat on नदी " * (1 + number % 3) for number in range(400)]


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    yield
    ray.shutdown()


def tables() -> Any:
    rows = pa.table({"id": range(len(TEXTS)), "text": TEXTS})
    return ray.data.from_arrow([rows.slice(at, 50) for at in range(0, len(TEXTS), 50)])


def dies_once(mark: Path, table: Any) -> None:
    """Kills the process at its first row after the 200th, if none died before."""
    if table["id"][-1].as_py() > 200:
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def test_actors_encode(tmp_path: Path) -> None:
    import small_models  # not above: workers import this file, and not from the tests' folder

    folder = small_models.old_tokenizer().save_pretrained(tmp_path / "tokenizer")
    mark = tmp_path / "killed"

    class Encode(EncodeTexts):
        def __call__(self, table: Any) -> Any:
            dies_once(mark, table)
            return super().__call__(table)

    found = tables().map_batches(
        Encode,
        fn_constructor_args=(str(folder),),
        batch_format="pyarrow",
        batch_size=25,
        compute=ray.data.ActorPoolStrategy(size=2),
    )
    rows = pa.concat_tables(ray.get(found.to_arrow_refs())).sort_by("id")
    assert mark.exists()
    wanted = EncodeTexts(folder)(pa.table({"id": range(len(TEXTS)), "text": TEXTS}))
    assert wanted.to_pydict() == rows.to_pydict()


def test_tasks_count(tmp_path: Path) -> None:
    """Their Parquet files, added up, equal the counts of all the text, to the byte."""
    count, mark = CountPieces(), tmp_path / "killed"

    def count_table(table: Any) -> Any:
        dies_once(mark, table)
        return pa.Table.from_batches(count(iter(table.to_batches())))

    counted = tables().map_batches(count_table, batch_format="pyarrow", batch_size=None)
    counted.write_parquet(str(tmp_path / "words"))
    assert mark.exists()
    (tmp_path / "text.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    join = ["count", "--join", str(tmp_path / "words"), "--pattern", "o200k"]
    assert 0 == main([*join, "-o", str(tmp_path / "joined")])
    assert 0 == main(["count", str(tmp_path / "text.txt"), "-o", str(tmp_path / "whole")])
    whole = {file.name: file.read_bytes() for file in (tmp_path / "whole").iterdir()}
    assert whole == {file.name: file.read_bytes() for file in (tmp_path / "joined").iterdir()}
