"""The tables of this recipe's README, made of its results (`recipes/data/record.py`).

    python recipes/adaptation_study/tables.py runs/adaptation

writes them as OUT/NAME.md, from OUT/rows.jsonl.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

sys.path += [str(Path(__file__).parents[1] / name) for name in ("data", "papers")]
import beside
from record import Row, markdown, read

LATENCY = {
    "input_tokens": ("input tokens", 1),
    "ttft_seconds": ("first token, ms", 1e3),
    "output_tokens_per_second": ("tokens/s", 1),
    "output_bytes_per_second": ("bytes/s", 1),
    "text_bytes_per_second": ("bytes of text/s", 1),
}
SWAPPED = ("nothing", "ist")
"""The old tokenizer, and what takes the place of it in IST's Table 5."""
_DRAWS, _SEED = 10_000, 7


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    [study] = [row for row in rows if row["table"] == "made"]
    own: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.get("place", 0)):
        own.setdefault(row["table"], []).append(row)
    return {
        "tokenizers": _tokenizers(own["tokenizers"], study),
        "bits-per-byte": _bits(own["bits-per-byte"], study),
        "differences": _differences(own["differences"], study),
        "sib200": _topics(own["sib200"], study),
        "glitch": _glitch(own["glitch"], study),
        "latency": _latency(own["latency"], study),
        "ist-5": _swap(own["latency"], study),
        "ist-appendix-c.1": _losses(own, study),
    }


def _titled(
    title: str, head: Sequence[str], body: Iterable[Sequence[str]], study: Row, note: str = ""
) -> str:
    """A table with its title, and below it a note and how it was made."""
    how = f"*{study['seeds']} seeds, `recipes/adaptation_study/run.sh` on {study['machine']}.*"
    return "\n\n".join(filter(None, (f"### {title}", markdown(head, body), note, how)))


def _spread(value: Sequence[float], digits: int, unit: float = 1) -> str:
    """A value, and half of its interval where there is one."""
    return " ±".join(f"{each * unit:,.{digits}f}" for each in value)


def _tokenizers(rows: list[Row], study: Row) -> str:
    head = [f"bytes per token: {name}" for name in study["texts"]]
    return _titled(
        "Tokenizers, and what the same bytes of training took",
        ["tokenizer", "rows", *head, "tokens trained on", "steps", "CPU seconds"],
        (
            [
                *(row["row"], f"{row['rows']:,}"),
                *(f"{row['values'][name]:.2f}" for name in study["texts"]),
                *(f"{row[key]:,.0f}" for key in ("n_tokens", "n_steps", "cpu_seconds")),
            ]
            for row in rows
        ),
        study,
    )


def _bits(rows: list[Row], study: Row) -> str:
    languages = study["languages"]
    best = {name: min(row["after"][name][0] for row in rows) for name in languages}
    body = []
    for row in rows:
        after = [_spread(row["after"][name], 3) for name in languages]
        after = [
            f"**{text}**" if row["after"][name][0] == best[name] else text
            for name, text in zip(languages, after, strict=True)
        ]
        body.append([row["row"], *(f"{row['before'][name]:.2f}" for name in languages), *after])
    return _titled(
        f"Bits per byte, before and after {study['bytes']:,} bytes of continued training",
        ["arm", *(f"{name}: before" for name in languages), *languages],
        body,
        study,
        f"Means over {study['seeds']} seeds; ±: half the 95 % interval over seeds and documents, "
        "which holds how documents differ from each other; the next table compares like with "
        "like. Bold: the lowest.",
    )


def _differences(rows: list[Row], study: Row) -> str:
    body = []
    for row in rows:
        cells = []
        for name in study["languages"]:
            value, low, high = row["values"][name]
            text = f"{value:+.3f} [{low:+.3f}, {high:+.3f}]"
            cells.append(f"**{text}**" if name in row["clear"] else text)
        body.append([row["row"], *cells])
    return _titled(
        "Differences in bits per byte, paired over seeds and documents",
        ["", *study["languages"]],
        body,
        study,
        "Below zero the first one is better. 95 % intervals; bold: zero is outside, and every "
        "seed by itself says the same.",
    )


def _topics(rows: list[Row], study: Row) -> str:
    return _titled(
        "SIB-200, accuracy of a linear probe",
        ["arm", *study["topics"]],
        (
            [row["row"], *(_spread(row["values"][name], 3) for name in study["topics"])]
            for row in rows
        ),
        study,
    )


