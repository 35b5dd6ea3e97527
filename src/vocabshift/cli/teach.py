"""`vocabshift teach`: a model's log-probabilities of a corpus, as the teacher of `cpt`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_choices, add_loading, add_windows, corpus_of, defaults_of
from vocabshift.cli.options import add_many, add_output, add_verb

if TYPE_CHECKING:
    from rich.console import Console

_DESCRIPTION = """\
Let a causal language model read a corpus once, and store the log-probability of each of its tokens,
for training another model by `objective = "likelihood-matching"` (see vocabshift cpt). Each
document is read by itself with the model's own tokenizer, after the BOS where its config has one; a
document longer than --context in windows, each repeating --overlap tokens of the one before. Give
the SPECs that `cpt` or `encode` gets, in the same order, also of languages that are not read
(--known). 12 bytes a token are written. A run that was killed resumes when it is started again
(but not from standard input or the Hub)."""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "teach",
        "a teacher's log-probabilities of a corpus, for likelihood matching",
        _DESCRIPTION,
        "  vocabshift teach models/llama hi=hindi.txt en=english.txt -o runs/taught\n"
        "  vocabshift teach models/llama hi=hindi.txt en=english.txt --known en "
        "-o runs/taught\n"
        "  vocabshift teach models/llama 'corpus/*.parquet' --dtype bfloat16 -o runs/taught "
        "--dry-run\n",
    )
    parser.add_argument(
        "model", metavar="MODEL", help="folder or Hub name of a causal language model"
    )
    parser.add_argument("specs", metavar="SPEC", nargs="+", help="[lang=]PATH|DIR|GLOB|hf:DATASET")
    add_many(
        parser,
        "--known",
        metavar="L",
        help="languages that MODEL knows (default: all); it reads their text alone, and the rest "
        "is learned by next-token loss",
    )
    add_choices(parser)
    add_windows(parser)
    add_loading(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="count, measure the speed on a little text, and stop"
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh, whatever an earlier run finished"
    )
    add_output(parser, what="folder to write")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Read the corpus and write the folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.teach import teach_to_folder

    corpus = corpus_of(args.specs, args)
    with progress_bar(unit="tokens") as progress:
        return teach_to_folder(
            args.model,
            corpus,
            args.out,
            known=args.known or (),
            context=args.context,
            overlap=args.overlap,
            batch_tokens=args.batch_tokens or defaults_of(teach_to_folder)["batch_tokens"],
            dtype=args.dtype,
            device=args.device,
            dry_run=args.dry_run,
            force=args.force,
            resume=not args.no_resume,
            progress=progress,
        )


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print what was read, or what reading would cost."""
    from vocabshift.cli.summary import shell_line, show_summary

    facts = {
        "documents": result["n_documents"],
        "bytes of text": result["n_bytes"],
        "tokens": result["n_tokens"],
        "tokens to read, with overlap": result["n_read_tokens"],
        "tokens a second": f"{result['tokens_per_second']:,.0f}",
        "seconds": f"{result['seconds']:,.0f}",
    }
    if result["dry_run"]:
        facts |= {"bytes to write": result["n_output_bytes"], "written": "nothing (--dry-run)"}
        show_summary(console, "teach", facts, "the same without --dry-run")
        return
    facts |= {"bits per byte": f"{result['bits_per_byte']:.4f}"}
    keys = ["objective=likelihood-matching", f"teacher_logprobs={result['out']}"]
    then = shell_line("vocabshift", "cpt", "CONFIG", *keys)
    show_summary(console, "teach", {"written to": result["out"], **facts}, then)
