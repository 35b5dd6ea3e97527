"""The rows that follow from curves.py: what one language needs, with each tokenizer.

A mean is over the languages in which both methods found as many tokens as asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np

Figures = dict[str, Any]
Put = Callable[[str, str, str, Any], None]
"""Called with table, column, line and value of a cell."""
METHODS = {"continued": "ours", "naive": "regen"}
ENGLISH = ("en", "eng")
FIRST = "llama3"


def gain(row: Figures, key: str = "bytes_per_token") -> float:
    """How much higher ours is than the naive extension, percent."""
    return float(100 * (row["ours"][key] / row["regen"][key] - 1))


MEANS: dict[str, dict[str, Callable[[Figures, int], float]]] = {
    "1": {
        "gain, %": lambda row, _: gain(row),
        "won, %": lambda row, _: 100.0 * (gain(row) > 0),
        "Rényi gain, %": lambda row, _: gain(row, "renyi"),
        "Rényi won, %": lambda row, _: 100.0 * (gain(row, "renyi") > 0),
        "unreachable: continued, %": lambda row, n: 100 * row["ours"]["unreachable"] / n,
        "unreachable: naive, %": lambda row, n: 100 * row["regen"]["unreachable"] / n,
    },
    "3": {
        "unused: continued, %": lambda row, n: 100 * row["ours"]["unused_held_out"] / n,
        "unused: naive, %": lambda row, n: 100 * row["regen"]["unused_held_out"] / n,
        "won, %": lambda row, _: 100.0 * (unused(row, "ours") < unused(row, "regen")),
        "unused in training text: continued, %": (
            lambda row, n: 100 * row["ours"]["unused_train"] / n
        ),
        "unused in training text: naive, %": (
            lambda row, n: 100 * row["regen"]["unused_train"] / n
        ),
    },
}
REPAIRED = (
    "gain, %",
    "won, %",
    *list(MEANS["1"])[4:],
    *list(MEANS["3"])[:2],
    *list(MEANS["3"])[3:],
)


def unused(row: Figures, method: str) -> int:
    """Added tokens that held-out text does not have."""
    return int(row[method]["unused_held_out"])


def complete(row: Figures) -> bool:
    """Whether both methods found as many tokens as asked for."""
    return all(row[key] and row[key]["n_added"] == row["n_tokens"] for key in METHODS.values())


def of_curves(put: Put, curves: list[Figures]) -> None:
    """All that curves.py measured."""
    groups: dict[tuple[str, str], list[Figures]] = {}
    for curve in curves:
        groups.setdefault((curve["tokenizer"], curve["pre_tokenizer"]), []).append(curve)
    for (base, pre_tokenizer), own in groups.items():
        for i, n in enumerate(row["n_tokens"] for row in own[0]["rows"]):
            rows = {c["language"]: c["rows"][i] for c in own if complete(c["rows"][i])}
            if rows:
                means(put, base, pre_tokenizer, n, rows)
            if pre_tokenizer == "kept":
                by_language(put, base, n, rows)
        if pre_tokenizer == "kept":
            renyi(put, base, own)
            for curve in own:
                before = f"{curve['language']} +0"
                put("continued_bpe-17", base, before, curve["bytes_per_token"])
                ceiling = curve["ceiling_bytes_per_token"]
                put("ceilings", base, curve["language"], ceiling)
                if base == FIRST and not complete(curve["rows"][-1]):
                    ran_out(put, curve["language"], curve["rows"][-1])
        elif (base, "kept") in groups:
            repair(put, base, groups[base, "kept"], own)


def ran_out(put: Put, language: str, row: Figures) -> None:
    """What was found of the largest size, where the text has no pairs left."""
    for method, key in METHODS.items():
        put("ran-out", f"tokens: {method}", language, row[key]["n_added"])
        put("ran-out", f"bytes per token: {method}", language, row[key]["bytes_per_token"])


def means(put: Put, base: str, pre_tokenizer: str, n: int, rows: dict[str, Figures]) -> None:
    """Tables 1, 3, 6 and 7, or the first two with the repaired pre-tokenizer."""
    line, some = f"{base} +{n}", list(rows.values())
    of_table = {f"continued_bpe-{number}": own for number, own in MEANS.items()}
    if pre_tokenizer == "repaired":
        both = MEANS["3"] | MEANS["1"]
        of_table = {"repaired": {name: both[name] for name in REPAIRED}}
    for table, columns in of_table.items():
        put(table, "languages", line, len(some))
        for name, value in columns.items():
            put(table, name, line, fmean(value(row, n) for row in some))
    others = [row for label, row in rows.items() if label not in ENGLISH]
    if pre_tokenizer == "repaired" or not others:
        return
    for method, key in METHODS.items():
        distances = [row[key]["english_distance"] for row in others]
        for name, value in {
            "distance": fmean(distances),
            "largest distance": max(distances),
            "same lines, %": 100 * fmean(row[key]["english_same"] for row in others),
        }.items():
            put("continued_bpe-6", f"{name}: {method}", line, value)
        if "without_skipping" in some[0][key]:
            changes = [r[key]["without_skipping"] / r[key]["bytes_per_token"] - 1 for r in some]
            put("continued_bpe-7", f"change, %: {method}", line, 100 * fmean(changes))


def by_language(put: Put, base: str, n: int, rows: dict[str, Figures]) -> None:
    """Tables 13 to 18, two of the paper's in one."""
    for label, row in rows.items():
        line = f"{label} +{n}"
        fewer = row["ours"]["unreachable_all"] - row["regen"]["unreachable_all"]
        put("continued_bpe-13", base, line, gain(row))
        put("continued_bpe-15", base, line, fewer)
        put("continued_bpe-17", base, line, row["ours"]["bytes_per_token"])


