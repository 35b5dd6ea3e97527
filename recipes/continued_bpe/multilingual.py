"""One extension for many languages, with superwords on top, beside one extension for each.

    python recipes/continued_bpe/multilingual.py --extend multilingual.json superwords.json \\
        --results results.jsonl --subjects llama3 multilingual longer superwords --curves curves

Reads what `vocabshift extend --json` printed without and with `--superwords`, bytes per token on
held-out text from `vocabshift evaluate --output`, and the files of curves.py for the same
tokenizer; Markdown on standard output.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tables import load, markdown

from vocabshift.results import Results


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--extend", metavar="JSON", type=Path, nargs=2, required=True)
    parser.add_argument("--results", metavar="JSONL", type=Path, required=True)
    parser.add_argument("--subjects", nargs=4, required=True, help="base, words, more, superwords")
    parser.add_argument("--curves", metavar="DIR", type=Path, required=True)
    args = parser.parse_args()
    words, superwords = (json.loads(path.read_text(encoding="utf-8")) for path in args.extend)
    results = Results.from_jsonl(args.results.read_text(encoding="utf-8"))
    held_out = {
        (row.subject, row.language): row.value for row in results.where(metric="bytes_per_token")
    }
    base, longer, longest, superword = args.subjects
    alone = {
        curve["language"]: curve
        for curve in load(args.curves)
        if curve["tokenizer"] == base and curve["pre_tokenizer"] == words["pre_tokenizer"]
    }
    sizes = [row["n_tokens"] for row in next(iter(alone.values()))["rows"]]
    use = {row["language"]: row for row in words["languages"]}
    body = []
    for label in results.distinct("language"):
        cells = [f"{held_out[base, label]:.3f}", f"{held_out[longer, label]:.3f}"]
        if label in alone:
            rows = alone[label]["rows"]
            cells += [f"{row['ours']['bytes_per_token']:.3f}" for row in rows]
        else:
            cells += ["–"] * len(sizes)
        used = use.get(label)
        own = (
            ["–", "–"]
            if used is None
            else [f"{used['new_tokens_used']:,}", f"{used['new_tokens_share']:.1%}"]
        )
        body.append([label, *own, *cells])
    head = ["language", "new tokens used", "share of its tokens", "before", "extended"]
    singles = [f"alone +{n:,}" for n in sizes]
    title = f"one extension by {words['n_added']:,} tokens for {len(use)} languages"
    print(markdown(title, [*head, *singles], body))

    effect = superwords["superword_effect"]
    body = []
    for label in results.distinct("language"):
        before, more, after = (held_out[name, label] for name in (longer, longest, superword))
        changed = [effect[key].get(label) for key in ("changed_lines", "changed_tokens")]
        shares = ["–" if share is None else f"{share:.2%}" for share in changed]
        gains = [f"{value / before - 1:+.1%}" for value in (more, after)]
        values = [f"{value:.3f}" for value in (before, more, after)]
        body.append([label, *shares, *values, *gains])
    n = f"{superwords['superwords']:,}"
    head = ["language", "lines changed by boundaries", "tokens", "words", f"+{n} words"]
    head += [f"+{n} superwords", "gain of words", "gain of superwords"]
    print(markdown(f"{n} superwords on top of it, or as many more words", head, body))


if __name__ == "__main__":
    main()
