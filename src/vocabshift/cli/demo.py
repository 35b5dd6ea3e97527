"""The verbs that show something: `vocabshift demo` and `serve`.

The whole pipeline on text that comes with the package; and the playground, a local page that shows
how tokenizers split text.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_pattern
from vocabshift.cli.options import UsageError, add_output, add_verb
from vocabshift.workflows.tokenizers import load_named

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_FOLDER = "vocabshift-demo"


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "demo",
        "train, transfer, continue and measure, on text in the package",
        "Train an IST tokenizer on sample text in the package, move a small Llama onto it, "
        "continue\nits training and print what changed. Needs the [hf] extra and a few minutes.",
        "  vocabshift demo\n  vocabshift demo -o walk --force --json\n",
    )
    add_output(parser, what=f"folder to write (default: {DEFAULT_FOLDER})", required=False)
    parser.set_defaults(out=DEFAULT_FOLDER, run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the demo, which reports its own progress."""
    from vocabshift.demo.walk import run_demo

    return dict(run_demo(args.out, force=args.force, json=args.json))


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print nothing: the demo has printed its own summary."""


MOST_TOKENIZERS = 12
SAMPLE_LINES = 3
SEVERAL_SCRIPTS = ("hin", "tam", "mal", "urd", "sat", "eng")


def add_serve(subparsers: Any) -> None:
    """Add the verb `serve`."""
    parser = add_verb(
        subparsers,
        "serve",
        "a local page: type, and see the tokens of several tokenizers",
        "Open a page in the browser where you type and see how several tokenizers cut the text:\n"
        "coloured tokens, counts, ids, bytes, and how BPE built a token, merge by merge. Nothing\n"
        "leaves this machine: the page is served on 127.0.0.1 alone. Ctrl-C ends it. Needs the\n"
        "[serve] extra. With --json the address and the process id are printed as one object,\n"
        "and no browser is opened.",
        "  vocabshift serve ist meta-llama/Llama-3.2-1B\n"
        "  vocabshift serve ist qwen/tokenizer.json --port 8017 --no-browser\n",
    )
    parser.add_argument("tokenizers", metavar="TOKENIZER", nargs="+", help="folder, file, Hub name")
    parser.add_argument(
        "--port", metavar="N", type=_port, default=0, help="port (default: 0, any that is free)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_pattern(parser)
    parser.set_defaults(run=run_serve, show=show_serve, status=status_serve)


def run_serve(args: argparse.Namespace) -> dict[str, Any]:
    """Load the tokenizers and bind the address; `status` serves once the address is printed."""
    from vocabshift import open_playground
    from vocabshift.demo.story import beginnings

    if len(args.tokenizers) > MOST_TOKENIZERS:
        raise UsageError(f"the page has room for {MOST_TOKENIZERS} tokenizers; name fewer")
    tokenizers = load_named(args.tokenizers, pattern=args.pattern)
    texts = beginnings(SAMPLE_LINES)
    several = "\n".join(texts[language][0] for language in SEVERAL_SCRIPTS)
    args.server = open_playground(tokenizers, texts, several=several, port=args.port)
    return {"url": args.server.url, "pid": os.getpid(), "tokenizers": list(tokenizers)}


def show_serve(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the address of the page."""
    from rich.text import Text

    console.print(Text(result["url"], style="bold"), soft_wrap=True)
    console.print(Text(f"{', '.join(result['tokenizers'])}; Ctrl-C ends it"), soft_wrap=True)


def status_serve(args: argparse.Namespace, _result: dict[str, Any]) -> int:
    """Serve until interrupted, which is the normal way to stop: returns 0."""
    sys.stdout.flush()  # the caller is waiting for the address
    args.server.run(open_browser=not (args.no_browser or args.json) and _has_display())
    return 0


def _has_display() -> bool:
    """Whether there is a display; without one Python may start a browser in the terminal."""
    if sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _port(text: str) -> int:
    """Parse a port number, as argparse's `type`."""
    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)
