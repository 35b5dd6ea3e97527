"""`vocabshift language-pack`: tables and tokenizer of a model, without the body of its base."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError, add_output, add_verb

if TYPE_CHECKING:
    from rich.console import Console


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "language-pack",
        "keep a model's tables and tokenizer, and put them on its base again",
        "Write what a model has and its base has not: embeddings, head and tokenizer, as training\n"
        'with `trained = "embeddings"` or `"new-rows"` leaves them. Of tables that share rows\n'
        "with the base, only the others are kept. --apply makes the model of base and pack again,\n"
        "bit for bit. Refused are a model whose body differs from the base, and another base.\n"
        "A pack is safetensors and JSON; no code in it is run.",
        "  vocabshift language-pack llama-hindi --base models/llama -o hindi-pack\n"
        "  vocabshift language-pack --apply hindi-pack --base models/llama -o llama-hindi-again\n"
        "  vocabshift language-pack --info hindi-pack --json\n",
    )
    parser.add_argument("model", metavar="MODEL", nargs="?", help="model folder or Hub name")
    parser.add_argument("--base", metavar="BASE", help="the model that it was made of")
    parser.add_argument("--apply", metavar="PACK", help="write the model of BASE and this pack")
    parser.add_argument("--info", metavar="PACK", help="say what is in this pack, and stop")
    parser.add_argument(
        "--dry-run", action="store_true", help="compare everything, and write nothing"
    )
    parser.add_argument(
        "--hard-links",
        action="store_true",
        help="for --apply: link files of weights that are the base's instead of copying them",
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="for --apply: start afresh after a killed run"
    )
    add_output(parser, what="folder to write", required=False)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Make a pack, apply one, or read one."""
    import vocabshift as vs
    from vocabshift.cli.console import progress_bar

    given = [name for name in ("model", "apply", "info") if getattr(args, name)]
    if len(given) != 1:
        raise UsageError(
            "give one of MODEL, --apply PACK and --info PACK (see: vocabshift language-pack --help)"
        )
    if args.info:
        return vs.read_language_pack(args.info)
    if not (args.base and args.out):
        raise UsageError(
            "--base BASE and -o DIR are required (see: vocabshift language-pack --help)"
        )
    if args.model and (args.hard_links or args.no_resume):
        raise UsageError("--hard-links and --no-resume are of --apply; leave them out")
    with progress_bar(in_bytes=True) as progress:
        if args.model:
            return vs.make_language_pack(
                args.model,
                args.base,
                args.out,
                force=args.force,
                dry_run=args.dry_run,
                progress=progress,
            )
        return vs.apply_language_pack(
            args.apply,
            args.base,
            args.out,
            force=args.force,
            hard_links=args.hard_links,
            resume=not args.no_resume,
            dry_run=args.dry_run,
            progress=progress,
        )


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    from vocabshift.cli.summary import file_facts, shell_line, show_summary

    pack, whole = result["bytes_of_pack"], result["bytes_of_model"]
    facts = {"written": "nothing: a dry run"} if result.get("dry_run") else {}
    facts |= {
        **({"written to": result["out"]} if "out" in result else {}),
        "model": result["model"],
        "base": result["base"],
        "tensors of the base": result["n_base_tensors"],
    }
    for table in result.get("tables", ()):
        kept = f", {table['rows_of_base']:,} as in the base" if table["rows_of_base"] else ""
        size = f"{table['bytes_in_pack'] / 1e6:,.1f} of {table['n_bytes'] / 1e6:,.1f} MB"
        facts[table["called"]] = f"{table['rows']:,} rows{kept}; {size}"
    share = f" ({pack / whole:.1%})" if whole else ""
    facts["size of the pack"] = f"{pack / 1e6:,.1f} MB, the model {whole / 1e6:,.1f} MB{share}"
    facts |= file_facts({"left_out": {}, **result})
    then = shell_line("vocabshift", "score", args.out, "--text", "SPEC")
    if result.get("dry_run"):
        then = "the same without --dry-run"
    elif not args.apply:
        place = args.info or args.out
        words = ["--apply", place, "--base", args.base or "BASE", "-o", "DIR"]
        then = shell_line("vocabshift", "language-pack", *words)
    show_summary(console, "language pack", facts, then)
