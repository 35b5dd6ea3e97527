"""Compare two tokenizers on text and write a page: what `vocabshift compare` does.

Owns the file. `evaluation.compare` computes the differences between them, and `report` draws
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
