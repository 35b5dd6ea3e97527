"""What the recipes write into their READMEs, and the sources of program text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

README = "# A\n\n<!-- t -->\nold\n<!-- /t -->\n\nby hand\n"


def test_only_what_stands_between_the_markers_changes(program) -> None:
    """Headings go one level down; a second time changes nothing."""
    insert = program("data/insert.py").insert
    new = insert(README, "t", "### T\n\n| a |\n")
    assert "# A\n\n<!-- t -->\n\n#### T\n\n| a |\n\n<!-- /t -->\n\nby hand\n" == new
    assert new == insert(new, "t", "### T\n\n| a |\n")


@pytest.mark.parametrize("text", ["", "<!-- t -->\n", README + README, "<!-- /t -->\n<!-- t -->\n"])
def test_markers_must_stand_there_once(program, text: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        program("data/insert.py").insert(text, "t", "new")


def test_a_file_goes_between_the_markers_of_its_name(
    program, tmp_path: Path, monkeypatch, capsys
) -> None:
    readme, table = tmp_path / "README.md", tmp_path / "t.md"
    readme.write_text(README, encoding="utf-8")
    table.write_text("new\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["insert.py", str(readme), str(table)])
    program("data/insert.py").main()
    assert "<!-- t -->\n\nnew\n\n<!-- /t -->" in readme.read_text(encoding="utf-8")
    other = table.rename(tmp_path / "u.md")
    monkeypatch.setattr(sys, "argv", ["insert.py", str(readme), str(other)])
    with pytest.raises(SystemExit):
        program("data/insert.py").main()
    assert "<!-- u -->" in capsys.readouterr().err


def test_sources_of_program_text(program, tmp_path: Path, monkeypatch) -> None:
    """Bytes are those of the named lines, their endings too; what lies between is in none."""
    from vocabshift.report.card_facts import Source, read_sources

    text, table, out = tmp_path / "code.txt", tmp_path / "c.tsv", tmp_path / "code.tsv"
    text.write_bytes("é = 1\nb\n\nc\n".encode())
    rows = ["repo\tlicense\tfirst_line\tlast_line", "x/y\tMIT\t1\t2", "x/z\tother\t4\t4"]
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["sources.py", str(text), str(table), "-o", str(out)])
    program("data/sources.py").main()
    assert [
        Source("code", "x/y", "MIT", "open", 9),
        Source("code", "x/z", "other", "unknown", 2),
    ] == read_sources(out)
