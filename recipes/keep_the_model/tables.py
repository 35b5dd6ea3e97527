"""The tables of this recipe's README, made of its results (`recipes/data/record.py`).

    python recipes/keep_the_model/tables.py results.jsonl

prints them.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1] / name) for name in ("keep_the_model", "data", "papers")]
import beside
from names import TOKENIZERS, arm_of, plan
from record import Row, markdown, read

NAMES = {"hi": "Hindi", "te": "Telugu", "en": "English", "code": "code", "de": "German"}
SOME, ALL = "some", "all"


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name; of the new language that most rows are of, and `second` of the others."""
    news = Counter(row["new"] for row in rows).most_common()
    first = news[0][0] if news else ""
    own = [row for row in rows if row["new"] == first]
    others = [row for row in rows if row["new"] != first]
    made = {
        "starts": _starts(own),
        "spans": _spans(own),
        "before": _bits(own, SOME, lambda row: row["n_bytes"] == 0),
        "screened": _bits(own, SOME, lambda row: row["n_bytes"] > 0),
        "finals": _bits(own, ALL, lambda _: True),
        "differences": _differences(own, "bytes"),
        "seconds": _differences(own, "seconds"),
        "curves": _curves(own),
        "second": _bits(others, _best(others), lambda _: True),
        "continuations": _continuations(own),
        "speed": _speed(own),
        "tasks": _tasks(own),
        "ist-11": _replaced(own),
        "commands": _commands(own),
    }
    return {
        name: table if table.count("\n") > 1 else "Not run yet." for name, table in made.items()
    }


def _best(rows: list[Row]) -> str:
    """All lines, where any arm was measured on them."""
    return ALL if _of(rows, "bits", on=ALL) else SOME


def _of(rows: Iterable[Row], what: str, **facts: Any) -> list[Row]:
    wanted = {"what": what, **facts}
    found = [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    order = [*plan()["before"], *plan()["screened"]]
    place = {name: number for number, name in enumerate(order)}
    return sorted(
        found, key=lambda row: (row["n_bytes"], place.get(row["arm"], len(place)), row["arm"])
    )


def _languages(rows: Iterable[Row]) -> list[str]:
    found = {row["language"] for row in rows}
    return [name for name in NAMES if name in found] + sorted(found - NAMES.keys())


def _called(row: Row) -> str:
    """`swap`, `distill`, `all`, matching; and the text, where it is no screening."""
    arm = arm_of(row["arm"])
    words = [arm.tokenizer if arm.init or arm.trained != "none" else "the old model"]
    words += [arm.init] if arm.init else []
    if arm.trained != "none":
        words.append(f"{arm.trained} on {row['n_bytes'] / 1000:,.0f} kB")
    return ", ".join([*words, *([arm.objective.replace("-", " at ")] if arm.is_matching else [])])


def _bits(rows: list[Row], on: str, chosen: Callable[[Row], bool]) -> str:
    found = [row for row in _of(rows, "bits", on=on) if chosen(row)]
    languages = _languages(found)
    values = {(row["arm"], row["n_bytes"], row["language"]): row for row in found}
    differences = {
        (row["arm"], row["n_bytes"], row["language"]): row
        for row in _of(rows, "difference", on=on, against="base", at_equal="bytes")
    }
    costs = {(row["arm"], row["n_bytes"]): row for row in _of(rows, "cost", on=on)}
    cells = []
    for key in dict.fromkeys((row["arm"], row["n_bytes"]) for row in found):
        line = [_called({"arm": key[0], "n_bytes": key[1]})]
        for language in languages:
            row, change = values.get((*key, language)), differences.get((*key, language))
            if row is None:
                line.append("–")
            elif change is None:
                line.append(f"{row['value']:.3f}")
            else:
                half = (change["high"] - change["low"]) / 2
                text = f"{change['value']:+.3f} ±{half:.3f}"
                line.append(f"**{text}**" if change["is_clear"] else text)
        cost = costs[key]
        parts = ("making", "teaching", "training")
        seconds = sum(cost[f"{part}_cpu_seconds"] for part in parts)
        sizes = (values[*key, language]["bytes_per_token"] for language in languages)
        line.append(" / ".join(f"{size:.1f}" for size in sizes))
        precision = cost.get("precision", "float32")
        if cost.get("device", "cpu") != "cpu":
            precision += ", GPU"
        line += [str(cost["seeds"]), precision, f"{seconds / 60:.1f}"]
        cells.append(line)
    heads = [NAMES.get(name, name) for name in languages]
    return markdown(("arm", *heads, "bytes per token", "seeds", "precision", "CPU minutes"), cells)


def _starts(rows: list[Row]) -> str:
    found = _of(rows, "start")
    languages = _languages(found)
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in found:
        cell = lines.setdefault((_called(row), f"`{row['start']}`".replace("|", "\\|")), {})
        cell[row["language"]] = f"{row['value']:.3f}"
    heads = [NAMES.get(name, name) for name in languages]
    cells = [(*pair, *(own[language] for language in languages)) for pair, own in lines.items()]
    return markdown(("model", "begins with", *heads), cells, left=2)


def _spans(rows: list[Row]) -> str:
    found = _of(rows, "spans")
    languages = _languages(found)
    lines: dict[str, dict[str, str]] = {}
    for row in found:
        cell = f"{row['copied']:.0%} / {row['same_span']:.0%}"
        lines.setdefault(arm_of(row["arm"]).tokenizer, {})[row["language"]] = cell
    heads = [NAMES.get(name, name) for name in languages]
    cells = [
        (name, *(lines[name][language] for language in languages))
        for name in TOKENIZERS
        if name in lines
    ]
    return markdown(("tokenizer", *heads), cells)


def _differences(rows: list[Row], at_equal: str) -> str:
    found = [
        row
        for row in _of(rows, "difference", on=ALL, at_equal=at_equal)
        if row["against"] != "base"
        and (at_equal == "seconds" or row["n_bytes"] in (0, row["against_bytes"]))
    ]
    languages = _languages(found)
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in found:
        name = _called(row)
        other = _called({"arm": row["against"], "n_bytes": row["against_bytes"]})
        text = f"{row['value']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
        lines.setdefault((name, other), {})[row["language"]] = (
            f"**{text}**" if row["is_clear"] else text
        )
    heads = [NAMES.get(name, name) for name in languages]
    return markdown(
        ("arm", "less", *heads),
        [(*pair, *(own.get(name, "–") for name in languages)) for pair, own in lines.items()],
        left=2,
    )


def _curves(rows: list[Row]) -> str:
    """Along the longest text that any arm read: after its first eighth, and each quarter."""
    found = _of(rows, "curve")
    most = max((row["n_bytes"] for row in found), default=0)
    lines: dict[tuple[str, str], dict[int, str]] = {}
    for row in found:
        if row["n_bytes"] != most:
            continue
        eighth = round(8 * row["at_bytes"] / most)
        if eighth % 2 == 0 or eighth == 1:
            language = NAMES.get(row["language"], row["language"])
            lines.setdefault((_called(row), language), {})[eighth] = f"{row['value']:.3f}"
    eighths = sorted({each for own in lines.values() for each in own})
    heads = [f"{eighth * most / 8e6:.3g} MB" for eighth in eighths]
    cells = [(*pair, *(own.get(at, "–") for at in eighths)) for pair, own in lines.items()]
    return markdown(("arm", "language", *heads), cells, left=2)


def _continuations(rows: list[Row]) -> str:
    found = _of(rows, "continuation", on=ALL)
    cells = [
        (
            NAMES.get(row["language"], row["language"]),
            _called(row),
            f"{row['chrf']:.3f} [{row['chrf_low']:.3f}, {row['chrf_high']:.3f}]",
            *(f"{row['right_word']:.1%}", f"{row['repetition']:.1%}", str(row["lines"])),
        )
        for language in _languages(found)
        for row in found
        if row["language"] == language
    ]
    header = ("language", "arm", "chrF", "right next word", "repeated runs of words", "lines")
    return markdown(header, cells, left=2)


def _tasks(rows: list[Row]) -> str:
    cells = [
        (
            f"`{row['task']}`",
            _called(row),
            row["failure"]
            if "failure" in row
            else f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]",
            str(row.get("questions", "–")),
        )
        for row in _of(rows, "task", on=ALL)
    ]
    return markdown(("task", "arm", "accuracy", "questions"), sorted(cells), left=2)


