"""Make as much text as you like out of a corpus: word bigrams, sampled with a fixed seed.

    python benchmarks/synthetic.py hi=hindi.txt en=english.txt --gb 10 -o synthetic.txt
    python benchmarks/synthetic.py 'train/*.txt' --gb 0.5 --seed 2 > synthetic.txt

For corpora of a size that is not at hand: how do time and memory of training grow? Each line is a
walk: from the start of a line to one of the words that lines of that language begin with, from
word to word by how often the second follows the first, until a line ends. So the words, their
frequencies, their neighbours, the ends of sentences and the shares of the languages are those of
the corpus. Two things are not: there is no new word however long the text (a real corpus of ten
times the size has more distinct ones), and beyond two words there is no repetition but by chance.

What has one label is one language; without a label each file is one. Memory is
that of the corpus (some 8 bytes a word), whatever the size of the output.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from vocabshift.text.corpus import Corpus
from vocabshift.text.spec import Local, parse_spec

ROUND_BYTES = 256_000_000  # every language gives its share of so much in turn
LINE_END = 0  # the number of the word that begins and ends every line
_WIDTH = 16  # bytes of a row
_SPELLED_AT_ONCE = 1 << 15  # words: what is worked on stays in the cache
_WORD = re.compile(rb"\n| *[^ \n]+| +")  # with the spaces before it: all spaces come back


@dataclass(frozen=True)
class Spelling:
    """The words as rows of 16 bytes, so that numpy can spell many at once."""

    rows: NDArray[np.void]  # bytes, then padding; a long word has several rows
    is_text: NDArray[np.void]  # for each byte of a row, whether it is no padding
    first: NDArray[np.int32]  # (n_words,)
    n_rows: NDArray[np.int32]  # (n_words,)

    @classmethod
    def of(cls, words: list[bytes]) -> Spelling:
        """Lay out words, none of them empty."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        n_rows = -(-lengths // _WIDTH)
        first = np.cumsum(n_rows) - n_rows
        word = np.repeat(np.arange(len(words)), n_rows)
        at = (np.arange(len(word)) - first[word]) * _WIDTH  # of the row, in its word
        padded = np.frombuffer(b"".join(words) + b"\0" * _WIDTH, dtype=np.uint8)
        columns = np.arange(_WIDTH)
        rows = padded[((np.cumsum(lengths) - lengths)[word] + at)[:, None] + columns]
        is_text = columns < (lengths[word] - at)[:, None]
        return cls(
            *(table.view(f"V{_WIDTH}").ravel() for table in (rows, is_text)),
            *(numbers.astype(np.int32) for numbers in (first, n_rows)),
        )

    def spell(self, ids: NDArray[np.int32]) -> bytes:
        """The words of `ids` in a row."""
        parts = []
        for at in range(0, len(ids), _SPELLED_AT_ONCE):
            some = ids[at : at + _SPELLED_AT_ONCE]
            n_rows = self.n_rows.take(some)
            end = np.cumsum(n_rows)
            rows = np.repeat(self.first.take(some) - (end - n_rows), n_rows) + np.arange(end[-1])
            is_text = self.is_text.take(rows).view(np.bool_)
            parts.append(self.rows.take(rows).view(np.uint8)[is_text])
        return b"".join(parts)


