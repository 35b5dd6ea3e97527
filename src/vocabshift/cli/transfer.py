"""`vocabshift transfer`: move a model onto another tokenizer."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError, add_many, add_output, add_verb, positive
from vocabshift.cli.subjects import add_pattern, load_all
from vocabshift.surgery.methods import INITIALIZERS, init_names
from vocabshift.surgery.options import AUTO, TransferOptions

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from vocabshift.surgery.report import TransferReport

_SHOWN = 8  # tokens of each list that people see

_KEYS = ("n_copied", "n_initialized", "n_removed", "tied", "vocab_size", "rows")


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "transfer",
        "move a model onto another tokenizer",
        "Give a causal language model the embeddings that another tokenizer needs, and write\n"
        "model and tokenizer as one folder. Needs the [hf] extra.",
        "  vocabshift transfer models/llama runs/ist --init auto --text hi=hindi.txt -o llama-ist\n"
        "  vocabshift transfer llama-ist-trained --back --initial models/llama -o llama-back\n",
    )
    parser.add_argument("model", metavar="MODEL", help="model folder or Hub name")
    parser.add_argument(
        "tokenizer", metavar="TOKENIZER", nargs="?", help="the tokenizer that it is to have"
    )
    parser.add_argument(
        "--init",
        choices=init_names(),
        default=TransferOptions.init,
        help="the row of a new token; "
        + "; ".join(f"{each.name}: {each.summary}" for each in INITIALIZERS.values())
        + f"; {AUTO}: the best of these on --text (default: %(default)s)",
    )
    add_many(parser, "--text", metavar="SPEC", help="for auto: text to try initializers on")
    add_many(parser, "--corpus", metavar="SPEC", help="for focus: text of the new tokenizer")
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
    add_pattern(parser)
    add_output(parser, what="folder to write")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Transfer and write the folder."""
    from pathlib import Path

    from vocabshift.storage.output import check_free
    from vocabshift.surgery.transfer import transfer_folder
    from vocabshift.tokenizer import id_map

    names = (args.model, args.tokenizer, args.initial, args.donor, args.overrides)
    out = check_free(Path(args.out), force=args.force, inputs=filter(None, names))
    if args.back or args.initial:
        from vocabshift.surgery.back import transfer_back_folder

        is_alone = not (args.tokenizer or args.dry_run or args.details or args.reserve_dummies)
        if not (args.back and args.initial and is_alone):
            raise UsageError(
                "--back takes no TOKENIZER (nor --dry-run, --details, --reserve-dummies) and needs "
                "--initial: vocabshift transfer MODEL --back --initial OLD_MODEL -o DIR"
            )
        back = transfer_back_folder(args.model, args.initial, out, force=args.force)
        return _result(out, back, dry_run=False)
    if not args.tokenizer:
        raise UsageError(
            "TOKENIZER is required, or --back --initial OLD_MODEL (see: vocabshift transfer --help)"
        )
    tokenizer = _load(args)
    options = TransferOptions(
        init=args.init,
        pad_to_multiple_of=args.pad_to_multiple_of,
        id_map=id_map.find(args.tokenizer),
        overrides=args.overrides or None,
        reserve_dummies=args.reserve_dummies or TransferOptions.reserve_dummies,
        **_sources(args),
    )
    details = _details(args, tokenizer, options) if args.details else {}
    report = transfer_folder(
        args.model,
        tokenizer,
        out,
        options,
        force=args.force,
        hard_links=args.hard_links,
        resume=not args.no_resume,
        dry_run=args.dry_run,
    )
    return _result(out, report, dry_run=args.dry_run) | details


def _details(args: argparse.Namespace, tokenizer: Any, options: TransferOptions) -> dict[str, Any]:
    """The lists of tokens, by name."""
    from vocabshift.surgery.details import token_lists

    return {"details": token_lists(args.model, tokenizer, options).to_dict()}


