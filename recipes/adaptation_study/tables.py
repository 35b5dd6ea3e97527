"""The tables of this recipe's README, made of its results (`recipes/data/record.py`).

    python recipes/adaptation_study/tables.py runs/adaptation

writes them as OUT/NAME.md, from OUT/rows.jsonl.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown, read

LATENCY = {
    "input_tokens": ("input tokens", 1),
    "ttft_seconds": ("first token, ms", 1e3),
    "output_tokens_per_second": ("tokens/s", 1),
    "output_bytes_per_second": ("bytes/s", 1),
    "text_bytes_per_second": ("bytes of text/s", 1),
}


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
    return _titled(
        "Tokens that look untrained (`vocabshift glitch`)",
        ["arm", "tokens judged", "suspect, least and most of the seeds", "share"],
        (
            [
                *(row["row"], f"{row['judged']:,.0f}"),
                *("–".join(f"{n:,}" for n in row["suspect"]), f"{row['share']:.1%}"),
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


def main() -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    for name, text in tables(read(out / "rows.jsonl")).items():
        (out / f"{name}.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
