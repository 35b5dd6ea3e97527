"""`vocabshift prune`: remove unneeded tokens from a tokenizer."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import (
    add_loading,
    add_pattern,
    add_source,
    held_out_of,
    source_of,
    tokenizer_of,
    words_of,
)
from vocabshift.cli.options import (
    Parser,
    UsageError,
    add_complete_bytes,
    add_many,
    add_output,
    add_threads,
    add_verb,
    percentage,
    positive,
    threads,
)

if TYPE_CHECKING:
    from rich.console import Console

_MOST_SCRIPTS = 12  # rows of the printed table; --json has all


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "prune",
        "take tokens out of a tokenizer that nobody needs",
        "Take tokens out of a tokenizer (BPE, Unigram, WordPiece) that a corpus needs least.\n"
        "Special tokens, bytes, characters and byte pieces stay, and no token that stays loses\n"
        "what it is made of: all text comes back as before. token_map.json says which id is which.",
        "  vocabshift prune meta-llama/Llama-3.2-1B --corpus et=et.txt en=en.txt --n-tokens 16000 "
        "-o llama-small\n"
        "  vocabshift prune xlm-roberta-base --corpus hi=hi.txt --vocab-size 60000 "
        "--keep script:Deva --dry-run --json\n"
        "  vocabshift prune models/llama --corpus en=en.txt --until 0.5% --held-out en=other.txt "
        "-o llama-small\n",
    )
    parser.later(_add_options)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def _add_options(parser: Parser) -> None:
    from vocabshift.workflows.prune import MEASURES, ORDERS

    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, file or Hub name")
    add_source(parser)
    parser.add_argument("--n-tokens", metavar="N", type=positive, help="so many tokens go")
    parser.add_argument(
        "--vocab-size", metavar="N", type=positive, help="so many stay (model.vocab is counted)"
    )
    parser.add_argument(
        "--until",
        metavar="X%",
        type=percentage,
        help="as many go as make the held-out text worse by at most X %%; with several labels, the "
        "one that loses most",
    )
    parser.add_argument(
        "--by",
        choices=MEASURES,
        help="what --until limits: the rise of bits per byte under the model (default), or the "
        "fall of bytes per token",
    )
    add_many(parser, "--held-out", metavar="SPEC", help="the text for --until: [lang=]PATH|…")
    parser.add_argument(
        "--model", metavar="MODEL", help="for bits per byte (default: the one in TOKENIZER)"
    )
    add_loading(parser)
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default="leaf-frequency",
        help="leaf-frequency (default): the rarest that nothing is made of; leaf-id: of these the "
        "highest id; merge: the rarest in any merge; frequency: the rarest in the end; id: the "
        "highest id with what is made of it; script: scripts that the text uses least",
    )
    add_many(
        parser,
        "--keep",
        metavar="X",
        help="never remove: a token, file:PATH (one a line), script:Deva, language:LABEL",
    )
    parser.add_argument("--keep-ids", action="store_true", help="leave ids as they are, with holes")
    parser.add_argument(
        "--unreachable-first",
        action="store_true",
        help="first the tokens that their own merges cannot make",
    )
    parser.add_argument(
        "--drop-unseen-characters",
        action="store_true",
        help="Unigram, WordPiece: single characters that the corpus does not have may go too",
    )
    add_complete_bytes(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would go, write nothing")
    add_pattern(parser)
    add_output(parser, what="folder to write", required=False)
    add_threads(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Prune and write the output folder."""
    from vocabshift.cli.console import print_line, progress_bar
    from vocabshift.workflows.prune import prune_to_folder

    _check(args)
    source = source_of(args) if args.corpus or args.counts else None
    # The steps of a search are no bytes.
    with progress_bar(in_bytes=args.until is None) as progress:
        result = prune_to_folder(
            tokenizer_of(args),
            source,
            None if args.dry_run else args.out,
            n_tokens=args.n_tokens,
            vocab_size=args.vocab_size,
            until=args.until,
            held_out=None if args.held_out is None else held_out_of(args),
            model=args.model,
            dtype=args.dtype,
            device=args.device,
            order=args.order,
            keep=args.keep or (),
            keep_ids=args.keep_ids,
            unreachable_first=args.unreachable_first,
            drop_unseen_characters=args.drop_unseen_characters,
            complete_bytes=args.complete_bytes,
            base=args.tokenizer,
            threads=threads(args),
            force=args.force,
            progress=progress,
            **({} if args.by is None else {"by": args.by}),
        )
    for warning in result["warnings"]:
        print_line(f"warning: {warning}")
    return result


