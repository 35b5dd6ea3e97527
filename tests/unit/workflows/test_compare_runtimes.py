"""What runtimes make of a tokenizer, for people: notes, and a table in Markdown."""

from __future__ import annotations

import re
from typing import Any

from vocabshift.workflows.compare import runtime_matrix, runtime_notes

FIRST = {
    "language": "ta",
    "text": "a|b",
    "at": 1,
    "token": 1,
    "ours": ((7, "b"),),
    "theirs": (),
}


def entry(tokenizer: str, *statuses: str) -> dict[str, Any]:
    """A result of `check_tokenizers`, with these verdicts on the first runtimes."""
    names = ("kitoken", "morpheme", "tuetoken")
    verdicts = [
        {
            "runtime": name,
            "label": name,
            "status": status,
            "is_fault": status == "lost text",
            "version": None if status == "not installed" else "1.0",
            "reason": "no such *pattern*" if status in ("refuses", "does not apply") else "",
            "texts": 110,
            "differing": 9 * (status == "lost text"),
            "first": FIRST if status == "lost text" else None,
        }
        for name, status in zip(names, statuses, strict=False)
    ]
    return {"tokenizer": tokenizer, "runtimes": verdicts}


def test_the_matrix() -> None:
    """Faults are bold; what two tokenizers share is noted once; text is no markup."""
    text = runtime_matrix(
        [
            entry("runs/a", "ok", "refuses", "not installed"),
            entry("runs/b", "lost text", "refuses", "not installed"),
            entry("runs/c", "lost text", "does not apply", "not installed"),
        ]
    )
    head, rule, a, b, c, empty, date, blank, *notes = text.split("\n")
    assert ["|  | kitoken 1.0 | morpheme 1.0 |", "| --- | --- | --- |"] == [head, rule]
    assert "| a | ok | refuses |" == a
    assert "| b | **lost text, 9 of 110** | refuses |" == b
    assert "| c | **lost text, 9 of 110** | – |" == c
    assert "" == empty == blank
    assert re.fullmatch(r"On \d{4}-\d\d-\d\d\. Not installed: tuetoken\.", date)
    assert [
        r"- a, b: morpheme, refuses: no such \*pattern\*",
        r"- b, c: kitoken, lost text: ta, character 1, in 'a\|b': ours 7 'b'; theirs nothing more",
    ] == notes


def test_a_matrix_without_notes() -> None:
    assert re.search(r"\n\nOn [0-9-]+\.$", runtime_matrix([entry("a", "ok")]))


def test_a_note_gives_the_difference_and_the_reason() -> None:
    """Neither can move the cursor of a terminal."""
    (verdict,) = entry("a", "lost text")["runtimes"]
    verdict["reason"] = "it fell\x1b over"
    assert [
        "kitoken, lost text: ta, character 1, in 'a|b': ours 7 'b'; theirs nothing more",
        r"kitoken, lost text: it fell\x1b over",
    ] == runtime_notes([verdict])
    assert [] == runtime_notes(entry("a", "ok", "not installed")["runtimes"])
