"""The figures that `make bench` measures are those that the README states."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import programs
from vocabshift.demo import story


def test_the_readme_states_the_five_figures() -> None:
    """Each in a row of its own, beside the same thing; new ones take their places."""
    bench = programs.load("benchmarks/bench.py")
    readme = (programs.ROOT / "README.md").read_text(encoding="utf-8")
    stated = bench.figures_of(readme)
    assert [*bench.FIGURES] == [*stated]
    assert 5 == len(stated)
    for what, beside in bench.FIGURES.items():
        assert f"| {what} | {beside} |" in readme
    assert readme == bench.write(readme, stated)
    again = bench.write(readme, {"train BPE": 123.4})
    assert stated | {"train BPE": 123.4} == bench.figures_of(again)


def test_each_figure_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All contestants give one result. Here they run in one process, so that the test is quick."""
    bench = programs.load("benchmarks/bench.py")

    class Pipe:
        def send(self, run: Any) -> None:
            self.run = run

    def run_once(work: Any, path: Path) -> Any:
        pipe = Pipe()
        bench.measure._child(work, path, pipe)
        return pipe.run

    monkeypatch.setattr(bench.measure, "run_once", run_once)
    monkeypatch.setenv("RAYON_NUM_THREADS", os.environ.get("RAYON_NUM_THREADS", ""))
    text = tmp_path / "text.txt"
    lines = [line for own in story.beginnings(4).values() for line in own]
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, _ = bench.measured(text, 600, tmp_path, runs=1)
    assert [*bench.FIGURES] == [*found]
    assert all(times > 0 for times in found.values())
