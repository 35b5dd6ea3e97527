"""`vocabshift extend`: add new words to an existing tokenizer.

Owns the verb's flags and its summary.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.fields import add_fields, flags_of, given
from vocabshift.cli.inputs import (
    add_names,
    add_pattern,
    add_source,
    held_out_of,
    names_of,
    require_source,
    source_of,
    tokenizer_of,
)
from vocabshift.cli.options import (
    Parser,
    UsageError,
    add_output,
    add_threads,
    add_verb,
    positive,
    threads,
)

if TYPE_CHECKING:
    from rich.console import Console


REASONS = {
    "n_tokens": "as many as asked for",
    "min_frequency": "no pair is left that occurs often enough",
    "no_token_left": "the auxiliary tokenizer has no more",
    "no_pair_left": "no pair is left in this text: every pre-token is one token",
}


def language_table(result: dict[str, Any]) -> Any:
    """Bytes per token before and after, by language, with the upper bound."""
    from rich.table import Table
    from rich.text import Text

    other = result["other_pre_tokenizer"]
    is_changed = bool(other) and other["pre_tokenizer"] == "kept"
    table = Table(title=Text("bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    changed = "no new token" if "deployable" in result else "repaired, no new token"
    before = ("as it was", changed) if is_changed else ("before",)
    for name in (*before, "after", "ceiling", "new tokens used", "share of its tokens"):
        table.add_column(name, justify="right")
    for row in result.get("languages", ()):
        label = row["language"]
        cells = [f"{other['bytes_per_token'][label]:.3f}"] if is_changed else []
        table.add_row(
            label,
            *cells,
            f"{row['bytes_per_token_before']:.3f}",
            Text(f"{row['bytes_per_token']:.3f}", style="bold"),
            f"{row['ceiling_bytes_per_token']:.2f}",
            f"{row['new_tokens_used']:,}",
            f"{row['new_tokens_share']:.1%}",
        )
    return table


def superword_table(effect: dict[str, Any]) -> Any:
    """Effect by language of lifting the space boundary, and of the superwords."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("superwords: bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    for name in (
        "new words alone",
        "with superwords",
        "lines / tokens changed by boundaries",
    ):
        table.add_column(name, justify="right")
    for row in effect["languages"]:
        label = row["language"]
        changed = effect["changed_lines"].get(label, 0.0)
        tokens = effect["changed_tokens"].get(label, 0.0)
        table.add_row(
            label,
            f"{row['bytes_per_token_before']:.3f}",
            Text(f"{row['bytes_per_token']:.3f}", style="bold"),
            f"{changed:.1%} / {tokens:.2%}",
        )
    return table


