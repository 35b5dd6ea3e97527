"""`vocabshift normalize`: Table 15 of the Indic study, for any text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.evaluation.lines.texts import normalization_effect


def test_shares_by_hand() -> None:
    texts = {"hin": ["गंगा और गंगा", "पंकज"], "tam": ["தங்கம்"]}
    results = normalization_effect(texts, "fifth-case")
    assert 3 / 4 == results.value("fifth-case", "hin", "words_changed")
    assert 2 / 3 == results.value("fifth-case", "hin", "unique_words_changed")
    assert 0 == results.value("fifth-case", "tam", "words_changed")
    assert [4, 3, 1, 1] == [row.n for row in results]


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "hi.txt").write_text("गंगा नदी\n", encoding="utf-8")
    arguments = ["normalize", f"hi={tmp_path / 'hi.txt'}", "--normalizer", "nfc+fifth-case"]
    assert 0 == main([*arguments, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert "anusvara+nfd" == result["inverse"]
    assert 0.5 == result["results"][0]["value"]
    assert "Sequence" == result["component"]["type"]
    assert 0 == main(arguments)
    assert "50.00%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "message"),
    [("fifth-case:Tamil", "does not know 'Tamil'"), ("none", "nothing to measure")],
)
def test_bad_names(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hi.txt").write_text("गंगा\n", encoding="utf-8")
    assert 2 == main(["normalize", str(tmp_path / "hi.txt"), "--normalizer", name])
    assert message in capsys.readouterr().err
