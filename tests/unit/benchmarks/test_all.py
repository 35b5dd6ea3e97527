"""Running all benchmarks: the texts, the table of encoding, what is kept, and where it is put."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import programs
from vocabshift.cli.main import build_parser


@pytest.fixture
def every() -> Any:
    return programs.load("benchmarks/all.py")


@pytest.fixture
def data(tmp_path: Path, every) -> Path:
    """Numbered lines in each language."""
    folder = tmp_path / "data" / "train"
    folder.mkdir(parents=True)
    for name in {*every.MIXED, *every.LANGUAGES}:
        lines = (f"{name} {number}\n" for number in range(1000))
        (folder / f"{name}.txt").write_text("".join(lines), encoding="utf-8")
    return folder.parent


def test_the_texts(every, data: Path, tmp_path: Path) -> None:
    """Six languages in equal parts, in whole blocks and no order; smaller texts are its heads."""
    texts = every.Inputs(data, tmp_path / "texts", scale=12_000 / 100e6)
    lines = Path(texts.mixed(100)).read_text(encoding="utf-8").splitlines()
    blocks = [lines[start : start + 32] for start in range(0, len(lines), 32)]
    of = [{line.partition(" ")[0] for line in block} for block in blocks]
    assert {1} == {len(each) for each in of}
    assert set(every.MIXED) == set().union(*of)
    assert of != sorted(of, key=min)
    for block in blocks:
        first = int(block[0].partition(" ")[2])
        assert list(range(first, first + 32)) == [int(line.partition(" ")[2]) for line in block]
    assert len(lines) == len(set(lines))
    sizes = {name: sum(len(line) for line in lines if name in line) for name in every.MIXED}
    assert all(2000 - 7 * 32 < size < 2000 + 9 * 32 for size in sizes.values()), sizes
    head = Path(texts.mixed(20)).read_text(encoding="utf-8")
    assert "\n".join(lines).startswith(head.rstrip("\n"))
    assert 2400 <= len(head) < 2400 + 12
    assert 960 <= Path(texts.of("hi")).stat().st_size < 960 + 8


def test_a_miss_is_bold_in_the_table_of_encoding(
    every, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(program: str, *options: str) -> str:
        assert "encode.py" == program
        threads = options[options.index("--threads") + 1] if "--threads" in options else ""
        speed = {"": 21.0, "1": 20.0, "2": 30.0}[threads]
        rows = [{"name": "vocabshift", "MB/s": speed, "CPU ratio": 1.0, "same ids": True}]
        if not threads:
            rows += [
                {"name": "fastokens", "MB/s": 1.0, "CPU ratio": 1.19, "same ids": True},
                {"name": "tokenizers", "MB/s": 1.0, "CPU ratio": 51.26, "same ids": True},
                {"name": "gigatoken", "MB/s": 1.0, "CPU ratio": 0.96, "same ids": False},
            ]
        missing = {"kitoken": "not installed"}
        return json.dumps({"tables": [{"rows": rows, "missing": missing}] * 8})

    monkeypatch.setattr(every, "run", run)
    printed = every.encoding(every.Inputs(data, tmp_path / "texts", scale=1e-4))
    lines = [line for line in printed.splitlines() if line.startswith("| llama3, hi, first |")]
    head = next(line for line in printed.splitlines() if line.startswith("| tokenizer"))
    cells = dict(zip(head.split(" | "), lines[0].split(" | "), strict=True))
    assert {"fastokens": "**1.19**", "tokenizers": "51.3", "gigatoken": "**0.96** \\*"} == {
        name: cells[name] for name in ("fastokens", "tokenizers", "gigatoken")
    }
    assert ("21", "–", "**1.50** |") == (cells["MB/s"], cells["kitoken"], lines[0].split(" | ")[-1])
    assert 3 * 4 * 2 == sum(printed.count(f"\n| {name}, ") for name in every.TOKENIZERS)
    assert "kitoken: not installed (llama3, llama4, qwen25)." in printed


def test_programs_accept_what_each_section_gives_them(
    every, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the words of their commands: nothing is measured."""
    given: list[str] = []

    def run(program: str, *options: str) -> str:
        own = programs.load(f"benchmarks/{program}")
        parser = own.argparse.ArgumentParser
        parse = parser.parse_args

        def accept(*words: Any) -> None:
            parse(*words)
            raise InterruptedError

        with monkeypatch.context() as patch:
            patch.setattr("sys.argv", [program, *options])
            patch.setattr(parser, "parse_args", accept)
            with pytest.raises(InterruptedError):
                own.main()
        given.append(program)
        row = {"name": "vocabshift", "MB/s": 1.0, "CPU ratio": 1.0, "same ids": True}
        return json.dumps({"tables": [{"rows": [row], "missing": {}}] * 8})

    def vocabshift(*words: str) -> None:
        build_parser().parse_args(words)
        given.append(words[0])
        Path(words[-1]).touch()

    monkeypatch.setattr(every, "run", run)
    monkeypatch.setattr(every, "vocabshift", vocabshift)
    monkeypatch.setattr(every, "by_phase", lambda *_, **__: "")
    texts = tmp_path / "texts"
    inputs = every.Inputs(data, texts, scale=1e-4, model="model")
    (inputs.tokenizers / "llama3").mkdir(parents=True)
    for gb in (1, 10):
        (texts / f"syn{gb}.txt").touch()
    for _, section in every.SECTIONS.values():
        before = len(given)
        section(inputs)
        assert len(given) > before


