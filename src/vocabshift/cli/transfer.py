"""`vocabshift transfer`: move a model onto another tokenizer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cli.adapters import move_adapter, show_moved
from vocabshift.cli.distill import add_distill, distill_of, distilled_facts
from vocabshift.cli.inputs import add_errors, add_pattern, text_of, tokenizer_of
from vocabshift.cli.options import (
    Parser,
    UsageError,
    add_complete_bytes,
    add_many,
    add_output,
    add_verb,
    positive,
)

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 8  # tokens of each printed list


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "transfer",
        "move a model onto another tokenizer",
        "Give a language model the embeddings that another tokenizer needs, and write\n"
        "model and tokenizer as one folder. Of a quantized model all but embeddings and head is\n"
        "copied byte for byte; these must not be quantized. Needs the [hf] extra.\n"
        "Of a GGUF file, rows of tokens are dropped and reordered as they are stored: TOKENIZER\n"
        "is what prune made of the file's own. Needs the [gguf] extra.\n"
        "Of a LoRA adapter (MODEL) that was trained before a transfer, rows of tokens are moved:\n"
        "TOKENIZER is the folder of the transferred model.",
        "  vocabshift transfer models/llama runs/ist --init distill --corpus hi=hindi.txt "
        "en=english.txt -o llama-ist\n"
        "  vocabshift transfer llama-ist-trained --back --initial models/llama -o llama-back\n",
    )
    parser.later(_add_options)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def _add_options(parser: Parser) -> None:
    from vocabshift.workflows.transfer import AUTO, INITIALIZERS, TransferOptions, init_names

    parser.add_argument("model", metavar="MODEL", help="model folder, Hub name, or GGUF file")
    parser.add_argument(
        "tokenizer", metavar="TOKENIZER", nargs="?", help="the tokenizer that it is to have"
    )
    parser.add_argument(
        "--init",
        choices=init_names(),
        help="the row of a new token; "
        + "; ".join(f"{each.name}: {each.summary}" for each in INITIALIZERS.values())
        + f"; {AUTO}: the best of these on --text (default: {TransferOptions.init})",
    )
    add_many(parser, "--text", metavar="SPEC", help="for auto: text to try initializers on")
    add_many(
        parser,
        "--corpus",
        metavar="SPEC",
        help="for focus and distill: text in the languages of the new tokenizer",
    )
    add_errors(parser)
    parser.add_argument("--donor", metavar="MODEL", help="for omp: a model with the new tokens")
    parser.add_argument(
        "--overrides",
        metavar="FILE",
        help="JSON or TOML: new token (or id:N) -> old token or id, or a list of pieces",
    )
    parser.add_argument(
        "--back",
        action="store_true",
        help="undo a transfer: the tokenizer of --initial again, with MODEL's rows for what it "
        "has of it",
    )
    parser.add_argument("--initial", metavar="MODEL", help="for --back: the model before")
    parser.add_argument(
        "--pad-to-multiple-of",
        type=int,
        metavar="N",
        help="rows become a multiple of it; left out: padded as the model was",
    )
    parser.add_argument(
        "--reserve-dummies",
        type=positive,
        metavar="N",
        help="also add N tokens that no text has: after training, `vocabshift glitch` compares "
        "with them (10 are enough for a mean, 50 for a threshold)",
    )
    add_complete_bytes(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, and write nothing"
    )
    parser.add_argument(
        "--details",
        action="store_true",
        help="list every token that is kept, added, removed or ambiguous (--json: all of them, "
        "megabytes for large vocabularies; else a few of each)",
    )
    parser.add_argument(
        "--hard-links",
        action="store_true",
        help="link shards that do not change instead of copying them, where the disk can; they "
        "are then the same files as the model's",
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh after a run that was killed"
    )
    add_distill(parser)
    add_pattern(parser)
    add_output(parser, what="folder to write; of a GGUF file, a file")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Transfer and write the output folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.adapters import is_adapter
    from vocabshift.workflows.transfer import (
        TransferOptions,
        transfer_back_to_folder,
        transfer_to_folder,
    )

    distill = distill_of(args)
    if args.back or args.initial:
        given = [args.tokenizer, *_given(args, "pattern")]
        if not (args.back and args.initial) or any(given):
            raise UsageError(
                "--back takes no TOKENIZER, no other option but --force, and needs --initial: "
                "vocabshift transfer MODEL --back --initial OLD_MODEL -o DIR"
            )
        return transfer_back_to_folder(args.model, args.initial, args.out, force=args.force)
    if not args.tokenizer:
        raise UsageError(
            "TOKENIZER is required, or --back --initial OLD_MODEL (see: vocabshift transfer --help)"
        )
    if Path(args.model).suffix == ".gguf":
        return _of_gguf(args)
    if is_adapter(args.model):
        return move_adapter(args, _given(args, "pattern"))
    options = TransferOptions(
        init=args.init or TransferOptions.init,
        pad_to_multiple_of=args.pad_to_multiple_of,
        donor=args.donor,
        corpus=text_of(args.corpus, args) if args.corpus else None,
        overrides=args.overrides or None,
        reserve_dummies=args.reserve_dummies or TransferOptions.reserve_dummies,
        complete_bytes=args.complete_bytes,
        distill=distill,
    )
    with progress_bar(unit="tokens") as progress:
        return transfer_to_folder(
            args.model,
            tokenizer_of(args),
            args.out,
            options,
            text=text_of(args.text, args) if args.text else None,
            tokenizer_source=args.tokenizer,
            force=args.force,
            hard_links=args.hard_links,
            resume=not args.no_resume,
            dry_run=args.dry_run,
            with_details=args.details,
            progress=progress,
        )


def _given(args: argparse.Namespace, *also: str) -> list[str]:
    """Flags for which GGUF files, adapters and --back have no use, where given, and `also`."""
    names = (
        *("init", "text", "corpus", "donor", "overrides", "pad_to_multiple_of", "reserve_dummies"),
        *("complete_bytes", "dry_run", "details", "hard_links", "no_resume", *also),
    )
    return [name for name in names if getattr(args, name)]


def _of_gguf(args: argparse.Namespace) -> dict[str, Any]:
    """Drop and reorder rows of a GGUF file."""
    import vocabshift as vs
    from vocabshift.cli.console import progress_bar

    given = _given(args)
    if given:
        flag = given[0].replace("_", "-")
        raise UsageError(
            f"--{flag} is of no use for a GGUF file, which only loses tokens; for more, write it "
            "as a folder first: vocabshift convert FILE.gguf -o DIR"
        )
    with progress_bar(in_bytes=True) as progress:
        return vs.transfer_gguf(
            args.model,
            args.tokenizer,
            args.out,
            pattern=args.pattern,
            force=args.force,
            progress=progress,
        )


def _show_gguf(result: dict[str, Any], console: Console) -> None:
    from vocabshift.cli.summary import shell_line, show_summary

    facts = {
        "written to": result["out"],
        "tokens, added ones too": result["vocab_size"],
        "rows copied": result["n_copied"],
        "rows dropped": result["n_removed"],
        "ids that moved": result["n_moved"],
        **{name: f"{kind}, as in the file" for name, kind in result["tables"].items()},
        "output head": "tied to the embeddings" if result["tied"] else "of its own",
        "size": _sizes(result),
    }
    show_summary(console, "transfer", facts, shell_line("llama-cli", "-m", result["out"]))


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import file_facts, lost_facts, shell_line, show_summary

    if "tables" in result:
        (show_moved if "n_rows_moved" in result else _show_gguf)(result, console)
        return
    if "tried" in result:
        console.print(_table(result["tried"]))
    facts = {
        "written to": result["out"],
        "tokens, added ones too": result["vocab_size"],
        "embedding rows": result["rows"],
        "rows copied": result["n_copied"],
        f"rows made ({result['init']})": result["n_initialized"],
        **_made_otherwise(result),
        **distilled_facts(result),
        "rows dropped": result["n_removed"],
        "several old tokens fit": result["n_ambiguous"],
        "output head": "tied to the embeddings" if result["tied"] else "of its own",
    }
    facts |= lost_facts(result)
    if "tokenizer_code" in result:
        # transformers overrides the tokenizer class of these model types: see
        # tokenizer/pretrained_folder.py.
        facts["tokenizer class"] = (
            f"{result['tokenizer_code']} (this model type needs it; tried with transformers 4.57 "
            "and 5.23, where nothing asks for trust_remote_code)"
        )
    facts |= {"ids that moved": result["n_moved"], "size": _sizes(result)}
    facts |= file_facts(result)
    for name, rows in result.get("details", {}).items():
        sample = [row["token"] for row in rows[:: max(1, len(rows) // _SHOWN)]][:_SHOWN]
        tokens = " ".join(repr(token) for token in sample)
        facts[f"{name}, for example"] = f"{tokens} (of {len(rows):,})" if rows else "none"
    for number, note in enumerate(result["notes"], 1):
        facts[f"note {number}"] = note
    if result["dry_run"]:
        facts = {"written": "nothing: a dry run"} | facts
    then = shell_line("vocabshift", "score", result["out"], "--text", "SPEC")
    then += ", and vocabshift cpt to train it"
    if result["dry_run"]:
        then = "the same without --dry-run"
    show_summary(console, "transfer", facts, then)


def _made_otherwise(result: dict[str, Any]) -> dict[str, str]:
    """What is said of new tokens that are not made of the old tokens of their own bytes."""
    facts = {}
    if result["n_described"]:
        facts["of them made of a description"] = f"{result['n_described']:,}"
    if result["n_by_mean"]:
        facts["of them without an old token"] = (
            f"{result['n_by_mean']:,}: the old tokenizer lacks their bytes; they get the mean of "
            "the old rows, unless the initializer knows more"
        )
    return facts


def _sizes(result: dict[str, Any]) -> str:
    before, after = result["bytes_before"], result["bytes_after"]
    if not before:
        return "not measured (the model was loaded)"
    change = (after - before) / 1e6
    return f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after ({change:+,.1f})"


def _table(tried: list[dict[str, Any]]) -> Any:
    """The initializers that `auto` tried, best first."""
    from rich.table import Table

    table = Table(title="bits per byte before any training")
    table.add_column("init")
    table.add_column("bits per byte", justify="right")
    for row in tried:
        table.add_row(row["init"], f"{row['bits_per_byte']:.4f}")
    return table
