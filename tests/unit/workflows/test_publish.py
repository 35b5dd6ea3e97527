"""Tables and cards from Python: what cannot be written is refused before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.results import Result, Results
from vocabshift.workflows.publish import write_card, write_tables

NOT_THERE = ["no results.jsonl"]


def test_tables_are_returned_and_written(tmp_path: Path) -> None:
    """Nothing is written unless a file is named."""
    file, out = tmp_path / "results.jsonl", tmp_path / "t.csv"
    Results([Result("ist", "hin", "fertility", 1.25, 9)]).save(file)
    found = write_tables([file], format="csv")
    assert (None, "languages", 1) == (found["out"], found["shape"], found["tables"])
    assert [file] == list(tmp_path.iterdir())
    assert str(out) == write_tables([file], out, format="csv")["out"]
    assert found["text"] == out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"shape": "ist-5"}, "unknown shape 'ist-5'"), ({"format": "word"}, "unknown format 'word'")],
)
def test_what_is_not_known_is_named(tmp_path: Path, options: dict[str, str], message: str) -> None:
    file = tmp_path / "results.jsonl"
    Results([Result("ist", "hin", "fertility", 1.25, 9)]).save(file)
    with pytest.raises(ValueError, match=f"{message}; known are: "):
        write_tables([file], **options)


def test_an_output_in_the_way_is_refused_first(tmp_path: Path) -> None:
    """The results are not looked for."""
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match="exists already"):
        write_tables(NOT_THERE, out)
    with pytest.raises(FileExistsError, match="exists already"):
        write_card("ist", NOT_THERE, out)
    assert "mine" == out.read_text(encoding="utf-8")