def test_a_large_text_is_timed_phase_by_phase(every, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    lines = (f"the {number} of the sea and the land\n" for number in range(200))
    text.write_text("".join(lines), encoding="utf-8")
    command, _, head, _, row = every.by_phase(text, vocab_size=400).splitlines()
    assert command.startswith("`vocabshift train --recipe ist --vocab-size 400 ")
    names = [cell.strip() for cell in head.strip("|").split("|")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    own = dict(zip(names, cells, strict=True))
    assert ["count, s", "stage 1, s", "encode, s", "stage 2, s"] == names[:4]
    assert sum(map(float, cells[:4])) <= float(own["in all, s"]) + 0.2
    assert float(own["peak MB"]) > 10 and "0" == own["words left out"]
    assert [text] == list(tmp_path.iterdir())


def test_what_is_kept_is_not_run_again_and_is_written(
    every, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, results = tmp_path / "out", tmp_path / "RESULTS.md"
    results.write_text("before\n<!-- all -->\nold\n<!-- /all -->\nafter\n", encoding="utf-8")
    ran: list[str] = []

    def section(name: str) -> Any:
        load = {"train": "load 1.2", "load": "load 0.8"}[name]
        machine = re.sub(r"load [\d.]+", load, every.measure.machine())
        return lambda *_: ran.append(name) or f"### Table of {name}\n\n{machine}\n"

    sections = {name: (name.title(), section(name)) for name in ("train", "load")}
    monkeypatch.setattr(every, "SECTIONS", sections)
    monkeypatch.setattr(every, "RESULTS", results)
    for names in (["load"], ["train", "load"]):
        every.measure_all(names, every.Inputs(data, out / "texts"), out)
    assert ["load", "train"] == ran
    monkeypatch.setattr("sys.argv", ["all.py", "--out", str(out), "--write"])
    every.main()
    text = results.read_text(encoding="utf-8")
    head, above, rest = text.split("\n\n", 2)
    assert "before\n<!-- all -->" == head and rest.startswith("### Train\n\n#### Table of")
    assert above.endswith("; load average as tables were done: 0.8 to 1.2.")
    assert 1 == text.count(" CPUs, ")
    assert text.endswith("<!-- /all -->\nafter\n") and "old" not in text
    assert 2 == text.count("Commit ")


def test_scoring_without_a_model_is_an_error(
    every, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    out = tmp_path / "out"
    monkeypatch.setattr("sys.argv", ["all.py", "--data", str(data), "--out", str(out)])
    with pytest.raises(SystemExit):
        every.main()
    assert "give --model" in capsys.readouterr().err and not out.exists()