def advice(result: dict[str, Any]) -> list[str]:
    """Advice about the pre-tokenizer, in sentences."""
    from vocabshift.workflows.extend import WORTHWHILE_LIFT

    other = result["other_pre_tokenizer"]
    if not other:
        return []
    lines = []
    if other["pre_tokenizer"] == "repaired":
        lifted = [
            f"{label} {ceiling:.2f} -> {other['ceilings'][label]:.2f}"
            for label, ceiling in result["ceilings"].items()
            if other["ceilings"][label] > WORTHWHILE_LIFT * ceiling
        ]
        if lifted:
            lines.append(
                "The pre-tokenizer cuts words at combining marks, and no token reaches across. "
                "--pre-tokenizer repaired lifts the ceiling, in bytes per token: "
                + ", ".join(lifted)
                + "."
            )
    drift = result.get("drift")
    if drift:
        changed = ", ".join(
            f"{label} {lines_:.1%} of lines, {drift['changed_tokens'][label]:.2%} of tokens"
            for label, lines_ in drift["changed_lines"].items()
        )
        which = "other" if "deployable" in result else "repaired"
        lines.append(f"The {which} pre-tokenizer alone changes old text: {changed}.")
    return lines


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "extend",
        "give an existing tokenizer new words",
        "Learn new tokens where an existing tokenizer's merges end (continued BPE), and put them\n"
        "after all ids that it has. Every new token is reachable, nothing that is there moves.\n"
        "Where words are cut at combining marks (Llama-3, Qwen3), no number of tokens helps past\n"
        "a ceiling; --pre-tokenizer repaired lifts it, and text without marks stays as it is.\n"
        "--pre-tokenizer deployable does so with the best pattern that llama.cpp has already.\n"
        "Words and special tokens can be given by name too, with or without text to learn from.",
        "  vocabshift extend meta-llama/Llama-3.2-1B --corpus hi=hindi.txt ta=tamil.txt "
        "--n-tokens 16000 --pre-tokenizer repaired -o llama3-indic\n"
        "  vocabshift extend mistralai/Mistral-7B-v0.1 --corpus et=estonian.jsonl.gz "
        "--n-tokens 4000 --json -o mistral-et\n"
        "  vocabshift extend Qwen/Qwen2.5-0.5B --corpus hi=hindi.txt en=english.txt "
        "--n-tokens 8000 --pre-tokenizer deployable -o qwen-hi\n"
        "  vocabshift extend Qwen/Qwen2.5-0.5B --words terms.txt --special "
        "\"<think>=the model's private reasoning\" '<|pad|>' --role 'pad=<|pad|>' -o qwen-terms\n",
    )
    parser.later(_add_options)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def _add_options(parser: Parser) -> None:
    from vocabshift import ExtensionOptions

    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, file or Hub name")
    add_source(parser)
    add_fields(parser, ExtensionOptions)
    parser.add_argument(
        "--superwords",
        metavar="N",
        type=positive,
        help="then so many superwords inside sentences (byte-level; lifts the space boundary)",
    )
    parser.add_argument(
        "--sentencepiece-model",
        metavar="FILE",
        help="tokenizer.model whose rules new pieces obey (default: the one beside the tokenizer)",
    )
    add_names(parser)
    add_pattern(parser)
    add_output(parser, what="folder to write")
    add_threads(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Extend and write the output folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.extend import ExtensionOptions, extend_to_folder

    see = f"(see: {args.parser.prog} --help)"
    named = names_of(args)
    if args.n_tokens is not None or not named:
        require_source(args, see)
    if args.n_tokens is None and not named:
        raise UsageError(f"--n-tokens is required, or --words, or --special {see}")
    if args.held_out and not named.words:
        raise UsageError(f"--held-out is read to measure what --words changes {see}")
    options = given(args, flags_of(ExtensionOptions))
    if options.get("normalizer") == "none":
        del options["normalizer"]
    source = source_of(args) if args.corpus or args.counts else None
    with progress_bar() as progress:
        return extend_to_folder(
            tokenizer_of(args),
            source,
            ExtensionOptions(**options),
            args.out,
            named=named,
            held_out=held_out_of(args) if args.held_out else None,
            n_superwords=args.superwords,
            sentencepiece_model=args.sentencepiece_model,
            inputs=[args.tokenizer, *(args.words or ())],
            threads=threads(args),
            force=args.force,
            progress=progress,
        )


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the gain by language, and what limits it."""
    from vocabshift.cli.summary import (
        deployable_facts,
        lost_facts,
        shell_line,
        show_deployable,
        show_names,
        show_summary,
    )

    if "deployable" in result:
        show_deployable(console, result["deployable"])
    facts = {"written to": result["out"], **deployable_facts(result)}
    if "method" in result:
        console.print(language_table(result))
        for line in advice(result):
            console.print(line, soft_wrap=True)
        facts |= {
            "method": result["method"],
            "stopped because": REASONS[result["stopped_because"]],
        }
    facts["new tokens"] = result["n_added"]
    if "method" in result:
        facts |= {
            "of them for missing characters": result["n_characters"],
            "of them for missing bytes": result["n_bytes_added"],
            "of them unused in this text": result["unused_added"],
            "tokens of the base made reachable": result["n_repaired"],
            "new tokens unreachable": result["unreachable_added"],
        }
    if "by_name" in result:
        facts |= show_names(console, result)
    facts |= {
        "tokens of the model": result["vocab_size"],
        "embedding rows": result["row_count"],
        **lost_facts(result),
    }
    if "superwords" in result:
        effect = result["superword_effect"]
        console.print(superword_table(effect))
        facts["superwords"] = result["superwords"]
        facts["pattern that they are cut by"] = effect["pattern"]
        facts["tokens that no text yields any more"] = effect["tokens_lost"]
    then = shell_line("vocabshift", "check", result["out"]) + "    or    "
    then += shell_line("vocabshift", "transfer", "MODEL", result["out"])
    show_summary(console, "extend", facts, then)
