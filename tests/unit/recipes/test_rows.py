"""Rows of `results.jsonl`: which tokenizer is which row of a table, and how it was made."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

import vocabshift as vs

VALUES = {"one": {"hi": 1.0, "te": 2.0}, "two": {"hi": 3.0, "te": 1 / 3}}


def test_a_row_takes_its_languages_from_several_tokenizers(program) -> None:
    rows = program("data/rows.py").rows_of("t", ["Alone=one:hi", "Alone=two:te", "All=two"], VALUES)
    assert [
        {"table": "t", "row": "Alone", "values": {"hi": 1.0, "te": 1 / 3}},
        {"table": "t", "row": "All", "values": {"hi": 3.0, "te": 1 / 3}},
    ] == rows
    with pytest.raises(KeyError, match="three"):
        program("data/rows.py").rows_of("t", ["x=three"], VALUES)


def test_numbers_have_six_digits_and_keys_an_order(program) -> None:
    shown = program("data/rows.py").shown
    assert '{"a": {"b": 0.333333}, "n": 1234567, "s": "é"}' == shown(
        {"s": "é", "n": 1_234_567, "a": {"b": 1 / 3}}
    )


def test_rows_are_written_with_command_and_time(program, tmp_path: Path, monkeypatch) -> None:
    measured, out = tmp_path / "measured.jsonl", tmp_path / "results.jsonl"
    lines = [
        {"subject": subject, "language": language, "metric": metric, "value": value}
        | {"text_sha256": f"of {language}", "tokenizer_sha256": f"of {subject}"}
        for subject, own in VALUES.items()
        for language, value in own.items()
        for metric in ("fertility", "other")
    ]
    measured.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for name, seconds in (("one", 2.0), ("two", 3.4)):
        phases = {"phases": [{"seconds": seconds}, {"seconds": 1.0}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(phases), encoding="utf-8")
    words = ["rows.py", measured, "-o", out, "--trained", tmp_path, "--table", "t", "A=one"]
    results = tmp_path / "kept.jsonl"
    of_another = json.dumps({"row": "u", "size": "of another script", "table": "made"})
    results.write_text(f'{of_another}\n{{"row": "old", "table": "t"}}\n', encoding="utf-8")
    words += ["B=two:te", "--command", "run.sh", "--size", "small", "--results", results]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    program("data/rows.py").main()
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [("t", "A"), ("t", "B"), ("made", "t")] == [(row["table"], row["row"]) for row in rows]
    assert {"te": 0.333333} == rows[1]["values"]
    assert ("run.sh", "small", 7.0) == tuple(rows[2][k] for k in ("command", "size", "seconds"))
    assert rows[2]["machine"]
    written = out.read_text(encoding="utf-8")
    assert f"{of_another}\n{written}" == results.read_text(encoding="utf-8")
    assert digest("hi of hi", "te of te") == rows[2]["texts_sha256"]
    assert digest("one of one", "two of two") == rows[2]["tokenizers_sha256"]

    made = ["--made", "--trained", tmp_path, "--command", "run.sh", "--size", "small"]
    monkeypatch.setattr(sys, "argv", ["rows.py", *map(str, [measured, "-o", out, *made])])
    program("data/rows.py").main()
    how = {key: rows[2][key] for key in ("command", "machine", "seconds", "size", "table")}
    texts, tokenizers = (
        {name: f"of {name}" for name in names} for names in (VALUES["one"], VALUES)
    )
    how |= {"row": "all", "texts": texts, "tokenizers": tokenizers}
    assert how == json.loads(out.read_text(encoding="utf-8"))
    monkeypatch.setattr(sys, "argv", ["rows.py", *map(str, [measured, "-o", out, *made[1:]])])
    with pytest.raises(SystemExit):
        program("data/rows.py").main()


def digest(*lines: str) -> str:
    """As `sort -u | sha256sum` gives it."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def test_a_table_names_its_texts_in_any_order(program) -> None:
    """Those that its rows are of, each once; a table without checksums names none."""
    module = program("data/rows.py")
    rows = [
        {"language": language, "text_sha256": text, "subject": subject}
        for subject in ("one", "two")
        for language, text in (("hi", "b"), ("en", "a"), ("en+hi", "c"))
    ]
    found = module.sources(rows)
    assert {"texts_sha256": digest("en a", "en+hi c", "hi b")} == found
    assert found == module.sources(rows[::-1]) == module.sources(rows[:3])
    assert found != module.sources([*rows[1:3], rows[0] | {"text_sha256": "B"}])
    own = module.used(["A=one:en", "A=two:hi", "B=one:en"], rows)
    assert {"texts_sha256": digest("en a", "hi b")} == module.sources(own)
    assert found == module.sources(module.used(["B=two"], rows))
    assert {} == module.sources([{"language": "hi", "subject": "one"}])
    made = module.made("t", "run.sh", "small", None)
    assert {"table", "row", "command", "size", "machine"} == made.keys()
    assert made | found == module.made("t", "run.sh", "small", None, rows)


def test_loaded_tokenizers_and_lines_have_the_checksums_of_evaluate(program) -> None:
    module = program("data/rows.py")
    texts = {"en": ["one two", "three"], "hi": ["एक दो"]}
    corpus = vs.Corpus.from_texts(texts)
    tokenizer = vs.BpeTrainer(vocab_size=300).train(corpus)
    rows = vs.evaluate([tokenizer], corpus, metrics=["fertility"]).to_dicts()
    [name] = {row["subject"] for row in rows}
    by_language = [row for row in rows if row["language"] in texts]
    assert module.sources(by_language) == module.sources_of(texts, {name: tokenizer})
    assert {"texts_sha256"} == module.sources_of(texts, {}).keys()