def _result(out: Path, report: TransferReport, *, dry_run: bool) -> dict[str, Any]:
    """The contract's keys and what else there is to say."""
    result = {"out": str(out), **{key: getattr(report, key) for key in _KEYS}}
    result |= {"init": report.init, "n_overridden": report.n_overridden}
    result |= {"n_ambiguous": len(report.ambiguous)}
    result["ambiguous"] = [
        {"id": new_id, "old_ids": old_ids} for new_id, old_ids in report.ambiguous.items()
    ]
    result |= {"dry_run": dry_run, "notes": [] if dry_run else _notes(out)}
    for key in ("n_moved", "bytes_before", "bytes_after", "files"):
        result[key] = getattr(report, key)
    if report.tried:
        result["tried"] = [
            {"init": init, "bits_per_byte": price} for init, price in report.tried.items()
        ]
    if (out / "tokenization_vs.py").exists():
        result["tokenizer_code"] = str(out / "tokenization_vs.py")
    return result


def _notes(out: Path) -> list[str]:
    """What the output says of other programs; nothing after a dry run."""
    import json

    file = out / "vocabshift.json"
    if not file.exists():
        return []
    return list(json.loads(file.read_text(encoding="utf-8"))["figures"]["notes"])


def _sources(args: argparse.Namespace) -> dict[str, Any]:
    """What auto, focus and omp need, as far as it is given."""
    from vocabshift.storage.output import check_free
    from vocabshift.text.corpus import Corpus

    sources: dict[str, Any] = {}
    if args.text:
        from vocabshift.workflows.transfer import bits_per_byte

        text = Corpus.from_specs(args.text)
        check_free(args.out, force=args.force, inputs=text.paths)
        sources["score"] = bits_per_byte(text)
    if args.corpus:
        sources["corpus"] = Corpus.from_specs(args.corpus)
    if args.donor:
        sources["donor"] = args.donor
    return sources


def _load(args: argparse.Namespace) -> Any:
    """The new tokenizer: BPE of any kind, or a pruned Unigram or WordPiece one."""
    from vocabshift.errors import InvalidTokenizerError
    from vocabshift.tokenizer.formats.load import open_tokenizer

    try:
        return load_all([args.tokenizer], args.pattern)[0]
    except InvalidTokenizerError:
        if args.pattern is not None:
            raise
        return open_tokenizer(args.tokenizer)


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Summary for people."""
    from vocabshift.cli.console import show_summary

    if "tried" in result:
        console.print(_table(result["tried"]))
    facts = {
        "written to": result["out"],
        "vocabulary": result["vocab_size"],
        "embedding rows": result["rows"],
        "rows copied": result["n_copied"],
        f"rows made ({result['init']})": result["n_initialized"],
        "rows dropped": result["n_removed"],
        "several old tokens fit": result["n_ambiguous"],
        "output head": "tied to the embeddings" if result["tied"] else "of its own",
    }
    if "tokenizer_code" in result:
        # transformers overrides the tokenizer class of these model types: see
        # tokenizer/pretrained_folder.py.
        facts["tokenizer class"] = (
            f"{result['tokenizer_code']} (this model type needs it; tried with transformers 4.57 "
            "and 5.23, where nothing asks for trust_remote_code)"
        )
    facts |= {"ids that moved": result["n_moved"], "size": _sizes(result)}
    for file, done in sorted(result["files"].items()):
        facts[file] = done
    for name, rows in result.get("details", {}).items():
        sample = [row["token"] for row in rows[:: max(1, len(rows) // _SHOWN)]][:_SHOWN]
        tokens = " ".join(repr(token) for token in sample)
        facts[f"{name}, for example"] = f"{tokens} (of {len(rows):,})" if rows else "none"
    for number, note in enumerate(result["notes"], 1):
        facts[f"note {number}"] = note
    if result["dry_run"]:
        facts = {"written": "nothing: a dry run"} | facts
    show_summary(console, "transfer", facts, f"vocabshift evaluate {result['out']} --text SPEC")


def _sizes(result: dict[str, Any]) -> str:
    before, after = result["bytes_before"], result["bytes_after"]
    if not before:
        return "not measured (the model was loaded)"
    change = (after - before) / 1e6
    return f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after ({change:+,.1f})"


def _table(tried: list[dict[str, Any]]) -> Any:
    """The initializers that auto tried, the best one first."""
    from rich.table import Table

    table = Table(title="bits per byte before any training")
    table.add_column("init")
    table.add_column("bits per byte", justify="right")
    for row in tried:
        table.add_row(row["init"], f"{row['bits_per_byte']:.4f}")
    return table
