"""What normalization changes: words and characters by language."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace


def test_counts_of_what_changes(program) -> None:
    measure = program("normalization/measure.py")
    lines = ["गंगा गंगा जल", "अंत"]
    found = measure.changed(lines, measure.normalizer("fifth-case", "hi"))
    assert {"words": 4, "words_changed": 3, "characters": 13} == {
        name: found[name] for name in ("words", "words_changed", "characters")
    }
    # One character becomes two: an exchange and an insertion each.
    assert 6 == found["characters_changed"]
    assert 3 * 3 == found["bytes_after"] - found["bytes"]


def test_languages_get_their_own_letters_and_kashmiri_keeps_its_vowels(program) -> None:
    normalizer = program("normalization/measure.py").normalizer
    rule = "arabic-letters:LANGUAGE+arabic-marks"
    assert ["کیب", "ڪيب", "کیَب", "كيَب"] == [
        normalizer(rule, "ur")("كيَب"),
        normalizer(rule, "sd_Arab")("ڪیَب"),
        normalizer(rule, "ks_Arab")("كيَب"),
        normalizer("arabic-letters:LANGUAGE", "hi")("كيَب"),
    ]


def test_from_text_to_tables(program, tmp_path: Path, monkeypatch) -> None:
    for folder in ("train", "text"):
        (tmp_path / folder).mkdir()
        for name, line in (("hi", "गंगा में जल है"), ("ur", "كتاب ہے"), ("en", "not Indian")):
            (tmp_path / folder / f"{name}.txt").write_text(f"{line}\n" * 3, encoding="utf-8")
    words = ["--train", str(tmp_path / "train"), "--text", str(tmp_path / "text"), "--kb", "1"]
    argv = ["measure.py", str(tmp_path / "out"), *words, "--vocab-size", "280"]
    monkeypatch.setattr(sys, "argv", argv)
    program("normalization/measure.py").main()
    file = tmp_path / "out" / "results.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    made = [row for row in rows if row["what"] == "made"]
    assert [{"what", "texts_sha256", "tokenizers_sha256"}] == [row.keys() for row in made]
    assert {"hi", "ur"} == {row["language"] for row in rows if row not in made}
    tables = program("normalization/tables.py").tables(rows)
    assert "| ur, train | 0 | 0 | 0 | 0 | 50.00 |" in tables["changed-arabic"]
    assert "| hi | " in tables["changed-parallel"]
    assert "25.00" in tables["changed-parallel"]  # of the words the fifth case changes one in four


def test_lines_are_compared_with_the_indicnlp_library(program, tmp_path: Path, monkeypatch) -> None:
    """A library that makes | a danda: as ours after a letter, unlike ours before any."""
    library = SimpleNamespace(
        is_language_supported=lambda language: language in {"hi", "ur"},
        get_normalizer=lambda _: SimpleNamespace(normalize=lambda line: line.replace("|", "।")),
    )
    module = ModuleType("indicnlp.normalize.indic_normalize")
    module.IndicNormalizerFactory = lambda: library
    for name in ("indicnlp", "indicnlp.normalize"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("hi", "hin", "ur", "en"):
        (tmp_path / f"{name}.txt").write_text("जल है|\n\n| जल है\nगंगा\nजल\n", encoding="utf-8")
    out = tmp_path / "rows.jsonl"
    monkeypatch.setattr(sys, "argv", ["beside_indicnlp.py", str(tmp_path), "-o", str(out)])
    program("normalization/beside_indicnlp.py").main()
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [("hi", 4, 3, 3, 2), ("hin", 4, 3, 3, 2)] == [
        tuple(row[key] for key in ("language", "lines", "equal", "changed", "changed_equal"))
        for row in rows
    ]
    table = program("normalization/tables.py")._indicnlp(rows)
    assert "| hi | 4 | 75.00 | 3 | 66.67 |" in table
