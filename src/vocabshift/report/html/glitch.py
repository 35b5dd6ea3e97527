"""The page of a glitch report: scatter plots with every token under the pointer, and tables.

Owns which points are drawn (all suspect ones up to a number, and an even sample of the others) and
which sections there are. Takes the plain values that `--json` has; knows nothing of models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vocabshift.report.html.page import Section, page_html
from vocabshift.report.html.svg_charts import Point, scatter
from vocabshift.report.tokenized_line import plain_html, visible_html

Row = Mapping[str, Any]

_MOST_SUSPECT, _MOST_OTHERS = 3000, 4000
_MOST_LISTED = 300
_SERIES = {"ordinary": 0, "superword": 2, "atomic": 5, "byte_piece": 3, "partial_utf8": 6}
_OTHER_SERIES, _SUSPECT_SERIES = 7, 4
_LEGEND = {
    "suspect": _SUSPECT_SERIES,
    **{name.replace("_", " "): number for name, number in _SERIES.items()},
    "other classes": _OTHER_SERIES,
}


def glitch_html(summary: Row, tokens: Sequence[Row]) -> str:
    """The page: one file that needs no network; same input, same bytes."""
    indicator = str(summary["indicator"])
    drawn = _drawn(tokens)
    key = _legend()
    sections = [
        Section(
            "summary", "At a glance", _cards(summary), f"Threshold: {summary['threshold']['why']}."
        ),
        Section(
            "ids",
            "By id",
            key + _chart(drawn, lambda row: row["id"], "id", indicator),
            _sample_note(tokens, drawn),
        ),
    ]
    if tokens and tokens[0]["count"] is not None:
        body = key + _chart(
            drawn, lambda row: math.log10(row["count"] + 1), "log10(count + 1)", indicator
        )
        sections.append(Section("counts", "By how often the corpus has it", body, link="By count"))
    if summary["drift"] is not None:
        points = [row for row in drawn if row["drift"] is not None]
        if points:
            body = key + _chart(
                points,
                lambda row: row["drift"],
                "distance from the initial row",
                "change of norm",
                y="norm_change",
            )
            lead = f"Rows were matched: {summary['drift']['how']}."
            sections.append(Section("drift", "Since the initial model", body, lead, "Drift"))
    if summary["curve"]:
        sections.append(_curve(summary["curve"]))
    heads = ("do", "class", "tokens", "why", "for example")
    groups = [
        (g["action"], g["class"], g["tokens"], g["why"], "  ".join(map(repr, g["examples"])))
        for g in summary["groups"]
    ]
    sections += [
        Section("groups", "What to do", _table(heads, groups)),
        Section("classes", "Classes", _parts(summary["classes"], "class")),
        Section("scripts", "Scripts", _parts(summary["scripts"], "script")),
        Section("tokens", "The most suspect tokens", _listed(tokens), link="Tokens"),
    ]
    facts = f"{summary['rows']:,} rows · {'tied' if summary['tied'] else 'untied'} · {indicator}"
    return page_html(f"Glitch tokens of {summary['model']}", facts, sections)


def _drawn(tokens: Sequence[Row]) -> list[Row]:
    """Suspects, the worst first, and every nth of the others."""
    known = [row for row in tokens if row["indicator"] is not None]
    suspect = [row for row in known if row["is_suspect"]][:_MOST_SUSPECT]
    others = sorted((row for row in known if not row["is_suspect"]), key=lambda row: row["id"])
    step = max(1, -(-len(others) // _MOST_OTHERS))
    return [*others[::step], *suspect]


def _sample_note(tokens: Sequence[Row], drawn: Sequence[Row]) -> str:
    if len(drawn) >= len(tokens):
        return "Every token; the pointer shows which."
    return f"{len(drawn):,} of {len(tokens):,} tokens: the most suspect, and every nth other."


def _chart(
    rows: Sequence[Row],
    x_of: Callable[[Row], float],
    x_name: str,
    y_name: str,
    *,
    y: str = "indicator",
) -> str:
    points = [
        Point(x_of(row), row[y], _series(row), hint=_hint(row))
        for row in rows
        if row[y] is not None
    ]
    if not points:
        return "<p>There is nothing to draw.</p>"
    return f'<div class="scroll wide">{scatter(points, x_name, y_name)}</div>'


def _series(row: Row) -> int:
    return _SUSPECT_SERIES if row["is_suspect"] else _SERIES.get(row["class"], _OTHER_SERIES)


def _hint(row: Row) -> str:
    parts = [_name(row), f"id {row['id']}", row["class"], f"z {row['z']:.2f}"]
    if row["count"] is not None:
        parts.append(f"count {row['count']:,}")
    return ", ".join(parts)


def _name(row: Row) -> str:
    """A token as text where it is text, else as the vocabulary spells it."""
    return repr(row["token"] if row["text"] is None else row["text"])


def _legend() -> str:
    keys = "".join(
        '<span class="key"><svg viewBox="0 0 10 10" aria-hidden="true"><circle '
        f'class="b{number}" cx="5" cy="5" r="5"/></svg>{plain_html(name)}</span>'
        for name, number in _LEGEND.items()
    )
    return f'<p class="legend">{keys}</p>'


def _cards(summary: Row) -> str:
    reference = summary["reference"]
    n, suspect = summary["n_judged"], summary["n_suspect"]
    facts = [
        ("suspect tokens", f"{suspect:,}", f"of {n:,} that text yields"),
        ("threshold", f"{summary['threshold']['value']:.4g}", f"of {summary['indicator']}"),
        ("mean ± deviation", f"{_number(summary['mean'])} ± {_number(summary['std'])}", "of these"),
        (
            "reference",
            reference["name"] if reference else "none",
            reference["why"] if reference else "nothing is known to be unused",
        ),
    ]
    return (
        '<div class="cards">'
        + "".join(
            f'<div class="card"><h3>{visible_html(name)}</h3><p class="big">{visible_html(value)}'
            f'</p><p class="of">{visible_html(of)}</p></div>'
            for name, value, of in facts
        )
        + "</div>"
        + "".join(f'<p class="note">{visible_html(note)}</p>' for note in summary["notes"])
    )


def _curve(curve: Sequence[Row]) -> Section:
    lead = (
        "Of the K tokens nearest to the unused ones (IST, Figure 5), how many have one of the last "
        "10 % of the ids, and how many are superwords."
    )
    names = {"last_tenth": (0, "last 10 % of ids"), "superwords": (2, "superwords")}
    points = [
        Point(row["k"], row[key], series, hint=f"{name}: {row[key]} of {row['k']}")
        for key, (series, name) in names.items()
        for row in curve
    ]
    chart = f'<div class="scroll wide">{scatter(points, "K", "tokens")}</div>'
    heads = ("K", *(name for _, name in names.values()))
    table = _table(heads, [(row["k"], *(row[key] for key in names)) for row in curve])
    return Section("curve", "Reference curve", chart + table, lead)


def _parts(rows: Sequence[Row], key: str) -> str:
    cells = [
        (row[key].replace("_", " "), row["tokens"], row["suspect"], _number(row["mean"]))
        for row in rows
    ]
    return _table((key, "tokens", "suspect", "mean of the indicator"), cells)


def _listed(tokens: Sequence[Row]) -> str:
    wanted = [row for row in tokens if row["is_suspect"] or row["action"] or row["verdict"]]
    rows = [row for row in wanted if row["class"] != "dummy"][:_MOST_LISTED]
    facts = ("id", "class", "indicator", "z", "count", "reason")
    heads = ("token", *facts, "probability", "spelled", "do")
    cells = [
        (
            _name(row),
            str(row["id"]),
            row["class"],
            _number(row["indicator"]),
            _number(row["z"]),
            "–" if row["count"] is None else row["count"],
            row["reason"] or "–",
            _number(row["max_probability"]),
            _number(row["spelled"]),
            row["action"] or "–",
        )
        for row in rows
    ]
    return _table(heads, cells)


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return "<p>There is none.</p>"
    head = "".join(f'<th scope="col">{visible_html(name)}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row">{visible_html(_shown(row[0]))}</th>'
        + "".join(f"<td>{visible_html(_shown(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
