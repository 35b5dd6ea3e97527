"""`vocabshift publish`: upload a folder to the Hugging Face Hub; by default a dry run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_verb
from vocabshift.cli.subjects import defaults_of
from vocabshift.workflows.publish import publish_folder

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "publish",
        "send a folder to the Hugging Face Hub (a dry run unless told)",
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
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Check everything, and upload if requested."""
    return publish_folder(
        args.folder,
        args.repo,
        upload=args.upload,
        public=args.public,
        message=args.message,
    )


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
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
