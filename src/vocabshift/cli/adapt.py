"""`vocabshift adapt`: replace unneeded tokens by new ones, at constant vocabulary size.

Owns the verb's flags and the choice between adapting a model and a tokenizer alone.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.distill import add_distill, distill_flags, distill_of, distilled_facts
from vocabshift.cli.fields import add_fields, given
from vocabshift.cli.inputs import (
    add_names,
    add_pattern,
    add_source,
    names_of,
    require_source,
    source_of,
    text_of,
    tokenizer_of,
)
from vocabshift.cli.options import (
    Parser,
    UsageError,
    add_many,
    add_output,
    add_threads,
    add_verb,
    positive,
    size,
    threads,
)

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift import Corpus

# Of ExtensionOptions:
_FIELDS = ("pre_tokenizer", "min_frequency", "complete_bytes", "sampling_alpha")


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print what was exchanged and the effect on the corpus."""
    from vocabshift.cli.summary import lost_facts, shell_line, show_names, show_summary

    pruning = result["pruning"] or {"warnings": (), "n_decided_by_ties": 0}
    for warning in pruning["warnings"]:
        console.print(f"warning: {warning}", markup=False, soft_wrap=True)
    facts = {
        "written to": result["out"],
        "tokens taken out": result["n_removed"],
        "new tokens": result["n_added"],
        "taken out and learned again": result["n_relearned"],
        "removals decided by ties": pruning["n_decided_by_ties"],
        **(show_names(console, result) if "by_name" in result else {}),
        "tokens of the model": result["vocab_size"],
        "embedding rows": result["rows"],
        **lost_facts(result),
    }
    out = result["out"]
    if "card" in result:
        _show_card(result, facts, console)
        then = shell_line("vocabshift", "score", out, "--text", "SPEC")
        then += ", and vocabshift cpt to train it"
    else:
        if result["extension"]:
            console.print(_table(result))
        then = shell_line("vocabshift", "check", out) + "    or    "
        then += shell_line("vocabshift", "transfer", "MODEL", out)
    show_summary(console, "adapt", facts, then)


def _table(result: dict[str, Any]) -> Any:
    """Bytes per token of the corpus, before and after."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text("bytes per token", style="bold"), title_justify="left")
    table.add_column("language")
    for name in ("before", "after", "ceiling", "new tokens used", "share of its tokens"):
        table.add_column(name, justify="right")
    pruned = {row["language"]: row for row in result["pruning"]["languages"]}  # None: no label
    for row in result["extension"]["languages"]:
        prune_first = result["first"] == "prune"
        shrunk = pruned[row["language"] if row["language"] in pruned else None]
        before = (shrunk if prune_first else row)["bytes_per_token_before"]
        after = row["bytes_per_token"] if prune_first else shrunk["bytes_per_token_after"]
        table.add_row(
            Text(row["language"]),
            f"{before:.3f}",
            Text(f"{after:.3f}", style="bold"),
            f"{row['ceiling_bytes_per_token']:.2f}",
            f"{row['new_tokens_used']:,}",
            f"{row['new_tokens_share']:.1%}",
        )
    return table


def _show_card(result: dict[str, Any], facts: dict[str, Any], console: Console) -> None:
    """Print the before and after tables on held-out text, and the model's notes."""
    from vocabshift.cli.summary import file_facts
    from vocabshift.workflows.adapt_card import tables_of

    card = result["card"]
    for table in tables_of(card):
        console.print(table)
    facts["exchange"] = f"{result['n_tokens']:,} tokens" + (
        ", by the curve of plan" if result["n_tokens_is_planned"] else ", as asked for"
    )
    facts["ids of kept tokens that moved"] = result["n_moved"] or "none"
    facts[f"rows made ({result['init']})"] = result["n_initialized"]
    facts |= distilled_facts(result)
    if "tried" in result:
        facts["tried, bits per byte"] = ", ".join(
            f"{row['init']} {row['bits_per_byte']:.4f}" for row in result["tried"]
        )
    facts["output head"] = "tied to the embeddings" if result["tied"] else "of its own"
    for name, key in (("parameters", "parameters"), ("bytes of weights", "weights_bytes")):
        if card["before"][key]:
            facts[name] = f"{card['before'][key]:,} before, {card['after'][key]:,} after"
    facts |= file_facts(result)
    facts |= {"bytes per token": card["judged_on"], "bits per byte": card["scored_on"]}
    for name in ("added", "removed"):
        facts[f"{name}, for example"] = " ".join(
            f'"{text}"' for text in card[f"{name}_sample"][:8] if text.isprintable()
        )
    for number, note in enumerate(result["notes"], 1):
        facts[f"note {number}"] = note


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "adapt",
        "new words for those that nobody needs, at constant size",
        "Take tokens out of a model's tokenizer that the text does not need, learn as many new\n"
        "ones, and give these the ids and rows that became free: no other id or row moves, and\n"
        "the model keeps its size. Writes model, tokenizer and a card of before and after as one\n"
        "folder; of a tokenizer alone, the tokenizer. The corpus must hold every language that\n"
        "is to stay good.",
        "  vocabshift adapt meta-llama/Llama-3.2-1B --corpus hi=hindi.txt en=english.txt "
        "code=code.jsonl --n-tokens 16000 --pre-tokenizer repaired -o llama3-hi\n"
        "  vocabshift adapt models/qwen --corpus et=estonian.txt en=english.txt --text "
        "et=held-out.txt --init distill --json -o qwen-et\n"
        "  vocabshift adapt models/qwen --corpus en=english.txt --words terms.txt --special "
        '"<think>=the model\'s private reasoning" -o qwen-terms\n',
    )
    parser.later(_add_options)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def _add_options(parser: Parser) -> None:
    from vocabshift import ExtensionOptions

    parser.add_argument(
        "model",
        metavar="MODEL",
        help="model folder or Hub name; or a tokenizer (folder, file or Hub name)",
    )
    add_source(parser)
    parser.add_argument(
        "--n-tokens",
        metavar="N",
        type=positive,
        help="tokens to exchange for learned ones (default: the knee of the curve, see plan, or "
        "fewer where taking them out costs a language over 1 %%; none with --words or --special)",
    )
    parser.add_argument(
        "--first", choices=("prune", "extend"), default="prune", help="default: prune"
    )
    parser.add_argument("--order", default="leaf-frequency", help="of pruning (leaf-frequency)")
    add_many(parser, "--keep", metavar="WHAT", help="never take out, as in prune")
    add_fields(parser, ExtensionOptions, _FIELDS)
    add_names(parser, with_text=False)
    add_pattern(parser)
    parser.add_argument(
        "--tokenizer-only", action="store_true", help="leave the model beside the tokenizer alone"
    )
    _add_model_options(parser)
    add_output(parser, what="folder to write")
    add_threads(parser)


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    """Flags that apply only to models; each is None or False when not given."""
    from vocabshift.workflows.transfer import TransferOptions, init_names

    group = parser.add_argument_group("for models")
    add_many(
        group,
        "--text",
        metavar="SPEC",
        help="text to judge on (default: every 20th document of the corpus, then not learned from)",
    )
    group.add_argument(
        "--init",
        choices=init_names(),
        help=f"rows of new tokens, as in transfer (default: {TransferOptions.init})",
    )
    group.add_argument("--donor", metavar="MODEL", help="for omp: a model with the new tokens")
    add_distill(parser)
    group.add_argument("--no-score", action="store_true", help="measure no bits per byte")
    group.add_argument(
        "--score-bytes",
        metavar="SIZE",
        type=size,
        help="text of each language that the model reads, before and after (default: 20KB)",
    )
    group.add_argument("--device", help="where it runs: cuda, mps, ... (default: cpu)")
    group.add_argument(
        "--hard-links", action="store_true", help="link shards that do not change, as in transfer"
    )
    group.add_argument(
        "--no-resume", action="store_true", help="start afresh after a run that was killed"
    )


