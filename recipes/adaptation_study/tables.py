"""The tables of the study, as Markdown, from what study.py, `evaluate` and `latency` wrote.

    python recipes/adaptation_study/tables.py runs/adaptation

Writes OUT/tokenizers.md, bits-per-byte.md, differences.md, sib200.md, glitch.md and latency.md, and
OUT/results.jsonl with the same figures as rows of results. Measures nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from arms import ARMS, BASE, TOKENIZERS, Arm
from intervals import Floats, Interval, over_seeds_and_documents

import vocabshift as vs

Runs = dict[str, list[dict[str, Any]]]
"""By key of the arm, the runs of all seeds, in order of the seeds."""


def load(out: Path) -> Runs:
    """What there is of every arm; only seeds that have all arms."""
    seeds = sorted(
        seed
        for seed in {int(file.name.split("-")[0]) for file in (out / "arms").glob("*.json")}
        if all((out / "arms" / f"{seed}-{arm.key}.json").exists() for arm in ARMS)
    )
    if not seeds:
        raise SystemExit(f"{out}/arms holds no seed with all arms; run study.py")
    return {
        arm.key: [
            json.loads((out / "arms" / f"{seed}-{arm.key}.json").read_text(encoding="utf-8"))
            for seed in seeds
        ]
        for arm in ARMS
    }


def markdown(title: str, head: Iterable[str], body: Iterable[Iterable[str]], note: str = "") -> str:
    """A table with its title; the first column at the left."""
    cells = list(head)
    lines = [cells, ["---", *["---:"] * (len(cells) - 1)], *(list(row) for row in body)]
    table = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    return f"### {title}\n\n{table}" + (f"\n{note}\n" if note else "")


def bits(runs: list[dict[str, Any]], language: str) -> tuple[Floats, Floats]:
    """(n_seeds, n_documents) bits, and (n_documents,) bytes, which are the same for all."""
    documents = np.array([run["documents"][language] for run in runs], dtype=np.float64)
    return documents[:, :, 1] / math.log(2), documents[0, :, 0]


def price(runs: list[dict[str, Any]], language: str) -> Interval:
    """Bits per byte after training."""
    return over_seeds_and_documents(*bits(runs, language))


def price_difference(runs: Runs, a: Arm, b: Arm, language: str) -> Interval:
    """Of `a` to `b`, paired; below zero `a` is better."""
    of_a, sizes = bits(runs[a.key], language)
    of_b, _ = bits(runs[b.key], language)
    return over_seeds_and_documents(of_a - of_b, sizes)


def accuracy(runs: list[dict[str, Any]], language: str) -> Interval:
    """Of the probe on SIB-200's test split."""
    hits = np.array([run["sib200"][language] for run in runs], dtype=np.float64)
    return over_seeds_and_documents(hits, np.ones(hits.shape[1]))


def half(interval: Interval) -> float:
    """Half the width of an interval."""
    return (interval.high - interval.low) / 2


def languages_of(runs: Runs) -> list[str]:
    """New languages first."""
    run = runs["nothing"][0]
    return [*run["new"], *run["home"]]


def mean_at(runs: list[dict[str, Any]], point: int, language: str) -> float:
    """Bits per byte on the documents of the curve, the mean over seeds."""
    return statistics.mean(run["curve"][point]["bits_per_byte"][language] for run in runs)


def prices_table(runs: Runs) -> str:
    """Before and after training, by arm and language."""
    languages = languages_of(runs)
    head = ["arm", *(f"{name}: before" for name in languages), *languages]
    best = {name: min(price(runs[arm.key], name).value for arm in ARMS) for name in languages}
    body = []
    for arm in ARMS:
        own = runs[arm.key]
        before = [f"{mean_at(own, 0, name):.2f}" for name in languages]
        after = []
        for name in languages:
            found = price(own, name)
            text = f"{found.value:.3f} ±{half(found):.3f}"
            after.append(f"**{text}**" if found.value == best[name] else text)
        body.append([arm.name, *before, *after])
    n_seeds = len(runs["nothing"])
    n_bytes = round(statistics.mean(run["n_bytes"] for run in runs["nothing"]))
    return markdown(
        f"Bits per byte, before and after {n_bytes:,} bytes of continued training",
        head,
        body,
        f"Means over {n_seeds} seeds; ±: half the 95 % interval over seeds and documents, which "
        "holds how documents differ from each other; the next table compares like with like. "
        "Bold: the lowest.",
    )


def pairs() -> list[tuple[Arm, Arm]]:
    """What is held against what."""
    nothing = ARMS[0]
    fvt = {name: Arm(name, "fvt") for name in TOKENIZERS}
    return [
        *((arm, nothing) for arm in fvt.values()),
        (fvt["continued"], fvt["regen"]),
        (fvt["repaired"], fvt["continued"]),
        (fvt["ist"], fvt["repaired"]),
        (fvt["matra"], fvt["ist"]),
        *((fvt[name], Arm(name, "random")) for name in TOKENIZERS),
    ]


