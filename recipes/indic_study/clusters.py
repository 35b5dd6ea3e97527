"""Clusters of languages by the pieces that each learns alone, in its own script and in ISO 15919.

    python recipes/indic_study/clusters.py --corpus hi=hi.txt ta=ta.txt … --language-bytes 1MB \
        --draw-seed 1 --max-roman-words 10 --clusters 5 6 -o clusters.jsonl

The study's Table 14: steps 1 and 2 of its Algorithm 1 (recipe `cluster`), on text that is
transliterated after the fifth-case normalization. Writes the rows of that table; the same clusters
of the text as it is stand next to them, for they were drawn from the same lines.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from vocabshift.cli.inputs import add_choices, corpus_of
from vocabshift.cli.options import Parser, add_many, positive
from vocabshift.text.languages import find_language
from vocabshift.text.normalize import normalizer_function
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.clusters import ClusterOptions, Clusters, by_kmeans

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
from iso15919 import transliterated
from rows import by_label, made, put, shown, sources_of

TABLE = "indic_study-14"
Words = Mapping[str, Counter[str]]


def in_latin(words: Words) -> dict[str, Counter[str]]:
    """The words of every language in ISO 15919."""
    found = {}
    for label, counted in words.items():
        language = find_language(label)
        is_sindhi = language is not None and language.name == "Sindhi"
        found[label] = Counter[str]()
        for word, count in counted.items():
            found[label][transliterated(word, is_sindhi=is_sindhi)] += count
    return found


def clusters_of(
    words: Words, sizes: Sequence[int], options: ClusterOptions
) -> tuple[dict[int, Clusters], int]:
    """Clusters by their number, and how many pieces all languages learned together."""
    own = options.vocabularies(words, 0.9999, RunContext())
    found = {k: by_kmeans(own, k, options.seed) for k in sizes}
    return found, len(frozenset().union(*own.values()))


def written(clusters: Clusters) -> str:
    """The languages of each cluster, the largest first."""
    in_order = sorted(clusters, key=lambda group: (-len(group), group))
    return " · ".join(", ".join(group) for group in in_order)


def main() -> None:
    """Write the rows."""
    parser = Parser(description=__doc__.splitlines()[0])
    add_many(parser, "--corpus", metavar="SPEC", required=True, help="text by language")
    add_choices(parser)
    parser.add_argument("--clusters", type=positive, nargs="+", required=True)
    parser.add_argument("--language-vocab-size", type=positive, default=8000)
    parser.add_argument("--size", default="1 MB of each language", help="as the table names it")
    parser.add_argument("--results", type=Path, help="a file that takes the rows too")
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    start = time.process_time()
    normalized = normalizer_function("fifth-case")
    assert normalized is not None
    words: dict[str, Counter[str]] = {}
    for label, text in corpus_of(args.corpus, args).texts():
        words.setdefault(str(label), Counter()).update(normalized(text).split())
    options = ClusterOptions(language_vocab_size=args.language_vocab_size)
    rows = []
    for name, counted in (("own scripts", words), ("ISO 15919", in_latin(words))):
        clusters, n_pieces = clusters_of(counted, args.clusters, options)
        values = {f"cluster-{k}": written(found) for k, found in clusters.items()}
        rows.append(
            {"table": TABLE, "row": name, "values": {**values, "pieces together": n_pieces}}
        )
    seconds = round(time.process_time() - start)
    texts = by_label(corpus_of(args.corpus, args).texts())
    how = made(TABLE, "recipes/indic_study/iso.sh", args.size, float(seconds))
    rows.append(how | sources_of(texts, {}))
    args.out.write_text("".join(shown(row) + "\n" for row in rows), encoding="utf-8")
    for row in rows:
        print(shown(row))
    if args.results:
        put(args.results, rows)


if __name__ == "__main__":
    main()