_FOR_MODELS = ("text", "init", "donor", "no_score", "score_bytes", "device", "hard_links")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Adapt and write the output folder."""
    import vocabshift as vs
    from vocabshift.workflows.adapt_model import is_model

    require_source(args, f"(see: {args.parser.prog} --help)")
    corpus = source_of(args)
    if not isinstance(corpus, vs.Corpus):
        raise UsageError("adapt encodes the text itself, before and after; give --corpus")
    if not args.tokenizer_only and is_model(args.model):
        return _adapt_model(args, corpus)
    foreign = [name.replace("_", "-") for name in _FOR_MODELS if getattr(args, name)]
    foreign += distill_flags(args)
    if foreign:
        why = f"{args.model} is none: there are no weights beside a config.json"
        why = "--tokenizer-only is given" if args.tokenizer_only else why
        raise UsageError(f"--{foreign[0]} is for models, and {why}; leave it out")
    return _adapt_tokenizer(args, corpus)


def _adapt_model(args: argparse.Namespace, corpus: Corpus) -> dict[str, Any]:
    import vocabshift as vs
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.adapt_model import SCORE_BYTES
    from vocabshift.workflows.transfer import TransferOptions

    if args.pattern:
        raise UsageError("--pattern is for tokenizer files; a model's tokenizer brings its own")
    with progress_bar() as progress:
        return vs.adapt_model(
            args.model,
            corpus,
            args.out,
            text=text_of(args.text, args) if args.text else None,
            init=args.init or TransferOptions.init,
            donor=args.donor,
            distill=distill_of(args),
            with_score=not args.no_score,
            score_bytes=args.score_bytes or SCORE_BYTES,
            device=args.device,
            force=args.force,
            hard_links=args.hard_links,
            resume=not args.no_resume,
            progress=progress,
            **_shared(args),
        ).to_dict()


def _adapt_tokenizer(args: argparse.Namespace, corpus: Corpus) -> dict[str, Any]:
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.adapt_tokenizer import adapt_to_folder

    args.tokenizer = args.model
    with progress_bar() as progress:
        return adapt_to_folder(
            tokenizer_of(args),
            corpus,
            args.out,
            inputs=[args.model, *(args.words or ())],
            force=args.force,
            progress=progress,
            **_shared(args),
        )


def _shared(args: argparse.Namespace) -> dict[str, Any]:
    """Options for both."""
    return {
        "n_tokens": args.n_tokens,
        "named": names_of(args),
        "first": args.first,
        "order": args.order,
        "keep": tuple(args.keep or ()),
        "threads": threads(args),
        **given(args, _FIELDS),
    }
