"""Files of glitch tokens: what could not be written is refused before a model is read."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from vocabshift.cli.main import build_parser
from vocabshift.workflows.glitch import glitch_to_files, write_prune_list

ROWS = [{"token": "going", "action": "prune"}]


def test_the_list_for_prune_keeps_tokens_with_line_breaks(tmp_path: Path) -> None:
    """A list of lines cannot hold them; the command that is returned names them, quoted."""
    file = tmp_path / "a list.txt"
    model = SimpleNamespace(vocab={"a": 0, "\n": 1, "b\r": 2, "going": 3}, merges=())
    command = write_prune_list(file, "a model", SimpleNamespace(model=model), ROWS)
    assert command is not None
    assert file.read_text() == "a\n"
    parsed = build_parser().parse_args(shlex.split(command)[1:])
    assert (parsed.verb, parsed.n_tokens) == ("prune", 1)
    assert parsed.keep == [f"file:{file}", "\n", "b\r"]


def test_where_nothing_is_to_go_there_is_no_command(tmp_path: Path) -> None:
    model = SimpleNamespace(vocab={"b": 1, "a": 0}, merges=())
    assert write_prune_list(tmp_path / "l", "m", SimpleNamespace(model=model), ROWS) is None
    assert (tmp_path / "l").read_text() == "a\nb\n"  # by id


@pytest.mark.parametrize("key", ["output", "markdown", "html", "prune_list"])
def test_outputs_are_refused_first(tmp_path: Path, monkeypatch, key: str) -> None:
    """Of what exists, of an input, and of one file for two; the model is not even looked for."""
    monkeypatch.setattr(
        "vocabshift.evaluation.glitch.find.find_glitch_tokens",
        lambda *_, **__: pytest.fail("the work began"),
    )
    model, old, new = tmp_path / "model.bin", tmp_path / "old", tmp_path / "new"
    model.touch()
    old.touch()
    with pytest.raises(FileExistsError, match="exists already"):
        glitch_to_files(model, **{key: old})
    with pytest.raises(ValueError, match="also an input"):
        glitch_to_files(model, force=True, **{key: model})
    other = "html" if key == "output" else "output"
    with pytest.raises(ValueError, match="two of the outputs name one file"):
        glitch_to_files(model, **{key: new, other: new})
    assert not new.exists()