def differences_table(runs: Runs) -> str:
    """Paired differences in bits per byte."""
    languages = languages_of(runs)
    body = []
    for a, b in pairs():
        cells = []
        for name in languages:
            found = price_difference(runs, a, b, name)
            text = f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
            cells.append(f"**{text}**" if found.is_clear else text)
        body.append([f"{a.name} − {b.name}", *cells])
    return markdown(
        "Differences in bits per byte, paired over seeds and documents",
        ["", *languages],
        body,
        "Below zero the first one is better. 95 % intervals; bold: zero is outside, and every seed "
        "by itself says the same.",
    )


def topics_table(runs: Runs) -> str:
    """SIB-200."""
    languages = list(runs["nothing"][0]["sib200"])
    body = []
    for arm in ARMS:
        found = [accuracy(runs[arm.key], name) for name in languages]
        body.append([arm.name, *(f"{each.value:.3f} ±{half(each):.3f}" for each in found)])
    majority = runs["nothing"][0]["sib200_majority"]
    body.append(["(the most frequent topic)", *(f"{majority[name]:.3f}" for name in languages)])
    return markdown("SIB-200, accuracy of a linear probe", ["arm", *languages], body)


def tokenizers_table(runs: Runs, compression: vs.Results) -> str:
    """What a tokenizer makes of text, and what training with it took."""
    languages = compression.distinct("language")
    body = []
    for name in (BASE, *TOKENIZERS):
        own = [run for arm in ARMS if arm.tokenizer == name for run in runs[arm.key]]
        values = [compression.value(name, of, "bytes_per_token") for of in languages]
        facts = [statistics.mean(run[key] for run in own) for key in ("n_tokens", "n_steps")]
        seconds = statistics.mean(run["cpu_seconds"] for run in own)
        body.append(
            [
                *(name, f"{own[0]['rows']:,}", *(f"{value:.2f}" for value in values)),
                *(*(f"{fact:,.0f}" for fact in facts), f"{seconds:.0f}"),
            ]
        )
    head = ["tokenizer", "rows", *(f"bytes per token: {name}" for name in languages)]
    return markdown(
        "Tokenizers, and what the same bytes of training took",
        [*head, "tokens trained on", "steps", "CPU seconds"],
        body,
    )


def glitch_table(runs: Runs) -> str:
    """Suspect tokens, of all and of superwords."""
    body = []
    for arm in ARMS:
        facts = [run["glitch"] for run in runs[arm.key]]
        suspect = [each["n_suspect"] for each in facts]
        judged = statistics.mean(each["n_judged"] for each in facts)
        share = statistics.mean(suspect) / judged
        spread = f"{min(suspect):,}–{max(suspect):,}"
        body.append([arm.name, f"{judged:,.0f}", spread, f"{share:.1%}"])
    return markdown(
        "Tokens that look untrained (`vocabshift glitch`)",
        ["arm", "tokens judged", "suspect, least and most of the seeds", "share"],
        body,
    )


def latency_table(found: Mapping[str, Any]) -> str:
    """Time to first token and speed, by tokenizer and language."""
    results = vs.Results(vs.Result(**row) for row in found["results"])
    columns = {
        "input_tokens": ("input tokens", 1),
        "ttft_seconds": ("first token, ms", 1e3),
        "output_tokens_per_second": ("tokens/s", 1),
        "output_bytes_per_second": ("bytes/s", 1),
        "text_bytes_per_second": ("bytes of text/s", 1),
    }
    body = []
    for language in results.distinct("language"):
        for subject in results.distinct("subject"):
            cells = []
            for metric, (_, unit) in columns.items():
                [row] = results.where(subject=subject, language=language, metric=metric)
                text = f"{row.value * unit:,.1f}"
                if row.ci_low is not None and row.ci_high is not None:
                    text += f" ±{(row.ci_high - row.ci_low) / 2 * unit:,.1f}"
                cells.append(text)
            body.append([f"{language}: {subject.removesuffix('-fvt')}", *cells])
    return markdown(
        "Latency (`vocabshift latency`)",
        ["", *(heading for heading, _ in columns.values())],
        body,
    )


def rows(runs: Runs) -> vs.Results:
    """Bits per byte and accuracy as rows of results, n = seeds x documents."""
    found = []
    for arm in ARMS:
        own = runs[arm.key]
        for name in languages_of(runs):
            value, n = price(own, name), len(own) * len(own[0]["documents"][name])
            low, high = value.low, value.high
            found.append(vs.Result(arm.key, name, "bits_per_byte", value.value, n, low, high))
        for name in own[0]["sib200"]:
            value, n = accuracy(own, name), len(own) * len(own[0]["sib200"][name])
            low, high = value.low, value.high
            found.append(vs.Result(arm.key, name, "sib200_accuracy", value.value, n, low, high))
    return vs.Results(found)


def main() -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    runs = load(out)
    compression = vs.Results.from_jsonl((out / "tokenizers.jsonl").read_text(encoding="utf-8"))
    latency = json.loads((out / "latency.json").read_text(encoding="utf-8"))
    tables = {
        "tokenizers": tokenizers_table(runs, compression),
        "bits-per-byte": prices_table(runs),
        "differences": differences_table(runs),
        "sib200": topics_table(runs),
        "glitch": glitch_table(runs),
        "latency": latency_table(latency),
    }
    for name, text in tables.items():
        (out / f"{name}.md").write_text(text, encoding="utf-8")
    rows(runs).save(out / "results.jsonl")


if __name__ == "__main__":
    main()
