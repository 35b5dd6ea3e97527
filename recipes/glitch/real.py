"""Glitch tokens of a real model: is what each indicator suspects what the model cannot say?

    python recipes/glitch/real.py MODEL --corpus en=en.txt code=code.txt -o runs/glitch-real

The most suspect tokens by each indicator, some tokens drawn by chance, and some that are no whole
characters are asked for: the model is to repeat and to spell them. Written are results.jsonl (a row
for the model, and one for each token asked for) and the report, glitch.html. `tables.py` counts.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import vocabshift as vs
from vocabshift.evaluation.glitch.classes import BYTE, JUDGED, PARTIAL, counts_inside
from vocabshift.evaluation.glitch.find import GlitchReport, find_glitch_tokens
from vocabshift.evaluation.glitch.summary import summary, token_rows
from vocabshift.evaluation.glitch.verification import verify
from vocabshift.models.load import load_causal_model
from vocabshift.report.html.glitch import glitch_html

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, add
from rows import by_label, sources_of

KEY = ("what", "model", "id")
LONGEST, PARTS, CONTROL = "longest", "parts", "control"


def chosen(report: GlitchReport, n: int, n_controls: int, seed: int) -> dict[str, list[int]]:
    """Ids to ask for, by what chose them, the most suspect first."""
    evaluated = np.flatnonzero(report.kinds.is_in(*JUDGED))

    def lowest(ids: Any, values: Any, most: int) -> list[int]:
        found: list[int] = ids[np.argsort(values[ids], kind="stable")][:most].tolist()
        return found

    groups = {name: lowest(evaluated, s.values, n) for name, s in report.scores.items()}
    groups[LONGEST] = lowest(evaluated, -report.scores["norm"].values, n)
    parts = np.flatnonzero(report.kinds.is_in(BYTE, PARTIAL))
    groups[PARTS] = lowest(parts, report.values, n_controls // 2)
    drawn = np.random.default_rng(seed).choice(evaluated, n_controls, replace=False)
    groups[CONTROL] = sorted(drawn.tolist())
    return groups


def rows_of(report: GlitchReport, groups: dict[str, list[int]]) -> list[Row]:
    """The row of the model, and one for each token that was asked for."""
    tokens = token_rows(report)
    facts = summary(report, tokens)
    counts = report.counts
    inside = None if counts is None else counts_inside(report.tokenizer, counts)
    kept = ("rows", "tied", "indicator", "reference", "threshold", "n_judged", "n_suspect")
    model: Row = {"what": "model", "model": report.name, "verification": facts["verification"]}
    model |= {name: facts[name] for name in kept}
    model["counted"] = None if counts is None else int(counts.sum())
    model["never"] = None if counts is None else int((counts == 0).sum())
    found = [model]
    for row in tokens:
        if row["verdict"] is None:
            continue
        places = {
            name: ids.index(row["id"]) + 1 for name, ids in groups.items() if row["id"] in ids
        }
        wanted = ("id", "token", "text", "class", "is_suspect", "count", "reason", "input_norm")
        asked = ("head_cosine", "max_probability", "verdict", "spelled")
        found.append(
            {"what": "token", "model": report.name, "places": places}
            | {name: row[name] for name in (*wanted, *asked) if name in row}
            | {"inside": None if inside is None else int(inside[row["id"]])}
        )
    return found


def main() -> int:
    """Ask, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--corpus", nargs="+", metavar="LABEL=FILE", default=())
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--top", type=int, default=20, help="tokens of each indicator")
    parser.add_argument("--controls", type=int, default=15, help="tokens drawn by chance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", help="of the model in the results; default: its folder's")
    args = parser.parse_args()
    corpus = vs.Corpus.from_specs(args.corpus, documents="file") if args.corpus else None
    report = find_glitch_tokens(args.model, corpus=corpus)
    report = replace(report, name=args.name or report.name)
    texts = {} if corpus is None else by_label(corpus.texts())
    groups = chosen(report, args.top, args.controls, args.seed)
    ids = sorted({token_id for group in groups.values() for token_id in group})
    print(f"{len(ids)} tokens to ask for", file=sys.stderr, flush=True)
    model = load_causal_model(args.model, dtype="float32")
    report = replace(report, verification=verify(model, report.tokenizer, ids, progress=_progress))
    args.output.mkdir(parents=True, exist_ok=True)
    rows = rows_of(report, groups)
    rows[0] |= sources_of(texts, {report.name: report.tokenizer})
    add(args.output / "results.jsonl", rows, key=KEY)
    tokens = token_rows(report)
    page = glitch_html(summary(report, tokens), tokens)
    (args.output / "glitch.html").write_text(page, encoding="utf-8")
    return 0


def _progress(phase: str, done: int, of: int | None) -> None:
    print(f"{phase}: {done} of {of}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