def _check(args: argparse.Namespace) -> None:
    """UsageError for flags that are missing or contradict each other."""
    from vocabshift.workflows.prune import NEED_COUNTS

    see = f"(see: {args.parser.prog} --help)"
    if sum(size is not None for size in (args.n_tokens, args.vocab_size, args.until)) != 1:
        raise UsageError(f"give --n-tokens, --vocab-size or --until, one of them {see}")
    if (args.until is None) != (args.held_out is None):
        raise UsageError(f"--until is measured on --held-out: give both, or none of them {see}")
    if args.until is None and (args.by or args.model):
        raise UsageError(f"--by and --model are for --until {see}")
    if args.dry_run == bool(args.out):
        raise UsageError(f"give -o DIR, or --dry-run, which writes nothing {see}")
    if not (args.corpus or args.counts) and args.order in NEED_COUNTS:
        raise UsageError(
            f"--order {args.order} looks at text: --corpus (or --counts) is required {see}"
        )
    if (flags := words_of(args)) and not (args.corpus or args.counts):
        raise UsageError(f"{flags[0]} looks at text: --corpus is required {see}")
    if args.drop_unseen_characters and not args.corpus:
        raise UsageError(f"--drop-unseen-characters looks at text: --corpus is required {see}")


def step_of(result: dict[str, Any], n_removed: int) -> dict[str, Any]:
    """The step of the search that removed so many tokens."""
    return next(step for step in result["steps"] if step["n_removed"] == n_removed)


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from rich.table import Table
    from rich.text import Text

    from vocabshift.cli.summary import lost_facts, shell_line, show_summary

    scripts = [row for row in result["removed_by_script"] if row["removed"]]
    if scripts:
        table = Table("", title=Text("removed by script", style="bold"), title_justify="left")
        for column in ("removed", "of", "share"):
            table.add_column(column, justify="right")
        for row in scripts[:_MOST_SCRIPTS]:
            share = row["removed"] / row["tokens"]
            cells = (f"{row['removed']:,}", f"{row['tokens']:,}", f"{share:.1%}")
            table.add_row(Text(row["name"]), *cells)
        if len(scripts) > _MOST_SCRIPTS:
            others = scripts[_MOST_SCRIPTS:]
            removed = sum(row["removed"] for row in others)
            tokens = sum(row["tokens"] for row in others)
            cells = (f"{removed:,}", f"{tokens:,}", f"{removed / tokens:.1%}")
            table.add_row(Text(f"{len(others)} others"), *cells)
        console.print(table)
    facts = {
        "written to": result["out"] or "nothing (--dry-run)",
        "kind": result["kind"],
        "order": result["order"],
        "removed": result["n_removed"],
        "decided by a tie alone": result["n_decided_by_ties"],
        "could have been removed": result["n_removable"],
        "tokens of the model": result["vocab_size"],
        "embedding rows": result["rows"],
        "unreachable, before": result["unreachable_before"],
        "unreachable, after": result["unreachable_after"],
    }
    facts |= lost_facts(result)
    for row in result["languages"]:
        before, after = row["bytes_per_token_before"], row["bytes_per_token_after"]
        label = row["language"] or "all text"
        facts[f"bytes per token, {label}"] = f"{before:.4f} -> {after:.4f}"
    if result["steps"]:
        before, after = (step_of(result, n) for n in (0, result["n_removed"]))
        for label, value in before["values"].items():
            what = f"held out, {args.by or 'bits-per-byte'}, {label}"
            facts[what] = f"{value:.4f} -> {after['values'][label]:.4f}"
        facts["vocabularies tried"] = len(result["steps"]) - 1
    if result["round_trip_documents"]:
        failures, documents = result["round_trip_failures"], result["round_trip_documents"]
        facts["documents that come back as before"] = f"{documents - failures:,} of {documents:,}"
    then = (
        shell_line("vocabshift", "transfer", "MODEL", result["out"], "-o", "DIR")
        if result["out"]
        else "the same with -o DIR, which writes it"
    )
    show_summary(console, "prune", facts, then)
