"""Corpora of the recipes: files cut out of one text, and samples that keep the shares."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

TABLE = "path\tfirst_line\tlast_line\n{}\n"


def run(program, monkeypatch, path: str, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
    program(path).main()


def test_files_come_back_with_their_newlines(program, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "code.txt").write_text("a:\n\n    b\n\nc\r\nd\n", encoding="utf-8", newline="")
    table = TABLE.format('one".py\t1\t3\ntwo.py\t5\t6')
    (tmp_path / "sources.tsv").write_text(table, encoding="utf-8")
    names = [tmp_path / name for name in ("code.txt", "sources.tsv")]
    run(program, monkeypatch, "data/documents.py", *names, "-o", tmp_path / "code.jsonl")
    lines = (tmp_path / "code.jsonl").read_text(encoding="utf-8").splitlines()
    assert ["a:\n\n    b\n", "c\r\nd\n"] == [json.loads(line)["text"] for line in lines]


@pytest.mark.parametrize("rows", ["x\t1\t2\ny\t2\t3", "x\t3\t2", "x\t1\t9"])
def test_a_table_that_does_not_fit_is_refused(
    program, tmp_path: Path, monkeypatch, rows: str
) -> None:
    (tmp_path / "code.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (tmp_path / "sources.tsv").write_text(TABLE.format(rows), encoding="utf-8")
    names = [tmp_path / name for name in ("code.txt", "sources.tsv")]
    with pytest.raises(ValueError, match="line"):
        run(program, monkeypatch, "data/documents.py", *names, "-o", tmp_path / "code.jsonl")
    assert not (tmp_path / "code.jsonl").exists()


def test_a_sample_has_the_shares_of_its_source(program, tmp_path: Path, monkeypatch) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name, count in (("hi.txt", 30_000), ("en.txt", 3_000), ("code.jsonl", 3_000)):
        text = "".join(f"{number:08d}\n" for number in range(count))
        (source / name).write_text(text, encoding="utf-8")
    (source / "hi.sources.tsv").write_text("not text\n", encoding="utf-8")
    for seed in (1, 1, 2):
        out = tmp_path / f"seed-{seed}"
        arguments = (source, out, "--mb", "0.162", "--seed", seed)
        run(program, monkeypatch, "data/sample.py", *arguments)
        assert {"hi.txt", "en.txt", "code.jsonl"} == {file.name for file in out.iterdir()}
        for file in out.iterdir():
            lines = file.read_text(encoding="utf-8").splitlines()
            known = (source / file.name).read_text(encoding="utf-8").splitlines()
            assert sorted(set(lines) & set(known)) == lines
            assert len(lines) / len(known) == pytest.approx(0.5, abs=0.05)
    one, two = (tmp_path / f"seed-{seed}" / "hi.txt" for seed in (1, 2))
    assert one.read_bytes() != two.read_bytes()


def test_the_same_seed_draws_the_same_lines(program, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text("".join(f"{i}\n" for i in range(99)))
    for name in ("one", "two"):
        arguments = (tmp_path / "source", tmp_path / name, "--mb", "0.0001", "--seed", "3")
        run(program, monkeypatch, "data/sample.py", *arguments)
    assert (tmp_path / "one" / "a.txt").read_bytes() == (tmp_path / "two" / "a.txt").read_bytes()


def test_a_folder_without_text_is_refused(program, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(SystemExit) as error:
        run(program, monkeypatch, "data/sample.py", tmp_path, tmp_path / "out", "--mb", "1")
    assert 2 == error.value.code


def test_the_beginning_of_each_source_is_taken(program, tmp_path: Path) -> None:
    """So many bytes of each times its number, and one document in 200 is held out."""
    text = program("llama_indic/text.py")
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(f"{name} 6 bytes\n" * 1000, encoding="utf-8")
    sources = tmp_path / "sources.txt"
    specs = [f"hi={tmp_path}/one.txt # a comment", "", f"hi={tmp_path}/two.txt 2.4"]
    sources.write_text("\n".join(specs), encoding="utf-8")
    text.take(sources, 250 * len("one 6 bytes"), tmp_path / "out")
    kept, held = (
        (tmp_path / "out" / name).read_text(encoding="utf-8").splitlines()
        for name in ("hi.jsonl", "held-out/hi.jsonl")
    )
    assert [248, 597] == [kept.count(f'{{"text": "{name} 6 bytes"}}') for name in ("one", "two")]
    assert [2, 3] == [held.count(f'{{"text": "{name} 6 bytes"}}') for name in ("one", "two")]
