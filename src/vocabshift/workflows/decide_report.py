"""What `decide` found, as plain values and as Markdown, and what carries it out.

Owns the words and the tables, the commands, and the text that they read; measures nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vocabshift.errors import CorpusError
from vocabshift.evaluation.scoring.score import score_rows
from vocabshift.surgery.methods import find_initializer
from vocabshift.text.corpus import Corpus
from vocabshift.workflows.decide_options import KEEP, DecideOptions
from vocabshift.workflows.decide_schedule import Found, Pilot, Verdict


def rows_of(found: Found, sides: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """A row for each pilot: bits per byte, what it cost, and what it gained for that."""
    before = _bits(found.screened[KEEP])
    rows = []
    for stage, pilots in (("screen", found.screened), ("train", found.trained)):
        for name, pilot in pilots.items():
            bits = _bits(pilot)
            changes = {
                side: sum(bits[each]["value"] - before[each]["value"] for each in languages)
                / len(languages)
                for side, languages in sides.items()
            }
            row: dict[str, Any] = {"pilot": name, "stage": stage, "bits_per_byte": bits}
            row |= {"gained_in_new": 0.0 - changes["new"], "lost_at_home": changes["home"]}
            row |= {
                "n_bytes": pilot.n_bytes,
                "n_tokens": pilot.n_tokens,
                "cpu_seconds": round(pilot.cpu_seconds, 1),
                "seconds": round(pilot.seconds, 1),
                "bytes_per_token": dict(pilot.bytes_per_token),
            }
            if pilot.n_bytes:
                row["gained_per_mb"] = -changes["new"] / pilot.n_bytes * 1e6
                row["gained_per_cpu_minute"] = -changes["new"] / max(pilot.cpu_seconds, 1e-9) * 60
            rows.append(row)
    return rows


def _bits(pilot: Pilot) -> dict[str, dict[str, Any]]:
    return {
        row.language: {"value": row.value, "low": row.ci_low, "high": row.ci_high, "n": row.n}
        for row in score_rows(pilot.candidate.name, pilot.documents)
        if row.metric == "bits_per_byte"
    }


def markdown(result: Mapping[str, Any]) -> str:
    """The page `decision.md`."""
    languages = [*result["new"], *result["home"]]
    lines = [f"# How to give {result['model']} {', '.join(result['new'])}", ""]
    lines += [f"**{result['kind']}**: {result['why']}.", ""]
    if result["standings"]:
        lines += [
            f"What a pilot saves: bits per byte in {', '.join(result['new'])}, less "
            f"{result['home_weight']:g} times those that it loses in {', '.join(result['home'])}; "
            "languages of a side count alike. The reference is the old model before any training. "
            f"Intervals: 95 %, paired by document, all comparisons with the best together "
            f"(Bonferroni). One seed was trained. Compared on {result['compared_on']}.",
            "",
            *_table(
                ("trained", "saves", "interval", "behind the best", "interval", *languages),
                [
                    (
                        each["name"],
                        f"{each['saved']:+.3f}",
                        _interval(each["saved_low"], each["saved_high"]),
                        f"{each['behind']:.3f}",
                        _interval(each["behind_low"], each["behind_high"]),
                        *(f"{each['changes'][name]:+.3f}" for name in languages),
                    )
                    for each in result["standings"]
                ],
            ),
            "",
        ]
    lines += _table(
        (
            *("pilot", "stage", *languages, "gained in new", "lost at home", "text, kB"),
            *("gained per MB", "CPU s", "gained per CPU minute"),
        ),
        [
            (
                *(row["pilot"], row["stage"]),
                *(f"{row['bits_per_byte'][name]['value']:.3f}" for name in languages),
                *(f"{row['gained_in_new']:+.3f}", f"{row['lost_at_home']:+.3f}"),
                f"{row['n_bytes'] / 1000:,.0f}",
                f"{row['gained_per_mb']:+.2f}" if "gained_per_mb" in row else "–",
                f"{row['cpu_seconds']:.0f}",
                f"{row['gained_per_cpu_minute']:+.3f}" if "gained_per_mb" in row else "–",
            )
            for row in result["pilots"]
        ],
    )
    if result["left_out"]:
        lines += ["", "Left out:", ""]
        lines += [f"- {name}: {why}" for name, why in result["left_out"].items()]
    if result["commands"]:
        lines += ["", "To carry it out:", "", "```sh", *result["commands"], "```"]
    if "differs" in result:
        lines += ["", f"What differs from the pilots: {result['differs']}."]
    return "\n".join(lines) + "\n"


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:+.3f} to {high:+.3f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    marks = ["---"] + ["---:"] * (len(header) - 1)
    return [f"| {' | '.join(row)} |" for row in (header, marks, *rows)]


def result_of(
    model: str,
    texts: Mapping[str, Corpus],
    found: Found,
    reached: Verdict,
    options: DecideOptions,
) -> dict[str, Any]:
    """The contents of `decision.json`, but for commands and time."""
    sides = {side: list(map(str, corpus.languages)) for side, corpus in texts.items()}
    return {
        "model": model,
        **sides,
        "home_weight": options.home_weight,
        "trained": options.trained,
        "seed": options.seed,
        **reached.to_dict(),
        "pilots": rows_of(found, sides),
        "left_out": found.left_out,
    }


def commands_of(
    result: Mapping[str, Any],
    out: Path,
    text: Text,
    found: Found,
    *,
    donor: str | Path | None,
) -> list[str]:
    """How the recommendation is carried out."""
    if result["recommended"] is None:
        return []
    candidate = found.trained[result["recommended"]].candidate
    commands = []
    if candidate.way != KEEP:
        words = [
            "vocabshift",
            "transfer",
            result["model"],
            str(out / "tokenizers" / candidate.tokenizer),
        ]
        assert candidate.init is not None
        words += ["--init", candidate.init]
        needs = find_initializer(candidate.init).needs
        if needs == "corpus":
            words += ["--corpus", *text.data]
        if needs == "donor":
            words += ["--donor", str(donor)]
        commands.append(shlex.join([*words, "-o", model_of(out)]))
    return [*commands, shlex.join(["vocabshift", "cpt", str(out / "cpt.toml")])]


@dataclass(frozen=True)
class Text:
    """What the recommended training reads, as files in the output folder."""

    data: list[str]  # SPECs
    held_out: list[str]
    n_bytes: int  # of `data`
    share_of_new: float
    n_left: int  # bytes that are not in `data`, because they would change the shares


def write_text(
    folder: Path,
    out: Path,
    learned: Mapping[str, Corpus],
    held_out: Mapping[str, list[str]],
    options: DecideOptions,
) -> Text:
    """Write the text that keeps the pilots' shares, as much as there is, and the held-out text.

    `learned`: "new" and "home", without what is held out; every document is written at most once.
    `folder`: that of the output while it is made; `out`: its final name, for the SPECs.
    """
    sides = {side: corpus.languages for side, corpus in learned.items()}
    shares = options.shares(sides)
    own = {name: learned[side].select(name) for side, names in sides.items() for name in names}
    whole = {name: sum(found.n_bytes for found in each.batches()) for name, each in own.items()}
    n_bytes = min(whole[name] / share for name, share in shares.items())
    specs: dict[str, list[str]] = {"text": [], "held-out": []}
    written: dict[str, int] = {}
    for number, (name, corpus) in enumerate(own.items()):
        is_file_name = re.fullmatch(r"[\w-]+", name)  # other labels may hold a "/"
        file = f"{name if is_file_name else f'language-{number}'}.jsonl"
        drawn = _drawn(corpus, round(n_bytes * shares[name]), options.seed)
        for place, listed in specs.items():
            (folder / place).mkdir(exist_ok=True)
            listed.append(f"{name}={out / place / file}")
        written[name] = _write_lines(folder / "text" / file, drawn)
        _write_lines(folder / "held-out" / file, held_out[name])
    return Text(
        specs["text"],
        specs["held-out"],
        n_bytes=sum(written.values()),
        share_of_new=sum(written[name] for name in sides["new"]) / max(sum(written.values()), 1),
        n_left=sum(whole.values()) - sum(written.values()),
    )


def _drawn(corpus: Corpus, n_bytes: int, seed: int) -> Iterable[str]:
    """Documents of one language, at most so many bytes; all of them where the first is longer."""
    some = corpus.limit_bytes(max(n_bytes, 1), seed=seed)
    try:
        some.require_text()
    except CorpusError:
        some = corpus
    return (text for _, text in some.texts())


def _write_lines(file: Path, texts: Iterable[str]) -> int:
    """Write JSON lines; the bytes of the texts."""
    n_bytes = 0
    with file.open("x", encoding="utf-8") as stream:
        for text in texts:
            stream.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            n_bytes += len(text.encode("utf-8"))
    return n_bytes


def cpt_of(
    model: str, out: Path, text: Text, chosen: Pilot, options: DecideOptions
) -> tuple[str, str]:
    """The file for `vocabshift cpt`, and what differs from the pilots.

    All of `text` once, with the settings of the pilot that is recommended.
    """
    settings: dict[str, Any] = {
        "model": model if chosen.candidate.way == KEEP else model_of(out),
        "data": text.data,
        "held_out": text.held_out,
        "out": f"{out}-trained",
        "trained": options.trained,
        "n_bytes": text.n_bytes,
        "learning_rate": options.learning_rate,
        "sequence_length": options.sequence_length,
        "batch_size": chosen.batch_size,
        "spike_factor": 0.0,
        "seed": options.seed,
    }
    differs = (
        f"cpt.toml trains once on {out / 'text'}, {text.n_bytes:,} bytes, where the pilot read "
        f"{chosen.n_bytes:,}; {text.share_of_new:.0%} of it is in the new languages, where the "
        f"pilots read {options.share_of_new:.0%} (share_of_new); {text.n_left:,} bytes more would "
        "change the shares and are left out, as is what is held out"
    )
    lines = [f"{name} = {json.dumps(v, ensure_ascii=False)}\n" for name, v in settings.items()]
    return "".join(lines), differs


def model_of(out: Path) -> str:
    """The folder of the model with the recommended tokenizer, as `commands_of` makes it."""
    return f"{out}-model"
