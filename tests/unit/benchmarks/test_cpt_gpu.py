"""The benchmark of a training step runs, here on a CPU and with a tiny model."""

from __future__ import annotations

from typing import Any

import pytest

import programs

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return programs.load("benchmarks/cpt_gpu.py")


@pytest.mark.parametrize("what", ["step", "head"])
def test_variants_agree_and_are_measured(
    benchmark: Any, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plain loss and the chunked one are the same number; the table has a row for each."""
    work = benchmark.step_variant if what == "step" else benchmark.head_variant
    monkeypatch.setattr(benchmark, "in_process", work)  # a process of its own takes seconds
    variants = ["torch-plain", "torch-chunked", "loop-auto"]
    rows = benchmark.main(
        [
            what,
            "--device",
            "cpu",
            "--quick",
            "--variants",
            *variants,
            "--losses",
            "plain",
            "chunked",
        ]
    )
    assert len(rows) == 2 * (3 if what == "step" else 2)
    assert all(row["same_loss"] and row["tokens_per_second"] > 0 for row in rows)
    assert capsys.readouterr().out.count("\n") == len(rows) + 2


def test_an_error_is_a_row_of_the_table(benchmark: Any) -> None:
    """A variant that cannot run does not end the others."""
    row = {"variant": "torch-liger", "vocab": 1000, "error": "out of memory"}
    assert "| torch-liger | 1,000 | | | | | out of memory |" in benchmark.table([row])
