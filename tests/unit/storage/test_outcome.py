"""One way of writing a result: free, taken, whole, with its provenance and its map."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vocabshift as vs
from vocabshift.storage.outcome import check_output, local_paths, outcome


class Map:
    """Writes a file, as an id map does."""

    def save(self, folder: Path) -> None:
        (folder / "map.json").write_text("{}", encoding="utf-8")


def test_the_folder_appears_with_what_was_recorded(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with outcome("toy", out) as output:
        assert not out.exists()
        (output.folder / "file").write_text("x", encoding="utf-8")
        config, figures = {"a": 1}, {"n": 2}
        result = output.record(config, figures, corpus_fingerprint="abc", id_map=Map())
    assert {"out": str(out), "n": 2} == result
    assert ["file", "map.json", "vocabshift.json"] == sorted(file.name for file in out.iterdir())
    written = json.loads((out / "vocabshift.json").read_text(encoding="utf-8"))
    assert ("toy", config, figures, "abc") == tuple(
        written[key] for key in ("operation", "config", "figures", "corpus_fingerprint")
    )
    assert [out] == list(tmp_path.iterdir())


def test_nothing_is_left_of_work_that_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="lost"), outcome("toy", tmp_path / "out") as output:
        output.record({}, {})
        raise RuntimeError("lost")
    assert [] == list(tmp_path.iterdir())


def test_what_is_in_the_way_is_told_before_the_work(tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "out"
    text.write_text("a cat", encoding="utf-8")
    out.mkdir()
    corpus = vs.Corpus.from_specs([str(text)])
    with pytest.raises(FileExistsError, match="exists already"), outcome("toy", out):
        raise AssertionError("the work began")
    with pytest.raises(ValueError, match="would replace the input"):
        check_output(tmp_path, corpus, force=True)
    with pytest.raises(ValueError, match="would replace the input"):
        check_output(out, str(out))
    with pytest.raises(FileExistsError, match="exists already"):
        check_output(text, corpus)
    with outcome("toy", out, inputs=[corpus], force=True) as output:
        output.record({}, {})
    assert (out / "vocabshift.json").exists()


def test_names_and_values_in_memory_are_no_paths(tmp_path: Path) -> None:
    corpus = vs.Corpus.from_texts(["a cat"])
    assert [tmp_path] == local_paths("meta-llama/none", corpus, None, "x" * 5000, "a\0b", tmp_path)
