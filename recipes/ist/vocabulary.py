"""What a vocabulary is spent on, by script and by language (IST, Fig. 2 and Table 10), as Markdown.

    python recipes/ist/vocabulary.py runs/ist/ist --corpus hi=hi.txt en=en.txt [-j 2]

Beside each script's share of the vocabulary stands its share of the text. By language: how many
tokens its text uses, how many of them no other language uses, and how many of the tokens in the
text are superwords.
"""

from __future__ import annotations

import argparse
import os

from vocabshift.checks.vocabulary import vocabulary_use
from vocabshift.checks.vocabulary_report import vocabulary_report
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import load_tokenizer


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer", metavar="TOKENIZER")
    parser.add_argument("--corpus", metavar="SPEC", nargs="+", required=True)
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    tokenizer = load_tokenizer(args.tokenizer)
    use = vocabulary_use(tokenizer, Corpus.from_specs(args.corpus), threads=args.threads)
    report = vocabulary_report(tokenizer, language_bytes=use.language_bytes)

    print("### vocabulary by script\n")
    print("| script | tokens | share | superwords | mean bytes | share of text |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in report.rows:
        text = "–" if row.training_share is None else f"{row.training_share:.2%}"
        print(
            f"| {row.name} | {row.tokens:,} | {row.share:.2%} | {row.superwords:,} "
            f"| {row.mean_bytes:.1f} | {text} |"
        )
    print(f"\n### vocabulary by language ({use.unused:,} tokens are not used at all)\n")
    print("| language | MB | tokens used | by no other | superwords in text | bytes per token |")
    print("|---|---:|---:|---:|---:|---:|")
    for own in use.languages:
        print(
            f"| {own.language} | {own.n_bytes / 1e6:.1f} | {own.distinct_tokens:,} "
            f"| {own.own_tokens:,} | {own.superword_share:.1%} | {own.n_bytes / own.tokens:.2f} |"
        )


if __name__ == "__main__":
    main()
