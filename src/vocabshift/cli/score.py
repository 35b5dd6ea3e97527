"""`vocabshift score`: bits per byte of causal language models on text, compared by document.

With it what concerns drafts for speculative decoding: `score --draft` and `vocabshift draft-vocab`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import (
    CORPUS,
    add_choices,
    add_errors,
    add_models,
    add_windows,
    corpus_of,
    defaults_of,
    held_out_of,
    loading,
    text_of,
)
from vocabshift.cli.options import (
    UsageError,
    add_many,
    add_output,
    add_threads,
    add_verb,
    positive,
    threads,
)
from vocabshift.workflows.measure_models import (
    acceptance_tables,
    score_draft_to_file,
    score_tables,
    score_to_file,
)

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift import Corpus

_DESCRIPTION = """\
What causal language models pay for text, in bits per byte, per language and over all, with 95 %
bootstrap intervals over documents. A document (a line of a .txt) is scored by itself, after the
model's BOS where its config has one; no EOS is added; its bytes are those of the raw text without
the line's ending. So models of different tokenizers stand on one scale. A document longer than
--context is scored in windows: each repeats --overlap tokens of the one before, unscored.
Several models are compared by document: difference, interval and p value (exchange within
documents), corrected over the pairs of a language (Holm).
With --draft: how many tokens of a draft model the model would accept in speculative decoding, as
shares: greedy (both have the same most likely token) and sampled (1 - total variation of the two
distributions), at every token of the text. Both models must have the same tokenizer."""


_OF_DRAFTS = """\
Choose the N tokens of a target model that its draft may propose: the special ones that a
conversation needs, then the most frequent of the corpus. Writes hot_token_ids.pt for SGLang
(--speculative-token-map), vocab_mapping.pt for SpecForge, and the same d2t and t2d as
vocab_mapping.safetensors for EAGLE-3 checkpoints. The .pt files are pickles, because their readers
call torch.load. The coverage is the share of the tokens of held-out text that the draft can
propose, per language: by default every 20th document of the corpus is held out."""


def add_draft_vocab(subparsers: Any) -> None:
    """Add the verb `draft-vocab`."""
    parser = add_verb(
        subparsers,
        "draft-vocab",
        "a smaller vocabulary for a draft model (speculative decoding)",
        _OF_DRAFTS,
        "  vocabshift draft-vocab adapted --corpus hi=hindi.txt en=english.txt --n-tokens 32000 "
        "-o draft-vocab\n",
    )
    parser.add_argument("tokenizer", metavar="TARGET", help="model or tokenizer: folder, Hub name")
    add_many(parser, "--corpus", metavar="SPEC", help=CORPUS, required=True)
    add_choices(parser)
    parser.add_argument("--n-tokens", metavar="N", type=positive, required=True)
    add_many(parser, "--held-out", metavar="SPEC", help="text for the coverage: [lang=]PATH|…")
    parser.add_argument(
        "--rows",
        metavar="N",
        type=positive,
        help="rows of the target's embedding (default: as its config.json says)",
    )
    add_output(parser, what="folder to write")
    add_threads(parser)
    parser.set_defaults(run=run_draft_vocab, show=show_draft_vocab, status=lambda *_: 0)


def run_draft_vocab(args: argparse.Namespace) -> dict[str, Any]:
    """Choose the tokens and write the folder."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.draft_vocab import draft_vocab_to_folder

    corpus = corpus_of(args.corpus, args)
    with progress_bar() as progress:
        return draft_vocab_to_folder(
            args.tokenizer,
            corpus,
            args.out,
            n_tokens=args.n_tokens,
            held_out=held_out_of(args) if args.held_out else None,
            rows=args.rows,
            threads=threads(args),
            force=args.force,
            progress=progress,
        )


def show_draft_vocab(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the coverage by language and size, and what was written."""
    from rich.table import Table
    from rich.text import Text

    from vocabshift.cli.summary import shell_line, show_summary

    sizes = result["coverage_by_size"]
    title = Text("share of held-out tokens that a draft can propose", style="bold")
    table = Table(title=title, title_justify="left")
    table.add_column("language")
    for size in sizes:
        table.add_column(f"{int(size):,}", justify="right")
    for label in result["coverage"]:
        table.add_row(Text(label), *(f"{shares[label]:.2%}" for shares in sizes.values()))
    console.print(table)
    facts = {
        "written to": result["out"],
        "tokens": result["n_tokens"],
        "of them special": result["n_special"],
        "of them not in the corpus": result["n_unseen"],
        "tokens of the target": result["vocab_size"],
        "rows of the target": result["rows"],
        "held out": result["held_out"],
    }
    [token_map, *_] = result["files"]
    then = f"SGLang: {shell_line('--speculative-token-map', result['out'] + '/' + token_map)}"
    show_summary(console, "draft-vocab", facts, then)


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "score",
        "bits per byte of language models on text, per language",
        _DESCRIPTION,
        "  vocabshift score adapted --text hi=hindi.txt en=english.txt\n"
        "  vocabshift score base control adapted --text hi=hi.txt ta=ta.txt --dtype bfloat16 "
        "--output bits.jsonl --json\n"
        "  vocabshift score adapted --draft adapted-draft --text hi=hindi.txt en=english.txt\n",
    )
    add_models(parser)
    add_many(
        parser, "--text", metavar="SPEC", help="[lang=]PATH|DIR|GLOB|hf:DATASET", required=True
    )
    parser.add_argument("--documents", choices=("line", "file"), help="a .txt is one per line/file")
    add_errors(parser)
    add_windows(parser, note=", and 512 with --draft")
    parser.add_argument(
        "--draft", metavar="MODEL", help="a draft model of the same tokenizer: its acceptance"
    )
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Score, compare, and write the rows if requested."""
    from vocabshift.cli.console import progress_bar

    corpus = text_of(args.text, args, documents=args.documents)
    if args.draft is not None:
        return _run_draft(args, corpus)
    batch_tokens = args.batch_tokens or defaults_of(score_to_file)["batch_tokens"]
    with progress_bar(unit="tokens") as progress:
        args.scored = score_to_file(
            args.models,
            corpus,
            context=args.context,
            overlap=args.overlap,
            batch_tokens=batch_tokens,
            output=args.output,
            force=args.force,
            progress=progress,
            **loading(args),
        )
    return {
        "results": args.scored.results.to_dicts(),
        "comparisons": [pair.to_dict() for pair in args.scored.comparisons],
    }


def _run_draft(args: argparse.Namespace, corpus: Corpus) -> dict[str, Any]:
    from vocabshift.cli.console import progress_bar

    if len(args.models) != 1:
        raise UsageError(f"--draft goes with one model, and {len(args.models)} are given")
    with progress_bar(unit="tokens") as progress:
        args.scored = score_draft_to_file(
            args.models[0],
            args.draft,
            corpus,
            context=args.context,
            overlap=args.overlap,
            batch_tokens=args.batch_tokens,
            output=args.output,
            force=args.force,
            progress=progress,
            **loading(args),
        )
    return {"draft": args.draft, "results": args.scored.to_dicts()}


def show(args: argparse.Namespace, _result: dict[str, Any], console: Console) -> None:
    """Print bits per byte as a table, then the pairs of models; or the acceptance of a draft."""
    tables = score_tables if args.draft is None else acceptance_tables
    for table in tables(args.scored):
        console.print(table)
    if args.output:
        console.print(f"written: {args.output}", markup=False, soft_wrap=True)
