"""Time continued BPE: load, compile, count, learn, write; and beside others on the same text.

    python benchmarks/extend.py --quick
    python benchmarks/extend.py --tokenizer FOLDER --text et.txt --n-tokens 16000 --runs 3

CPU seconds of one thread, the least of several runs, each in a process of its own; wall is that of
the same run, memory the high-water mark of the process. The toolkit of the paper
(tokenizer-extension) is no package: its figures are in benchmarks/RESULTS.md.

Beside others (--peers): "tokenizers" trains as many tokens from nothing behind the same
pre-tokenizer, which is another result and only there for scale; "plain" is the slow twin that our
tests hold continued BPE to (tests/reference/continued.py), and must learn the same merges.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import tokenizers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
import measure
import train

from vocabshift.extension.continued import TrainingBase, extended, learn
from vocabshift.extension.counting import (
    TrainingInput,
    count_byte_level,
    count_metaspace,
    count_text,
)
from vocabshift.extension.options import ExtensionOptions
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.token_bytes import is_metaspace
from vocabshift.tokenizer.tokenizer import Tokenizer

PHASES = ("load", "compile", "count", "learn", "write")


def phases(job: tuple[str, Path, int]) -> dict[str, float]:
    """CPU seconds of each phase, wall seconds of all, peak MiB; `job`: base, text, tokens."""
    source, text, n_tokens = job
    start, times = time.perf_counter(), [time.process_time()]

    def lap() -> None:
        times.append(time.process_time())

    base = load_tokenizer(source)
    lap()
    corpus = Corpus.from_files({"text": text})
    if is_metaspace(base):
        lap()  # nothing: this kind is compiled when the characters that it lacks are counted
        counted = count_metaspace(base, corpus)
    else:
        form = TrainingBase(base)
        _ = form.tokens, form.held, form.encoder
        lap()
        counted = TrainingInput(form, count_byte_level(form, corpus))
    lap()
    learned = counted.additions(learn(counted.form, counted.text, n_tokens=n_tokens))
    lap()
    with tempfile.TemporaryDirectory() as folder:
        extended(base, learned).save_pretrained(Path(folder) / "longer")
    lap()
    taken = [end - begin for begin, end in pairwise(times)]
    figures = dict(zip(PHASES, taken, strict=True))
    figures["wall"] = time.perf_counter() - start
    figures["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["tokens"] = len(learned.tokens)
    return figures


def with_vocabshift(path: Path, *, source: str, n_tokens: int) -> Callable[[], int]:
    """Count and learn; the checksum is that of the merges."""
    base = load_tokenizer(source)
    asked = ExtensionOptions(n_tokens=n_tokens)

    def work() -> int:
        counted = count_text(base, Corpus.from_files({"text": path}), asked)
        learned = learn(counted.form, counted.text, n_tokens=n_tokens)
        return measure.checksum_of(learned.merges)

    return work


def with_tokenizers(path: Path, *, source: str, n_tokens: int) -> Callable[[], None]:
    """As many tokens from nothing, behind the same normalizer and pre-tokenizer."""
    base = load_tokenizer(source).backend
    if base.pre_tokenizer is None:
        raise SystemExit("tokenizers has no trainer for a tokenizer without pre-tokenizer")
    fresh = tokenizers.Tokenizer(tokenizers.models.BPE())
    fresh.pre_tokenizer = base.pre_tokenizer
    if base.normalizer is not None:
        fresh.normalizer = base.normalizer
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + n_tokens, initial_alphabet=alphabet, show_progress=False
    )
    return lambda: fresh.train_from_iterator(train.lines(path), trainer)


def with_plain(path: Path, *, source: str, n_tokens: int) -> Callable[[], int]:
    """The slow twin: every pair counted anew for every token."""
    from reference import continued

    base = load_tokenizer(source)

    def work() -> int:
        words = Counter(_segmented(base, path))
        vocab = sorted(base.model.vocab, key=base.model.vocab.__getitem__)
        held = {part for merge in base.model.merges for part in merge}
        _, merges, _ = continued.learn(words, vocab, n_tokens, lexicographic=False, held=held)
        return measure.checksum_of([merge for merge, _ in merges])

    return work


def _segmented(base: Tokenizer, path: Path) -> Iterator[tuple[str, ...]]:
    backend = base.backend
    for line in train.lines(path):
        text = line if backend.normalizer is None else backend.normalizer.normalize_str(line)
        for word, _ in backend.pre_tokenizer.pre_tokenize_str(text):
            yield tuple(token.value for token in backend.model.tokenize(word))


CONTESTANTS = {
    "vocabshift": with_vocabshift,
    "tokenizers": with_tokenizers,
    "plain": with_plain,
}


def main() -> None:
    """Run and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", metavar="FOLDER")
    parser.add_argument("--text", type=Path, help="a UTF-8 text file, one document a line")
    parser.add_argument("--n-tokens", type=int, default=16_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", nargs="*", choices=list(CONTESTANTS)[1:], default=[])
    parser.add_argument("--quick", action="store_true", help="the package's own sample texts")
    args = parser.parse_args()
    if args.quick or not args.text:
        args.text, args.n_tokens, args.peers = train.sample_text(), 100, list(CONTESTANTS)[1:]
    source = args.tokenizer or small_base(args.text)
    n_bytes = args.text.stat().st_size
    name = Path(source).name
    what = f"{name} on {args.text.name}, {n_bytes / 1e6:.1f} MB, +{args.n_tokens:,} tokens"
    job = (source, args.text, args.n_tokens)
    runs = []
    for _ in range(args.runs):
        with multiprocessing.get_context("spawn").Pool(1) as process:
            runs.append(process.apply(phases, (job,)))
    least = [min(run[name] for run in runs) for name in PHASES]
    print(f"### Extending: {what}\n")
    print(f"| {' | '.join(PHASES)} | count + learn | CPU s in all | elapsed s | peak MiB | added |")
    print("|" + "---:|" * (len(PHASES) + 5))
    cells = [f"{value:.2f}" for value in (*least, least[2] + least[3], sum(least))]
    cells += [f"{min(run['wall'] for run in runs):.2f}", f"{max(run['peak'] for run in runs):.0f}"]
    print(f"| {' | '.join(cells)} | {runs[0]['tokens']:,} |\n")
    if args.peers:
        works = {
            name: partial(CONTESTANTS[name], source=source, n_tokens=args.n_tokens)
            for name in ("vocabshift", *args.peers)
        }
        title = f"Counting and learning: {what}"
        print(measure.report(title, measure.compare(works, args.text, args.runs), n_bytes))
    print(measure.machine())


def small_base(text: Path) -> str:
    """A tokenizer of 1,000 tokens trained on the text itself."""
    import vocabshift as vs

    folder = Path(tempfile.mkdtemp()) / "bpe-1k"
    corpus = vs.Corpus.from_files({"text": text})
    vs.BpeTrainer(vocab_size=1_000).train(corpus).save_pretrained(folder)
    return str(folder)


if __name__ == "__main__":
    main()
