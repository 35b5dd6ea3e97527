"""What two tokenizers make of text, and what other runtimes make of one: written for people.

Owns the file that `vocabshift compare` writes, and the Markdown of `check --runtimes`.
`evaluation.compare` computes the differences between two tokenizers, and `report` draws them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import printable
from vocabshift.storage.output import check_free_file
from vocabshift.workflows.tokenizers import load_named

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vocabshift.evaluation.compare import TokenizerComparison
    from vocabshift.text.corpus import Corpus


def compare_to_file(
    tokenizer_a: str | Path,
    tokenizer_b: str | Path,
    corpus: Corpus,
    *,
    pattern: str | None = None,
    n_lines: int = 2,
    n_changes: int = 20,
    html: str | Path | None = None,
    force: bool = False,
    threads: int = 1,
) -> TokenizerComparison:
    """Load two tokenizers, compare them on text as `vocabshift.compare` does, and write a page.

    `html`: one HTML file, written whole or not at all; None writes nothing. Before anything is
    loaded: FileExistsError if it exists, unless `force`; ValueError if it is an input. `pattern`:
    for tokenizers that lack theirs. The other arguments are those of `vocabshift.compare`.
    """
    from vocabshift.evaluation.compare import compare

    sources = [tokenizer_a, tokenizer_b]
    if html is not None:
        html = check_free_file(html, force=force, inputs=[*sources, *corpus.paths])
    named = load_named(sources, pattern=pattern)
    (name_a, a), (name_b, b) = named.items()
    comparison = compare(
        a,
        b,
        corpus,
        names=(name_a, name_b),
        n_lines=n_lines,
        n_changes=n_changes,
        threads=threads,
    )
    if html is not None:
        from vocabshift.report.html.compare import write_comparison

        write_comparison(comparison, html)
    return comparison


def comparison_object(comparison: TokenizerComparison) -> dict[str, Any]:
    """A comparison as plain JSON values; the tokens of the shown lines as ids."""
    from vocabshift.evaluation.compare import to_dict

    return to_dict(comparison)


def comparison_tables(
    comparison: TokenizerComparison, *, plain: bool = False, ascii_only: bool = False
) -> Iterator[RenderableType]:
    """The terminal output of a comparison: tables, and lines with their tokens.

    Colours mark the token boundaries, or signs with `plain`; `ascii_only`: ASCII signs.
    """
    from vocabshift.report.compare_text import ASCII, UNICODE, to_rich

    marks = ASCII if ascii_only else UNICODE
    yield from to_rich(comparison, plain=plain or ascii_only, marks=marks)


def runtime_notes(verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line on each runtime that did not give our ids: its reason, or the first difference.

    `verdicts`: `runtimes` of an entry of `check_tokenizers`.
    """
    return [note for verdict in verdicts for _, note in _notes_of(verdict)]


def runtime_matrix(entries: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table, tokenizers by runtimes with their versions; then the date, and the notes.

    `entries`: the result of `check_tokenizers`. A runtime that is not installed has no column, and
    one that does not apply no note. A cell counts the texts with other ids. Tokenizers that differ
    at the same place of the same text share a note, with the ids of the first of them.
    """
    from vocabshift.evaluation.lines.subject import subject_names
    from vocabshift.report.table_formats import escape_markdown

    names = subject_names([entry["tokenizer"] for entry in entries])
    verdicts = entries[0]["runtimes"]
    installed = [each for each in verdicts if each["status"] != "not installed"]
    missing = [each["label"] for each in verdicts if each["status"] == "not installed"]
    heads = ["", *(f"{each['label']} {each['version'] or ''}".rstrip() for each in installed)]
    rows = [heads, ["---"] * len(heads)]
    notes: dict[str, tuple[str, list[str]]] = {}
    for name, entry in zip(names, entries, strict=True):
        shown = [each for each in entry["runtimes"] if each["status"] != "not installed"]
        rows.append([escape_markdown(name), *map(_cell, shown)])
        for verdict in shown:
            if verdict["status"] == "does not apply":
                continue
            for key, note in _notes_of(verdict):
                notes.setdefault(key, (note, []))[1].append(name)
    lines = [
        "".join(f"| {' | '.join(row)} |\n" for row in rows),
        f"On {datetime.now(UTC).date()}."
        + (f" Not installed: {', '.join(missing)}." if missing else "")
        + ("\n" if notes else ""),
        *(f"- {escape_markdown(', '.join(of) + ': ' + note)}" for note, of in notes.values()),
    ]
    return "\n".join(lines)


def _cell(verdict: Mapping[str, Any]) -> str:
    status = "–" if verdict["status"] == "does not apply" else verdict["status"]
    if verdict["differing"]:
        status += f", {verdict['differing']} of {verdict['texts']}"
    return f"**{status}**" if verdict["is_fault"] else status


def _notes_of(verdict: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What it has in common with others, and the whole note; nothing for a verdict of ok."""
    head = f"{verdict['label']}, {verdict['status']}"
    if (first := verdict["first"]) is not None:
        ours, theirs = (
            " ".join(f"{token_id} '{text}'" for token_id, text in first[side]) or "nothing more"
            for side in ("ours", "theirs")
        )
        place = f"{head}: {first['language']}, character {first['at']}, in {first['text']!r}"
        yield printable(place), printable(f"{place}: ours {ours}; theirs {theirs}")
    if verdict["reason"]:
        note = printable(f"{head}: {verdict['reason']}")
        yield note, note
