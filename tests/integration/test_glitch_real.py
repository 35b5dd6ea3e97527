"""Glitch tokens of SmolLM2: a reference is found, and the model confirms the suspicion."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from vocabshift.evaluation.glitch.find import find_glitch_tokens
from vocabshift.evaluation.glitch.summary import summary, token_rows

pytestmark = [pytest.mark.real, pytest.mark.slow]

NEVER_READ = {
    "PlaneProtection",
    "ManagementPlaneProtection",
    "ĠInstancePreprocess",
    "Ġtransistorsum",
}


def test_the_model_cannot_say_what_it_never_read(smollm2: Path) -> None:
    """Tied, without dummies or padding: special tokens that it never read are the reference."""
    report = find_glitch_tokens(smollm2, n_verify=2)
    rows = token_rows(report)
    facts = summary(report, rows)
    assert "cosine" == facts["indicator"]
    assert ("one row", [5, *range(7, 17)]) == tuple(facts["reference"][k] for k in ("name", "ids"))
    ordinary = [row for row in rows if row["class"] == "ordinary"]
    assert NEVER_READ == {row["token"] for row in ordinary if row["is_suspect"]}
    asked = [row for row in ordinary if row["verdict"]]
    assert 2 == len(asked)
    assert {"strong_verified"} == {row["verdict"] for row in asked}
    assert any("copies of one row" in note for note in facts["notes"])