@dataclass(frozen=True)
class Chain:
    """The words of a language and what follows each of them."""

    spelling: Spelling  # of the words; number LINE_END is b"\n"
    followers: NDArray[np.int32]  # one for each occurrence in the corpus, ordered by the word
    first: NDArray[np.int64]  # (n_words + 1,) followers[first[w]:first[w + 1]] follow word w
    n_bytes: int  # of the corpus, line ends included

    @classmethod
    def of(cls, blocks: Iterable[bytes]) -> Chain:
        """The chain of text in blocks that end with a line end."""
        number: defaultdict[bytes, int] = defaultdict()
        number.default_factory = number.__len__
        parts, n_bytes = [np.array([number[b"\n"]], dtype=np.int32)], 0
        for block in blocks:
            found = _WORD.findall(block)
            ids = map(number.__getitem__, found)
            parts.append(np.fromiter(ids, np.int32, len(found)))
            n_bytes += len(block)
        text = np.concatenate(parts)
        first = np.zeros(len(number) + 1, dtype=np.int64)
        np.cumsum(np.bincount(text[:-1], minlength=len(number)), out=first[1:])
        followers = text[1:][np.argsort(text[:-1], kind="stable")]
        return cls(Spelling.of(list(number)), followers, first, n_bytes)

    @property
    def n_lines(self) -> int:
        """Lines of the corpus."""
        return int(self.first[LINE_END + 1])

    def lines(self, n_lines: int, rng: np.random.Generator) -> bytes:
        """So many lines, walked side by side."""
        counts = np.diff(self.first)
        walking = np.arange(n_lines)  # the lines that have not ended
        word = np.full(n_lines, LINE_END, dtype=np.int32)
        steps: list[tuple[NDArray[np.int64], NDArray[np.int32]]] = []
        while len(walking):
            # Subtle: each occurrence of a word is as likely as any other, so its followers come
            # in their frequency without a table of pairs.
            chosen = (rng.random(len(word)) * counts[word]).astype(np.int64)
            word = self.followers[self.first[word] + chosen]
            steps.append((walking, word))
            goes_on = word != LINE_END
            walking, word = walking[goes_on], word[goes_on]
        lengths = np.zeros(n_lines, dtype=np.int64)
        for length, (lines, _) in enumerate(steps, 1):
            lengths[lines] = length
        starts = np.cumsum(lengths) - lengths
        ids = np.empty(int(lengths.sum()), dtype=np.int32)
        for step, (lines, words) in enumerate(steps):
            ids[starts[lines] + step] = words
        return self.spelling.spell(ids)


def read_chains(specs: list[str]) -> list[Chain]:
    """One chain for each language of the specs, in order."""
    chains: list[Chain] = []
    for name, corpus in _languages(specs):
        chains.append(Chain.of(_blocks(corpus)))
        distinct, seen = len(chains[-1].spelling.first), len(chains[-1].followers)
        print(f"{name}: {seen:,} words, {distinct:,} distinct", file=sys.stderr)
    return chains


def _languages(specs: list[str]) -> Iterator[tuple[str, Corpus]]:
    """(name, text) of each label, then of each file without one."""
    corpus = Corpus.from_specs(specs)
    for language in corpus.languages:
        yield language, corpus.select(language)
    for text in specs:
        spec, single = parse_spec(text), Corpus.from_specs([text])
        if spec.language is not None:
            continue
        if not isinstance(spec.place, Local):
            yield text, single
            continue
        for path in single.paths:
            yield path.name, Corpus.from_files({path.name: path}, column=spec.place.column)


def _blocks(corpus: Corpus) -> Iterator[bytes]:
    for documents in corpus.batches():
        yield "".join(f"{text}\n" for text in documents.texts()).encode()


def sample(chains: list[Chain], n_bytes: int, seed: int) -> Iterator[bytes]:
    """Text of at least `n_bytes`, cut off behind the line that reaches them, in blocks.

    Each language has the share that it has in the corpus. The same seed gives the same bytes.
    """
    rng = np.random.default_rng(seed)
    total = sum(chain.n_bytes for chain in chains)
    left = n_bytes
    while left > 0:
        share = min(left, ROUND_BYTES) / total
        for chain in chains:
            block = chain.lines(math.ceil(share * chain.n_lines), rng)
            if len(block) >= left:
                block = block[: block.index(b"\n", left - 1) + 1]
            yield block
            left -= len(block)
            if left <= 0:
                return


def main() -> None:
    """Write the text and say how fast that was."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", metavar="CORPUS", nargs="+", help="[lang=]PATH|DIR|GLOB")
    parser.add_argument("--gb", type=float, required=True, help="10^9 bytes to make")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, help="default: standard output")
    args = parser.parse_args()
    if not args.gb > 0:
        parser.error(f"--gb {args.gb}: give a size above 0")
    chains = read_chains(args.corpus)
    opened = nullcontext(sys.stdout.buffer) if args.output is None else args.output.open("wb")
    start, written = time.perf_counter(), 0
    with opened as out:
        stream: BinaryIO = out
        for block in sample(chains, round(args.gb * 1e9), args.seed):
            stream.write(block)
            written += len(block)
    seconds = time.perf_counter() - start
    print(f"{written:,} bytes, {written / 1e6 / seconds:.0f} MB/s", file=sys.stderr)


if __name__ == "__main__":
    main()