def _replaced(rows: list[Row]) -> str:
    """The paper's tasks before and after, and ours of every swap; nothing without ours."""
    entry = beside.papers()["ist"]["tables"]["11"]
    before, after = beside.figures(entry).values()
    cells = [
        (task, "paper", f"{old:.2f}", f"{after[task]:.2f}", f"{after[task] - old:+.2f}")
        for task, old in before.items()
    ]
    tasks = [row for row in _of(rows, "task", on=ALL) if "failure" not in row]
    base = {row["task"]: row for row in tasks if row["arm"] == "base"}
    swaps = [row for row in tasks if arm_of(row["arm"]).tokenizer == "swap" and row["task"] in base]
    for row in sorted(swaps, key=lambda row: str(row["task"])):
        both = [base[row["task"]], row]
        values = (f"{own['value']:.3f} [{own['low']:.3f}, {own['high']:.3f}]" for own in both)
        change = f"{row['value'] - both[0]['value']:+.3f}"
        cells.append((f"`{row['task']}`", f"ours: {_called(row)}", *values, change))
    if not swaps:
        return ""
    table = markdown(("task", "", "before", "tokenizer replaced", "difference"), cells, left=2)
    return f"### {beside.heading('11', entry)}\n\n{table}\n\n*{beside.compared(entry)}*"


def _speed(rows: list[Row]) -> str:
    """On a CPU, the fastest arm of each tokenizer: what ran beside it is all that differs."""
    seen: dict[tuple[str, str], Row] = {}
    for row in _of(rows, "continuation", on=ALL):
        if row.get("device", "cpu") != "cpu":
            continue
        of = (row["language"], arm_of(row["arm"]).tokenizer)
        seen[of] = max(seen.get(of, row), row, key=lambda each: each["tokens_per_second"])
    sizes = {
        (row["language"], arm_of(row["arm"]).tokenizer): row["bytes_per_token"]
        for row in _of(rows, "bits", on=ALL)
    }
    cells = [
        (
            *(NAMES.get(language, language), tokenizer, f"{sizes[language, tokenizer]:.2f}"),
            *(f"{row['tokens_per_second']:.1f}", f"{row['bytes_per_second']:.1f}"),
        )
        for (language, tokenizer), row in sorted(seen.items())
    ]
    header = ("language", "tokenizer", "bytes per token", "writes tokens/s", "writes bytes/s")
    return markdown(header, cells, left=2)


def _commands(rows: list[Row]) -> str:
    lines = [
        f"{_called(row)}: {'; '.join(row['commands'])}"
        for row in _of(rows, "cost", on=ALL)
        if row["commands"]
    ]
    return "\n".join(["```", *lines, "```"])


if __name__ == "__main__":
    for table in tables(read(Path(sys.argv[1]))).values():
        print(table, end="\n\n")
