"""Romanized text: ISO 15919 by hand, and the spellings that stand for people's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from small_models import old_tokenizer


@pytest.mark.parametrize(
    ("native", "latin"),
    [
        ("गान्धीनगर", "gāndhīnagara"),  # the Indic study, Figure 3
        ("पङ्कजनयना", "paṅkajanayanā"),
        ("चंद्रवंशी", "caṁdravaṁśī"),
        ("ज़रूर कृपा", "zarūra kr̥pā"),
        ("कॉलेज ॐ १९", "kôlēja ॐ 19"),
        ("ভোর ৰাজৱন উৎস", "bhōra rājawana utsa"),
        ("ਪੱਕਾ ਪੰਜ", "pakkā paṁja"),
        ("தமிழ் கொடு", "tamiḻ koṭu"),
        ("తెలుగు", "telugu"),
        ("അവൻ ക്ഷ।", "avan kṣa."),
        ("abc é", "abc é"),
    ],
)
def test_iso(program, native: str, latin: str) -> None:
    assert latin == program("vendors/romanize.py").iso(native)


def test_informal_spellings(program) -> None:
    informal = program("vendors/romanize.py").informal
    line = "राम चाचा के घर छत पर शीशा है, अंबर"
    assert "ram chacha ke ghar chhat par shisha hai, ambar" == informal(line, "hi")
    doubled = "raam chaachaa ke ghar chhat par sheeshaa hai, ambar"
    assert doubled == informal(line, "hi", doubled=True)
    assert "rama" == informal("राम", "sa")  # Sanskrit speaks its final a
    assert "tamizh" == informal("தமிழ்", "ta")


def test_from_text_to_tables(program, tmp_path: Path, monkeypatch) -> None:
    for folder in ("train", "text"):
        (tmp_path / folder).mkdir()
        for name, line in (("hi", "राम घर में है"), ("en", "Ram is at home")):
            (tmp_path / folder / f"{name}.txt").write_text(f"{line}\n" * 3, encoding="utf-8")
    old_tokenizer().save_pretrained(tmp_path / "old")
    words = ["--train", str(tmp_path / "train"), "--text", str(tmp_path / "text")]
    monkeypatch.setattr(
        sys, "argv", ["measure.py", str(tmp_path / "out"), str(tmp_path / "old"), *words]
    )
    program("vendors/measure.py").main()
    file = tmp_path / "out" / "results.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert 5 + 1 + 1 == len(rows)  # four forms of Hindi, English; residue; checksums
    assert {12} == {row["words"] for row in rows if row["what"] == "fertility"}
    tables = program("vendors/tables.py").tables(rows)
    assert f"| old | {old_tokenizer().vocab_size} |" in tables["residue"]
    assert "| old | " in tables["romanized"]
    assert "| native / informal | hi |" in tables["romanized-languages"]
