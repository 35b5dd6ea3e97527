"""Time and memory of training, as a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def test_phases(program, tmp_path: Path, monkeypatch, capsys) -> None:
    phases = [{"name": "stage 1", "seconds": 1.25, "peak_rss_bytes": 3_000_000_000}]
    (tmp_path / "ist.json").write_text(json.dumps({"phases": phases}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["phases.py", f"i|st={tmp_path}/ist.json"])
    program("ist/phases.py").main()
    assert "| i\\|st | stage 1 | 1.2 | 3,000 |" in capsys.readouterr().out
