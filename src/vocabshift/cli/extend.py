"""`vocabshift extend`: new words for an existing tokenizer.

Owns the verb's flags and its summary.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import (
    UsageError,
    add_output,
    add_threads,
    add_verb,
    positive,
    share,
    threads,
)
from vocabshift.cli.source import add_source, require_source, source_of
from vocabshift.cli.subjects import add_pattern, load_all
from vocabshift.extension.options import METHODS, PRE_TOKENIZERS, TIE_BREAKS

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift.tokenizer.tokenizer import Tokenizer


# What `vocabshift extend` shows people: its tables, and advice about the pre-tokenizer.
#
# Knows the verb's result and nothing else.


REASONS = {
    "n_tokens": "as many as asked for",
    "min_frequency": "no pair is left that occurs often enough",
    "no_token_left": "the auxiliary tokenizer has no more",
    "no_pair_left": "no pair is left in this text: every pre-token is one token",
}


def language_table(result: dict[str, Any]) -> Any:
    """Bytes per token before and after, by language, with the most that is possible."""
    from rich.table import Table
    from rich.text import Text

    other = result["other_pre_tokenizer"]
    is_repaired = result["pre_tokenizer"] == "repaired"
    table = Table(title=Text("bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    before = ("as it was", "repaired, no new token") if is_repaired else ("before",)
    for name in (*before, "after", "ceiling", "new tokens used", "share of its tokens"):
        table.add_column(name, justify="right")
    for row in result.get("languages", ()):
        label = row["language"]
        cells = [f"{other['bytes_per_token'][label]:.3f}"] if is_repaired and other else []
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
    """What lifting the space wall changed, and what the superwords brought, by language."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("superwords: bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    for name in ("new words alone", "with superwords", "lines / tokens changed by walls alone"):
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
    """What people should know about the pre-tokenizer."""
    from vocabshift.text.regexes import WORTHWHILE_LIFT

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
        lines.append(f"The repaired pre-tokenizer alone changes old text: {changed}.")
    return lines


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "extend",
        "give an existing tokenizer new words",
        "Learn new tokens where an existing tokenizer's merges end (continued BPE), and put them\n"
        "behind all ids that it has. Every new token is reachable, nothing that is there moves.\n"
        "Where words are cut at combining marks (Llama-3, Qwen3), no number of tokens helps past\n"
        "a ceiling; --pre-tokenizer repaired lifts it, and text without marks stays as it is.",
        "  vocabshift extend meta-llama/Llama-3.2-1B --corpus hi=hindi.txt ta=tamil.txt "
        "--n-tokens 16000 --pre-tokenizer repaired -o llama3-indic\n"
        "  vocabshift extend mistralai/Mistral-7B-v0.1 --corpus et=estonian.jsonl.gz "
        "--n-tokens 4000 --json -o mistral-et\n",
    )
    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, file or Hub name")
    add_source(parser)
    parser.add_argument(
        "--n-tokens", metavar="N", type=positive, required=True, help="tokens to add at most"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="continued",
        help="; ".join(f"{name}: {what}" for name, what in METHODS.items()),
    )
    parser.add_argument(
        "--pre-tokenizer",
        choices=PRE_TOKENIZERS,
        default="kept",
        help="; ".join(f"{name}: {what}" for name, what in PRE_TOKENIZERS.items()),
    )
    parser.add_argument(
        "--tie-break",
        choices=TIE_BREAKS,
        default="id",
        help="; ".join(f"{name}: {what}" for name, what in TIE_BREAKS.items()),
    )
    parser.add_argument(
        "--superwords",
        metavar="N",
        type=positive,
        help="then so many superwords inside sentences (byte-level; lifts the space wall)",
    )
    parser.add_argument("--min-frequency", metavar="N", type=positive, default=1)
    parser.add_argument("--max-token-bytes", metavar="N", type=positive)
    parser.add_argument(
        "--normalizer",
        metavar="STEP[+STEP…]",
        help="of the training text: as in `train`",
    )
    parser.add_argument(
        "--sampling-alpha",
        metavar="A",
        type=share,
        help="languages count in proportion to bytes ** A: 1 as they are, 0.3 nearly alike",
    )
    parser.add_argument(
        "--character-coverage",
        metavar="C",
        type=share,
        help="SentencePiece: share of the text's characters to hold, missing ones first (0.9995)",
    )
    parser.add_argument(
        "--sentencepiece-model",
        metavar="FILE",
        help="tokenizer.model whose rules new pieces obey (default: the one beside the tokenizer)",
    )
    parser.add_argument(
        "--fill-holes",
        action="store_true",
        help="take ids that no token has (as prune --keep-ids leaves them) before new ones",
    )
    add_pattern(parser)
    add_output(parser, what="folder to write")
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Extend and write the folder."""
    from pathlib import Path

    from vocabshift.cli.console import progress_bar
    from vocabshift.storage.output import check_free

    require_source(args, f"(see: {args.parser.prog} --help)")
    inputs = [args.tokenizer] if Path(args.tokenizer).exists() else []
    out = check_free(args.out, force=args.force, inputs=inputs)
    source = source_of(args)
    from vocabshift.extension.options import ExtensionOptions
    from vocabshift.workflows.extend import extend_to_folder

    coverage = (
        {} if args.character_coverage is None else {"character_coverage": args.character_coverage}
    )
    options = ExtensionOptions(
        n_tokens=args.n_tokens,
        method=args.method,
        tie_break=args.tie_break,
        pre_tokenizer=args.pre_tokenizer,
        min_frequency=args.min_frequency,
        max_token_bytes=args.max_token_bytes,
        normalizer=None if args.normalizer == "none" else args.normalizer,
        sampling_alpha=args.sampling_alpha,
        fill_holes=args.fill_holes,
        **coverage,
    )
    tokenizer = args.tokenizer
    if args.pattern or args.sentencepiece_model:
        [tokenizer] = load_all([args.tokenizer], args.pattern)
    if args.sentencepiece_model:
        tokenizer = _with_rules(tokenizer, args.sentencepiece_model)
    with progress_bar() as progress:
        if args.superwords:
            return _with_superwords(args, tokenizer, source, options, progress)
        return extend_to_folder(
            tokenizer,
            source,
            options,
            out,
            threads=threads(args),
            force=args.force,
            progress=progress,
        )


def _with_superwords(
    args: argparse.Namespace, tokenizer: Any, source: Any, options: Any, progress: Any
) -> dict[str, Any]:
    from vocabshift.text.corpus import Corpus
    from vocabshift.workflows.extend_with_superwords import extend_with_superwords_to_folder

    if not isinstance(source, Corpus):
        raise UsageError("--superwords needs the text itself; give --corpus")
    result: dict[str, Any] = extend_with_superwords_to_folder(
        tokenizer,
        source,
        args.out,
        options=options,
        n_superwords=args.superwords,
        threads=threads(args),
        force=args.force,
        progress=progress,
    )
    return result


def _with_rules(tokenizer: Tokenizer, file: str) -> Tokenizer:
    """The tokenizer with the rules of a SentencePiece model."""
    from dataclasses import replace

    [model] = load_all([file], None)
    if model.piece_rules is None:
        raise UsageError(f"{file} is no SentencePiece model; give the tokenizer.model of the base")
    return replace(tokenizer, piece_rules=model.piece_rules)


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """What was gained, by language, and what limits it."""
    from vocabshift.cli.console import show_summary

    console.print(language_table(result))
    for line in advice(result):
        console.print(line, soft_wrap=True)
    facts = {
        "written to": result["out"],
        "method": result["method"],
        "new tokens": result["n_added"],
        "stopped because": REASONS[result["stopped_because"]],
        "of them for missing characters": result["n_characters"],
        "of them unused in this text": result["unused_added"],
        "tokens of the base made reachable": result["n_repaired"],
        "new tokens unreachable": result["unreachable_added"],
        "vocabulary": result["vocab_size"],
        "rows of a model": result["row_count"],
    }
    if "superwords" in result:
        effect = result["superword_effect"]
        console.print(superword_table(effect))
        facts["superwords"] = result["superwords"]
        facts["pattern that they are cut by"] = effect["pattern"]
        facts["tokens that no text yields any more"] = effect["tokens_lost"]
    then = f"vocabshift check {result['out']}    or    vocabshift transfer MODEL {result['out']}"
    show_summary(console, "extend", facts, then)
