"""`vocabshift plan`: how many tokens to add or remove?

Owns the verb's flags and its tables.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import (
    add_choices,
    add_pattern,
    corpus_of,
    text_of,
    tokenizer_of,
    words_of,
)
from vocabshift.cli.options import add_many, add_threads, add_verb, positive, share, threads

if TYPE_CHECKING:
    from rich.console import Console

_MOST_LANGUAGES = 6  # columns of the table; --json has all


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "plan",
        "how many tokens to add or drop: the whole trade-off from one run",
        "Learn new tokens once and tell, for every number of them, what text gains: bytes per\n"
        "token on held-out text by language, the ceiling that the pre-tokenizer sets, and the\n"
        "same with the pre-tokenizer repaired. Tokens taken away are tried too. With a model:\n"
        "parameters, generation speed (bound by memory) and size of the logits.",
        "  vocabshift plan meta-llama/Llama-3.2-1B --corpus hi=hindi.txt en=english.txt "
        "--model meta-llama/Llama-3.2-1B --picture plan.svg\n"
        "  vocabshift plan mistral --corpus ta=tamil.jsonl.gz --text ta=news.txt "
        "--max-tokens 16000 --json\n",
    )
    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, file or Hub name")
    add_many(
        parser,
        "--corpus",
        metavar="SPEC",
        required=True,
        help="text to learn from: [lang=]PATH|DIR|GLOB|hf:DATASET",
    )
    add_many(
        parser,
        "--text",
        metavar="SPEC",
        help="held-out text (default: every 20th document of the corpus)",
    )
    add_choices(parser)
    parser.add_argument(
        "--max-tokens", metavar="N", type=positive, default=32_000, help="default: 32000"
    )
    parser.add_argument("--model", metavar="MODEL", help="folder or Hub name: what rows cost it")
    parser.add_argument(
        "--bandwidth",
        metavar="GB/S",
        type=positive,
        default=3350,
        help="memory bandwidth for the speed estimate (default: 3350, an H100)",
    )
    parser.add_argument(
        "--sampling-alpha",
        metavar="A",
        type=share,
        help="languages count in proportion to bytes ** A: 1 as they are, 0.3 nearly alike",
    )
    parser.add_argument(
        "--picture", metavar="FILE", help="draw the curves: .svg, .png or .pdf (needs [plots])"
    )
    add_pattern(parser)
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Learn, measure, and draw the curves if requested."""
    import vocabshift as vs
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.publish import check_picture, draw_plan

    if args.picture:
        check_picture(args.picture)
    corpus = corpus_of(args.corpus, args)
    text = text_of(args.text, args, documents=args.documents) if args.text else None
    with progress_bar() as progress:
        found = vs.plan(
            tokenizer_of(args),
            corpus,
            text=text,
            max_tokens=args.max_tokens,
            model=args.model,
            sampling_alpha=args.sampling_alpha,
            bandwidth=args.bandwidth * 1e9,
            threads=threads(args),
            progress=progress,
        )
    result = found.to_dict()
    if args.picture:
        result["picture"] = str(draw_plan(result, args.picture))
    return result


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the curves as a table, and the next command."""
    from rich.text import Text

    from vocabshift.cli.summary import shell_line

    console.print(_table(result))
    best = result["suggested"]
    for name, ceilings in result["ceilings"].items():
        listed = ", ".join(f"{label} {ceiling:.2f}" for label, ceiling in ceilings.items())
        console.print(f"ceiling, pre-tokenizer {name}: {listed}", soft_wrap=True)
    if best["n_characters"]:
        what = f"{best['n_characters']} characters that the vocabulary lacks"
        console.print(f"rows above +0 have {what} as well; extend adds them, too", soft_wrap=True)
    if "picture" in result:
        console.print(f"picture: {result['picture']}", markup=False)
    if best["n_tokens"] < 1:
        console.print("no new token would help on this text")
        return
    words = ["--corpus", *args.corpus, *words_of(args), "--n-tokens", best["n_tokens"]]
    if best["pre_tokenizer"] == "repaired":
        words += ["--pre-tokenizer", "repaired"]
    then = shell_line("vocabshift", "extend", args.tokenizer, *words, "-o", "DIR")
    console.print(Text.assemble("next: ", (then, "bold")), soft_wrap=True)


def _table(result: dict[str, Any]) -> Any:
    from rich.table import Table
    from rich.text import Text

    rows = result["rows"]
    labels = list(rows[0]["by_language"])[:_MOST_LANGUAGES]
    with_model = result["model"] is not None
    table = Table(
        title=Text(f"plan: {result['tokenizer']}, held-out bytes per token", style="bold"),
        title_justify="left",
    )
    table.add_column("tokens", justify="right")
    table.add_column("pre-tokenizer")
    for name in ("all", *labels):
        table.add_column(Text(name), justify="right")
    if with_model:
        for name in ("parameters", "tokens/s", "text/s", "logits of 1,000"):
            table.add_column(name, justify="right")
    before = None
    for row in rows:
        kind = row["pre_tokenizer"]
        if before not in (None, kind):
            table.add_section()
        before = kind
        cells = [f"{row['bytes_per_token']:.3f}"]
        cells += [f"{row['by_language'].get(label, 0):.3f}" for label in labels]
        if with_model:
            cells += [
                f"{row['extra_parameters'] / 1e6:+,.1f} M",
                f"{row['tokens_per_second']:,.0f}",
                f"{row['bytes_per_second']:,.0f} B",
                f"{row['logits_bytes'] / 1e6:,.0f} MB",
            ]
        mark = "  <- knee" if row["is_knee"] else ""
        style = "bold" if row["is_knee"] else None
        name = f"{row['pre_tokenizer']}{mark}"
        table.add_row(f"{row['n_tokens']:+,}", name, *cells, style=style)
    return table