def renyi(put: Put, base: str, curves: list[Figures]) -> None:
    """Figure 4: Rényi efficiency of both at one size, and of the naive one at one compression.

    The latter is on the line between the sizes of the naive extension, language by language.
    """
    table, names = (
        "continued_bpe-figure-4",
        ("continued", "naive", "naive, as many bytes per token"),
    )
    for key, of_what in (("renyi", "vocabulary"), ("renyi_of_used", "tokens of the text")):
        found: dict[int, list[tuple[float, ...]]] = {}
        for curve in curves:
            rows = [row for row in curve["rows"] if complete(row)]
            ours, theirs = ([row[method] for row in rows] for method in METHODS.values())
            at = [point["bytes_per_token"] for point in theirs]
            for row, own, other in zip(rows, ours, theirs, strict=True):
                if at[0] <= own["bytes_per_token"] <= at[-1]:
                    same = np.interp(own["bytes_per_token"], at, [point[key] for point in theirs])
                    values = (own[key], other[key], float(same))
                    found.setdefault(row["n_tokens"], []).append(values)
        for n, some in sorted(found.items()):
            for name, values in zip(names, zip(*some, strict=True), strict=True):
                put(table, f"{name} ({of_what})", f"{base} +{n}", fmean(values))
            put(table, "languages", f"{base} +{n}", len(some))


def row_before_last(curves: list[Figures]) -> int:
    """The size of tables by language: 16,000 of 1,000 to 32,000."""
    return len(curves[0]["rows"]) - 2


def repair(put: Put, base: str, kept: list[Figures], lifted: list[Figures]) -> None:
    """What the repaired pre-tokenizer brings; where the text ran out, its last figure counts."""
    both = [{curve["language"] for curve in curves} for curves in (kept, lifted)]
    sides = {
        side: [curve for curve in curves if all(curve["language"] in some for some in both)]
        for side, curves in (("kept", kept), ("repaired", lifted))
    }
    for side, curves in sides.items():
        for i, n in enumerate(row["n_tokens"] for row in curves[0]["rows"]):
            line, rows = f"{base} +{n}", [curve["rows"][i] for curve in curves]
            ran_out = sum(row["ours"]["n_added"] < n for row in rows)
            put("lifted", f"{side}: text runs out in", line, ran_out)
            for method, key in METHODS.items():
                mean = fmean(row[key]["bytes_per_token"] for row in rows)
                put("lifted", f"{side}: {method}", line, mean)
            if base == FIRST and row_before_last(curves) == i:
                for curve, row in zip(curves, rows, strict=True):
                    label = curve["language"]
                    for name, value in {
                        "before": curve["bytes_per_token"],
                        "ceiling": curve["ceiling_bytes_per_token"],
                        **{m: row[key]["bytes_per_token"] for m, key in METHODS.items()},
                    }.items():
                        put("lifted-by-language", f"{side}: {name}", label, value)
        for line, key in (("before", "bytes_per_token"), ("ceiling", "ceiling_bytes_per_token")):
            mean = fmean(curve[key] for curve in curves)
            put("lifted", f"{side}: continued", f"{base} {line}", mean)
