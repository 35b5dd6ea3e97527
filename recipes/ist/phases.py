"""Time and peak memory of training, from what `vocabshift train --json` printed, as Markdown.

python recipes/ist/phases.py ist=runs/ist/ist.json bpe=runs/ist/bpe.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from vocabshift.report.table_formats import escape_markdown


def phases(reports: Iterable[str]) -> str:
    """The table, from NAME=FILE arguments."""
    lines = [
        "### Time and memory of training\n",
        "| tokenizer | phase | seconds | peak memory of the process, MB |",
        "| --- | --- | ---: | ---: |",
    ]
    for named in reports:
        name, _, path = named.partition("=")
        report = json.loads(Path(path).read_text(encoding="utf-8"))
        for phase in report["phases"]:
            cells = (escape_markdown(name), escape_markdown(phase["name"]))
            peak = f"{phase['peak_rss_bytes'] / 1e6:,.0f}"
            lines.append(f"| {' | '.join(cells)} | {phase['seconds']:.1f} | {peak} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reports", metavar="NAME=TRAIN.json", nargs="+")
    print(phases(parser.parse_args().reports))


if __name__ == "__main__":
    main()
