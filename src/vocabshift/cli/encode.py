"""`vocabshift encode`: text -> packed token ids for training.

Owns the verb's flags and its summary; the folder is `cpt.pack_corpus`'s.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import add_output, add_threads, add_verb, positive, threads
from vocabshift.cli.source import add_choices, corpus_of
from vocabshift.cli.subjects import add_pattern, load_all

if TYPE_CHECKING:
    from rich.console import Console

    from vocabshift.tokenizer.tokenizer import Tokenizer

_NONE = "none"


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "encode",
        "turn text into packed token ids for training",
        "Encode text once, fast, into files that training maps from disk: uint16 or uint32 ids,\n"
        "document offsets, the EOS behind every document. Documents stay whole and in order; no\n"
        "BOS is added. A run that was killed goes on when it is started again (but not from\n"
        "standard input or the Hub). Special-token strings in the text become special tokens, as\n"
        "with `tokenizers` and datasets.map; for text from the web, --special-as-text.",
        "  vocabshift encode meta-llama/Llama-3.2-1B hi=hindi.txt en=english.jsonl.gz -o packed\n"
        "  vocabshift encode ist 'corpus/*.parquet' --format arrow --eos '</s>' -j 8 -o packed "
        "--json\n",
    )
    parser.add_argument("tokenizer", metavar="TOKENIZER", help="folder, file or Hub name")
    parser.add_argument("specs", metavar="SPEC", nargs="+", help="[lang=]PATH|DIR|GLOB|hf:DATASET")
    add_choices(parser)
    parser.add_argument(
        "--eos", metavar="TOKEN|none", help="behind every document (default: the tokenizer's)"
    )
    parser.add_argument(
        "--format",
        choices=("numpy", "arrow"),
        default="numpy",
        help="numpy (default): .npy to map; arrow: column input_ids, for datasets (needs [data])",
    )
    parser.add_argument(
        "--shard-tokens", metavar="N", type=positive, help="tokens in a shard (default: 50 million)"
    )
    parser.add_argument(
        "--special-as-text",
        action="store_true",
        help="read special-token strings in the text as plain text",
    )
    add_pattern(parser)
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh, whatever an earlier run finished"
    )
    add_output(parser, what="folder to write")
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Encode and write the folder."""
    from pathlib import Path

    from vocabshift.cli.console import print_line, progress_bar
    from vocabshift.storage.output import check_free
    from vocabshift.text.readers import no_key_reason

    inputs = [args.tokenizer] if Path(args.tokenizer).exists() else []
    out = check_free(args.out, force=args.force, inputs=inputs)
    corpus = corpus_of(args.specs, args)
    from vocabshift.cpt.pack_corpus import SHARD_TOKENS, PackOptions, pack_corpus

    (tokenizer,) = load_all([args.tokenizer], args.pattern)
    options = PackOptions(
        eos=_eos(args.eos, tokenizer),
        format=args.format,
        shard_tokens=args.shard_tokens or SHARD_TOKENS,
        parse_special=not args.special_as_text,
    )
    if (reason := no_key_reason(corpus)) is not None:
        print_line(f"note: this run could not be resumed: {reason}")
    start = time.perf_counter()
    with progress_bar(in_bytes=True) as progress:
        header = pack_corpus(
            tokenizer,
            corpus,
            out,
            options,
            threads=threads(args),
            force=args.force,
            resume=not args.no_resume,
            progress=progress,
        )
    return {
        "out": str(out),
        "n_tokens": header["n_tokens"],
        "n_documents": header["n_documents"],
        "n_bytes": header["n_bytes"],
        "dtype": header["dtype"],
        "eos": header["eos"],
        "bytes_per_token": header["n_bytes"] / max(header["n_tokens"], 1),
        "seconds": round(time.perf_counter() - start, 3),
        "shards": len(header["shards"]),
        "languages": header["languages"],
    }


def _eos(given: str | None, tokenizer: Tokenizer) -> str | None:
    """The token asked for, else the tokenizer's own."""
    from vocabshift.cli.console import print_line
    from vocabshift.cpt.pack_corpus import eos_of

    if given is not None:
        return None if given == _NONE else given
    eos = eos_of(tokenizer)
    if eos is None:
        print_line("note: the tokenizer names no EOS: nothing stands between documents (see --eos)")
    return eos


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Summary for people."""
    from vocabshift.cli.console import show_summary

    eos = result["eos"]
    facts = {
        "written to": result["out"],
        "documents": result["n_documents"],
        "tokens": result["n_tokens"],
        "bytes of text": result["n_bytes"],
        "bytes per token": f"{result['bytes_per_token']:.3f}",
        "between documents": "nothing" if eos is None else f"{eos['token']} ({eos['id']})",
        "ids": result["dtype"],
        "shards": result["shards"],
        "seconds": f"{result['seconds']:.1f}",
        "MB/s": f"{result['n_bytes'] / 1e6 / max(result['seconds'], 1e-3):.1f}",
    }
    for row in result["languages"]:
        if row["language"] is not None:
            facts[f"tokens, {row['language']}"] = row["n_tokens"]
    then = f"vocabshift.PackedIds.open({result['out']!r}) in Python, to read it"
    show_summary(console, "encode", facts, then)
