"""The figures that `make bench` measures are those that the README states."""

from __future__ import annotations

import programs


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
