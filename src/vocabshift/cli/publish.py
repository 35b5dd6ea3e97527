"""The verbs that pass on what was made: `vocabshift tables`, `card` and `publish`.

`tables` writes results in the papers' layouts, `card` a model card from results and provenance;
`publish` uploads a folder to the Hugging Face Hub, by default as a dry run.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import defaults_of
from vocabshift.cli.options import add_many, add_verb
from vocabshift.workflows.publish import FORMATS, SHAPES, publish_folder, write_card, write_tables

if TYPE_CHECKING:
    from rich.console import Console


def add_tables(subparsers: Any) -> None:
    """Add the verb `tables`."""
    parser = add_verb(
        subparsers,
        "tables",
        "write results as tables: Markdown, LaTeX or CSV",
        "Write what `vocabshift evaluate --output` measured as tables: Markdown, LaTeX (booktabs)\n"
        "or CSV, wide or one value a line. Shapes: languages (down), subjects (down), families\n"
        "(means over the languages of a family), each a table for every metric; and those of the\n"
        "papers' tables: ist-3, ist-4, ist-6, ist-7, ist-22, matra-2, matra-3, matra-4. What a\n"
        "paper's table has and the results lack is left out, and a note under the table says so.",
        "  vocabshift tables results.jsonl --shape ist-3\n"
        "  vocabshift tables results.jsonl --shape matra-2 --format latex -o matra-2.tex\n",
    )
    parser.add_argument("results", metavar="RESULTS", nargs="+", help="what evaluate wrote")
    defaults = defaults_of(write_tables)
    for flag, choices in (("shape", SHAPES), ("format", FORMATS)):
        parser.add_argument(
            f"--{flag}", choices=choices, default=defaults[flag], help="default: %(default)s"
        )
    add_many(parser, "--subjects", metavar="S", help="only these tokenizers, in this order")
    parser.add_argument(
        "--intervals", action="store_true", help="half the 95 %% interval after each value"
    )
    parser.add_argument("-o", "--out", metavar="FILE", help="default: standard output")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run_tables, show=show_tables, status=lambda *_: 0)


def run_tables(args: argparse.Namespace) -> dict[str, Any]:
    """Build the tables, and write them if requested."""
    return write_tables(
        args.results,
        args.out,
        shape=args.shape,
        format=args.format,
        subjects=args.subjects or (),
        intervals=args.intervals,
        force=args.force,
    )


def show_tables(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the tables, or the path they were written to."""
    if args.out:
        console.print(f"written: {args.out}", markup=False, soft_wrap=True)
    else:
        sys.stdout.write(result["text"])


def add_card(subparsers: Any) -> None:
    """Add the verb `card`."""
    parser = add_verb(
        subparsers,
        "card",
        "write the model card of a tokenizer or a model",
        "Write a model card of what vocabshift made: what it is, its training text by source and\n"
        "class of licence, figures with intervals, limits, and what rebuilds it. Figures come\n"
        "from files of `vocabshift evaluate --output`, for a model also of `score` and `harness`;\n"
        "the rest from the folder's vocabshift.json and tables of sources (tabs; columns source,\n"
        "bytes, class, licence; hi.sources.tsv is of the language hi). A model's card has the\n"
        "steps that led to it from its base model, and where it reads text worse than that.",
        "  vocabshift card ist --results results.jsonl -o ist/README.md\n"
        "  vocabshift card ist --results results.jsonl --sources train/*.sources.tsv "
        '--evaluated-on FLORES --license other --rebuild "recipes/ist/run.sh" -o ist.md\n'
        "  vocabshift card adapted --results bits.jsonl tasks.jsonl "
        "--base HuggingFaceTB/SmolLM2-135M --license apache-2.0 -o adapted/README.md\n",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder that vocabshift wrote")
    add_many(
        parser,
        "--results",
        metavar="FILE",
        required=True,
        help="what evaluate, score or harness wrote",
    )
    parser.add_argument("--subject", metavar="S", help="its name there (default: that of DIR)")
    parser.add_argument(
        "--name", metavar="NAME", help="its name on the card (default: that of DIR)"
    )
    parser.add_argument(
        "--base", metavar="NAME", help="Hub name of the model that DIR was made of, if not recorded"
    )
    add_many(parser, "--sources", metavar="TSV", help="tables of the training text's sources")
    parser.add_argument(
        "--evaluated-on", metavar="TEXT", default="", help="what the results rest on"
    )
    parser.add_argument("--license", metavar="ID", help="its license, as the Hub has it")
    parser.add_argument(
        "--rebuild", metavar="COMMAND", default="", help="what makes the same again"
    )
    add_many(parser, "--limit", metavar="TEXT", help="a further sentence under Limits")
    parser.add_argument("-o", "--out", metavar="FILE", required=True, help="such as DIR/README.md")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run_card, show=show_card, status=lambda *_: 0)