def _glitch(rows: list[Row], study: Row) -> str:
    def least_most(suspect: Sequence[int]) -> str:
        return "–".join(f"{n:,}" for n in dict.fromkeys(suspect))

    least = "suspect, least and most of the seeds"
    return _titled(
        "Tokens that look untrained (`vocabshift glitch`)",
        ["arm", "tokens judged", least, "share", "superwords", f"superwords: {least}"],
        (
            [
                *(row["row"], f"{row['judged']:,.0f}", least_most(row["suspect"])),
                f"{row['share']:.1%}",
                f"{row['superwords']:,}" if "superwords" in row else "0",
                least_most(row["suspect_superwords"]) if "superwords" in row else "–",
            ]
            for row in rows
        ),
        study,
    )


def _latency(rows: list[Row], study: Row) -> str:
    return _titled(
        "Latency (`vocabshift latency`)",
        ["", *(heading for heading, _ in LATENCY.values())],
        (
            [
                row["row"],
                *(_spread(row["values"][name], 1, unit) for name, (_, unit) in LATENCY.items()),
            ]
            for row in rows
        ),
        study,
    )


def _swap(rows: list[Row], study: Row) -> str:
    """The paper's two models, and ours by language: the old tokenizer, IST, and their ratio."""
    entry = beside.papers()["ist"]["tables"]["5"]
    shown = [*entry["columns"], LATENCY["text_bytes_per_second"][0]]
    printed = beside.figures(entry)
    sides = [("paper", [printed["LLaMA-4"], printed["IST"]])]
    values = {row["row"]: row["values"] for row in rows}
    for language in dict.fromkeys(name.partition(":")[0] for name in values):
        both = [values[f"{language}: {name}"] for name in SWAPPED]
        named = [
            {head: own[key][0] * unit for key, (head, unit) in LATENCY.items()} for own in both
        ]
        sides.append((f"ours, {language}", named))
    body = []
    for name, (before, after) in sides:
        cells = [name]
        for column in shown:
            known = column in before
            cells += [f"{own[column]:,.1f}" if known else "–" for own in (before, after)]
            cells.append(f"{after[column] / before[column]:.2f}" if known else "–")
        body.append(cells)
    head = [f"{name}{which}" for name in shown for which in (": old tokenizer", ": IST", ": ratio")]
    return _titled(beside.heading("5", entry), ["", *head], body, study, beside.compared(entry))


def _losses(own: dict[str, list[Row]], study: Row) -> str:
    """What the loss per token and bits per byte of all arms say of their accuracy, by language."""
    entry = beside.papers()["ist"]["tables"]["Appendix C.1"]
    topics = {row["row"]: row["values"] for row in own["sib200"]}
    sizes = {row["row"]: row["values"] for row in own["tokenizers"]}
    body = []
    for language in study["topics"]:
        bits, losses, right = [], [], []
        for row in own["bits-per-byte"]:
            name = row["row"].partition(",")[0]
            of_byte = row["after"][language][0]
            bits.append(of_byte)
            losses.append(of_byte * math.log(2) * sizes.get(name, sizes["base"])[language])
            right.append(topics[row["row"]][language][0])
        cells = [language]
        for prices, digits in ((losses, 2), (bits, 3)):
            cells.append(f"{min(prices):.{digits}f} to {max(prices):.{digits}f}")
            cells.append(rank_correlation(prices, right))
        body.append(cells)
    prices = ("loss per token, nats", "bits per byte")
    head = [f"{price}{which}" for price in prices for which in ("", ": correlation with accuracy")]
    note = (
        f"Lowest and highest of {len(own['bits-per-byte'])} arms, and Spearman's rank correlation "
        "with accuracy on SIB-200, with p by permutation of the arms: -1 if a lower loss always "
        f"meant more right answers. {beside.compared(entry)}"
    )
    return _titled(beside.heading("Appendix C.1", entry), ["", *head], body, study, note)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> str:
    """Spearman's, with its two-sided p; an en dash where one of them is constant."""
    ranks = [
        np.array([sum(a < b for a in side) + sum(a == b for a in side) / 2 for b in side])
        for side in (one, other)
    ]
    first, second = (rank - rank.mean() for rank in ranks)
    length = math.sqrt(first @ first * (second @ second))
    if not length:
        return "–"
    drawn = np.random.default_rng(_SEED).permuted(np.tile(second, (_DRAWS, 1)), axis=1) @ first
    # A sum that rounding moves is as far from zero as the one that it equals.
    p = np.mean(np.abs(drawn) >= abs(first @ second) * (1 - 1e-9))
    return f"{first @ second / length:+.2f} (p {p:.2f})"


def main() -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    for name, text in tables(read(out / "rows.jsonl")).items():
        (out / f"{name}.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
