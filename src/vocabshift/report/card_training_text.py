"""The part of a tokenizer's card about its training text: by licence, source and language.

Owns the tables and their order. Knows nothing of figures or of the rest of the card.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vocabshift.report import escape
from vocabshift.report.card_facts import Source


def training_text(sources: Sequence[Source]) -> str:
    """Text by class of licence, by source, and by language."""
    if not sources:
        return ""
    total = sum(source.n_bytes for source in sources)
    classes = list(dict.fromkeys(source.licence_class for source in _by_size(sources)))

    def megabytes(some: Iterable[Source]) -> str:
        return f"{sum(source.n_bytes for source in some) / 1e6:,.1f}"

    by_class = []
    for kind in classes:
        of_kind = [source for source in sources if source.licence_class == kind]
        share = sum(source.n_bytes for source in of_kind) / total if total else 0.0
        n_sources = len({source.source for source in of_kind})
        by_class.append([kind, str(n_sources), megabytes(of_kind), f"{share:.1%}"])
    names = dict.fromkeys((s.source, s.licence, s.licence_class) for s in _by_size(sources))
    by_source = []
    for name in names:
        of_name = [s for s in sources if (s.source, s.licence, s.licence_class) == name]
        by_source.append([*name, str(len({s.language for s in of_name})), megabytes(of_name)])
    by_language = [
        [
            language,
            *(
                megabytes(s for s in sources if (s.language, s.licence_class) == (language, kind))
                for kind in classes
            ),
        ]
        for language in sorted({source.language for source in sources})
    ]
    return "\n\n".join(
        [
            "## Training text",
            plain_table(["class of licence", "sources", "MB", "share"], by_class, 1),
            plain_table(["source", "licence", "class", "languages", "MB"], by_source, 3),
            plain_table(["language", *(f"{kind}, MB" for kind in classes)], by_language, 1),
        ]
    )


def _by_size(sources: Sequence[Source]) -> list[Source]:
    """The largest sources first, all parts of one together; equal ones by name."""
    size: dict[tuple[str, str], int] = {}
    for s in sources:
        for key in (("class", s.licence_class), ("source", s.source)):
            size[key] = size.get(key, 0) + s.n_bytes
    return sorted(
        sources,
        key=lambda s: (
            *(-size["class", s.licence_class], s.licence_class),
            *(-size["source", s.source], s.source),
        ),
    )


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]], n_words: int) -> str:
    """A Markdown table; its first `n_words` columns are words, the others numbers."""
    rule = ["---" if i < n_words else "---:" for i in range(len(head))]
    lines = [map(escape.markdown, head), rule, *(map(escape.markdown, row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