def run_card(args: argparse.Namespace) -> dict[str, Any]:
    """Write the card; the returned object holds everything it was rendered from."""
    return write_card(
        args.folder,
        args.results,
        args.out,
        subject=args.subject,
        name=args.name,
        base=args.base,
        sources=args.sources or (),
        evaluated_on=args.evaluated_on,
        license=args.license,
        rebuild=args.rebuild,
        limits=args.limit or (),
        force=args.force,
    )


def show_card(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the path of the card."""
    what = f"written: {args.out} ({result['facts']['name']})"
    console.print(what, markup=False, soft_wrap=True)


def add_publish(subparsers: Any) -> None:
    """Add the verb `publish`."""
    parser = add_verb(
        subparsers,
        "publish",
        "send a folder to the Hugging Face Hub (a dry run without --upload)",
        "Check a folder that vocabshift wrote and say what would be sent to the Hugging Face Hub:\n"
        "every file with its size, and what its card says. The tokenizer is opened as others will\n"
        "open it, a card (README.md) must be there and be of this tokenizer, and nothing may\n"
        "be unfinished. Nothing is sent without --upload; then the repository is private unless\n"
        "--public is given, and one that exists keeps its visibility. Log in with `hf auth login`.",
        "  vocabshift publish ist me/ist-200k\n  vocabshift publish ist me/ist-200k --upload\n",
    )
    parser.add_argument("folder", metavar="DIR", help="what to send")
    parser.add_argument("repo", metavar="REPO", help="OWNER/NAME on the Hub")
    parser.add_argument("--upload", action="store_true", help="send it; without this a dry run")
    parser.add_argument("--public", action="store_true", help="make a new repository public")
    parser.add_argument(
        "--message",
        metavar="TEXT",
        default=defaults_of(publish_folder)["message"],
        help="of the commit",
    )
    parser.set_defaults(run=run_publish, show=show_publish, status=lambda *_: 0)


def run_publish(args: argparse.Namespace) -> dict[str, Any]:
    """Check everything, and upload if requested."""
    return publish_folder(
        args.folder,
        args.repo,
        upload=args.upload,
        public=args.public,
        message=args.message,
    )


def show_publish(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the files, the card's metadata, and whether anything was uploaded."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(f"{result['folder']} -> {result['repo']}"), title_justify="left")
    table.add_column("file")
    table.add_column("bytes", justify="right")
    for file in result["files"]:
        table.add_row(Text(file["name"]), f"{file['bytes']:,}")
    table.add_section()
    table.add_row("all", f"{result['total_bytes']:,}", style="bold")
    console.print(table)
    for name, value in result["card"].items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "not given")
        console.print(Text(f"card, {name}: {shown}"), soft_wrap=True)
    console.print(Text(f"opens alike with: {', '.join(result['opened_by'])}"))
    kind = "public" if args.public else "private"
    end = (
        f"uploaded: {result['url']}"
        if result["uploaded"]
        else f"nothing was sent; with --upload it goes to {result['repo']} ({kind})"
    )
    console.print(Text(end, style="bold"), soft_wrap=True)
