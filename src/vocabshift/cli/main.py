"""The command line: registers the verbs, runs one, and maps its outcome to an exit status.

0: success; 2: bad arguments or input (one line on stderr); 1: an internal error; 130: Ctrl-C. A
verb is a function that adds a parser, and with it `run(args) -> dict` (the `--json` object) and
`show(args, result, console)` for people; verbs of one kind share a file. It imports the public API
and the workflows, and nothing below them. Both import their dependencies on first use, so `--help`
is fast.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

import vocabshift
from vocabshift.cli import (
    adapt,
    adapters,
    console,
    convert,
    cpt,
    decide,
    demo,
    evaluate,
    extend,
    harness,
    language_pack,
    models,
    plan,
    prepare,
    prune,
    publish,
    score,
    teach,
    tokenizers,
    train,
    transfer,
)
from vocabshift.cli.config import config_first
from vocabshift.cli.options import Parser, UsageError, check_inputs_stay
from vocabshift.errors import regex_bound

VERBS = (
    *(demo.add_parser, evaluate.add_normalize, prepare.add_count, train.add_parser),
    *(plan.add_parser, decide.add_parser, extend.add_parser, prune.add_parser, adapt.add_parser),
    *(transfer.add_parser, adapters.add_merge, language_pack.add_parser, convert.add_parser),
    *(evaluate.add_evaluate, tokenizers.add_compare, publish.add_tables),
    *(tokenizers.add_check, demo.add_serve, publish.add_card, publish.add_publish),
    *(prepare.add_encode, teach.add_parser, cpt.add_parser, score.add_parser, harness.add_parser),
    *(models.add_glitch, models.add_latency, score.add_draft_vocab),
)


def build_parser() -> Parser:
    """Build the parser of all verbs."""
    parser = Parser(
        prog="vocabshift",
        description="Give a pretrained language model a better tokenizer and keep the model.",
        epilog=(
            "examples:\n"
            "  vocabshift demo\n"
            "  vocabshift train --recipe ist --corpus hi=hindi.txt en=english.txt "
            "--vocab-size 32000 -o ist\n"
        ),
    )
    parser.add_argument(
        "--version", action="version", version=f"vocabshift {vocabshift.__version__}"
    )
    subparsers = parser.add_subparsers(
        title="verbs", metavar="VERB", dest="verb", required=True, parser_class=Parser
    )
    for add in VERBS:
        add(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(words)
        sys.stdout.flush()  # here, where a full disk can still be reported
    except BrokenPipeError:  # the reader closed the pipe
        _close_stdout()
        return 0
    except (Exception, KeyboardInterrupt) as error:
        try:
            sys.stdout.flush()
        except OSError:  # a full disk: the buffer cannot be written
            _close_stdout()
        return console.report_error(error, with_traceback="--traceback" in words)
    return status


def _run(words: Sequence[str]) -> int:
    if not words:
        raise UsageError("name a verb, such as: vocabshift demo (see: vocabshift --help)")
    try:
        args: argparse.Namespace = build_parser().parse_args(config_first(words))
    except SystemExit:  # argparse, after --help and --version
        return 0
    if getattr(args, "force", False) and getattr(args, "out", None) is not None:
        check_inputs_stay(args.out, vars(args).values())
    # Libraries may print to stdout; with --json, stdout is reserved for the one object.
    quiet = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    # regex_bound: a panic of `tokenizers` that was not caught nearer to it
    with quiet, regex_bound(), console.plain_warnings():
        result = args.run(args)
    if args.json:
        console.print_json(result)
    else:
        args.show(args, result, console.stdout())
    return int(args.status(args, result))


def _close_stdout() -> None:
    """Redirect stdout to the null device, so that the interpreter's last flush cannot fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
