"""Parity-aware BPE on a few words: whom merges serve, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference.peer import merges_of_parity_trainer
from vocabshift import _core
from vocabshift.cli.main import main
from vocabshift.errors import CorpusError
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.patterns import NAMED
from vocabshift.text.scanners import compile_pattern
from vocabshift.tokenizer.token_bytes import is_superword, token_bytes
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.parity import ParityReport, ParityTrainer
from vocabshift.trainers.superword import SuperwordTrainer
from vocabshift.workflows.train import training_key

FOLDER = Path(str(resources.files("vocabshift.demo"))) / "texts"
LABELS = ("eng", "hin", "ben", "tam")
CORPUS = Corpus.from_files({label: FOLDER / f"{label}.txt" for label in LABELS})
LINES = {label: (FOLDER / f"{label}.txt").read_text("utf-8").splitlines() for label in LABELS}


def new_tokens(texts: Mapping[str, list[str]], n: int, **options: Any) -> list[str]:
    trainer = ParityTrainer(vocab_size=256 + n, **options)
    return list(trainer.train(Corpus.from_texts(texts)).model.vocab)[256:]


def report_of(trainer: ParityTrainer, context: RunContext | None = None) -> ParityReport:
    report = trainer.run(CORPUS, context).report
    assert isinstance(report, ParityReport)
    return report


def write(folder: Path, **texts: str) -> list[str]:
    for label, text in texts.items():
        (folder / f"{label}.txt").write_text(text, encoding="utf-8")
    return [f"{label}={folder / label}.txt" for label in texts]


def test_the_worst_compressed_language_is_served() -> None:
    """Both take a token per character at first, and the first one named wins the tie."""
    texts = {"x": ["abab"] * 9, "y": ["cd"]}
    assert ["ab", "cd", "abab"] == new_tokens(texts, 3)  # .5 of x leaves 1.0 of y; then a tie
    assert ["cd", "ab", "abab"] == new_tokens(dict(reversed(texts.items())), 3)


def test_parallel_text_decides(tmp_path: Path) -> None:
    """It need not be like the training text: what counts is whose has most tokens."""
    texts = {"x": ["abab"] * 9, "y": ["cdcd"]}
    parallel = write(tmp_path, x="a", y="cdcd")
    assert ["cd", "cdcd"] == new_tokens(texts, 2, parallel=parallel)
    trainer = ParityTrainer(vocab_size=257, parallel=tuple(parallel))
    report = trainer.run(Corpus.from_texts(texts)).report
    assert isinstance(report, ParityReport)
    assert {"x": 36, "y": 2} == report.language_tokens
    assert {"x": 1, "y": 2} == report.measured_tokens
    assert ["cd", "cdcd", "ab"] == new_tokens(texts, 3, parallel=write(tmp_path, x="a", y="cd e"))


def test_merges_for_one_shorten_the_others() -> None:
    """ "ab" for x leaves y at 2 tokens of 3 characters, worse than x's 1 of 2."""
    texts = {"x": ["ab"] * 5, "y": ["abc"]}
    assert ["ab", "abc"] == new_tokens(texts, 2)
    report = ParityTrainer(vocab_size=258).run(Corpus.from_texts(texts)).report
    assert isinstance(report, ParityReport)
    assert {"x": 1, "y": 1} == report.language_merges
    assert {"x": 5, "y": 1} == report.language_tokens == report.measured_tokens


def test_of_equal_counts_the_last_spelling() -> None:
    assert ["yz", "ab"] == new_tokens({"x": ["ab", "yz"], "y": ["q"]}, 2, pre_tokenizer="[a-z]+")


def test_the_hybrid_begins_as_plain_bpe() -> None:
    """ "cd" is frequent in both together, and in neither the most frequent."""
    texts = {"x": ["ab"] * 3 + ["cd"] * 2, "y": ["ef"] * 3 + ["cd"] * 2}
    assert ["ab", "ef"] == new_tokens(texts, 2)
    assert ["cd", "ab"] == new_tokens(texts, 2, global_merges=1)
    report = report_of(ParityTrainer(vocab_size=600, global_merges=100))
    assert (244, 344) == (sum(report.language_merges.values()), report.merges)


def test_the_window_gives_others_a_turn(tmp_path: Path) -> None:
    """x has 8 tokens and y 2, so that the first three merges are for x (8, 7, 6, 5 …)."""
    texts = {"x": ["abcdefgh"] * 2, "y": ["qr"] * 2}
    options: dict[str, Any] = {"parallel": write(tmp_path, x="abcdefgh", y="qr")}
    assert ["x", "x", "x", "x"] == served(texts, 4, **options)
    options["window_size"] = 2
    assert ["x", "x", "y", "x"] == served(texts, 4, **options, window_alpha=1.0)
    assert ["x", "x", "x", "x"] == served(texts, 4, **options, window_alpha=2.0)
    assert ["x", "y", "x", "x"] == served(texts, 4, **options, window_alpha=0.9)


def served(texts: Mapping[str, list[str]], n: int, **options: Any) -> list[str]:
    """Whose text has the token that each merge made."""
    tokens = new_tokens(texts, n, **options)
    return [next(label for label, of in texts.items() if token in of[0]) for token in tokens]


@pytest.mark.parametrize(
    "options", [{}, {"global_merges": 200}, {"window_size": 20, "window_alpha": 1.5}]
)
@pytest.mark.parametrize("is_parallel", [False, True])
def test_the_merges_are_those_of_tokenizers(
    tmp_path: Path, options: dict[str, Any], is_parallel: bool
) -> None:
    peer = dict(options)
    if "window_size" in options:
        peer |= {"variant": "window", "alpha": peer.pop("window_alpha")}
    parallel = {label: lines[:20] for label, lines in LINES.items()} if is_parallel else None
    expected = merges_of_parity_trainer(LINES, NAMED["o200k"], 900, parallel, **peer)
    specs = write(
        tmp_path, **{label: "\n".join(lines) for label, lines in (parallel or {}).items()}
    )
    trainer = ParityTrainer(vocab_size=256 + 800, parallel=tuple(specs), **options)
    merges = trainer.train(Corpus.from_texts(LINES)).model.merges
    assert expected[: len(merges)] == list(merges)


def test_superwords_on_top() -> None:
    report = report_of(ParityTrainer(vocab_size=1500, transition=0.8))
    assert (944, 300) == (report.stage1_merges, report.stage2_merges)
    assert report.superwords > 50
    tokens = token_bytes(ParityTrainer(vocab_size=1500).train(CORPUS)).values()
    assert not any(map(is_superword, tokens))


def test_a_small_language_has_superwords_too() -> None:
    """Of y's tokens one in two begins "m n"; of x's, which are more, one in four begins "a b"."""
    texts = {"x": ["a b c d"] * 50, "y": ["m n"] * 5}
    size = 256 + len(["Ġb", "Ġc", "Ġd", "Ġn"])
    options: dict[str, Any] = {"vocab_size": size + 1, "transition": size / (size + 1)}
    last = [
        list(trainer(**options).train(Corpus.from_texts(texts)).model.vocab)[-1]
        for trainer in (ParityTrainer, SuperwordTrainer)
    ]
    assert ["mĠn", "aĠb"] == last


def test_counts_do_as_well(tmp_path: Path) -> None:
    specs = [f"{label}={FOLDER / label}.txt" for label in LABELS]
    assert 0 == main(["count", *specs, "--pattern", "o200k", "-o", str(tmp_path / "counts")])
    trainer = ParityTrainer(vocab_size=700)
    from_counts = trainer.train(CountFolder.open(tmp_path / "counts"))
    assert trainer.train(CORPUS).model.merges == from_counts.model.merges


def test_a_killed_run_resumes_with_its_report(tmp_path: Path) -> None:
    trainer = ParityTrainer(vocab_size=700)
    context = RunContext(checkpoints=Checkpoints(tmp_path, training_key(trainer, CORPUS)))
    first = report_of(trainer, context)
    resumed = RunContext(checkpoints=Checkpoints(tmp_path, training_key(trainer, CORPUS)))
    second = report_of(trainer, resumed)
    assert ["count", "stage 1"] == [phase.name for phase in first.phases]
    assert () == second.phases
    assert first.language_merges == second.language_merges
    assert first.measured_tokens == second.measured_tokens


def test_the_key_of_a_run_has_the_parallel_text(tmp_path: Path) -> None:
    specs = tuple(write(tmp_path, eng="a", hin="b", ben="c", tam="d"))
    keys = {training_key(ParityTrainer(vocab_size=700, parallel=specs), CORPUS)}
    write(tmp_path, eng="other")
    keys.add(training_key(ParityTrainer(vocab_size=700, parallel=specs), CORPUS))
    assert 2 == len(keys)
    specs = tuple(f"{label}=hf:me/{label}" for label in LABELS)  # may change from run to run
    assert training_key(ParityTrainer(vocab_size=700, parallel=specs), CORPUS) is None


def test_memory_drops_rare_words_and_says_so() -> None:
    """Of 234,256 words those that occur twice stay, whatever the budget."""
    letters = [chr(ord("a") + number) for number in range(22)]
    words = [" qqqqqqq" + "".join(four) for four in itertools.product(letters, repeat=4)]
    texts = {"x": ["".join(words), "".join(words[:20])], "y": ["kl km"] * 3}
    trainer = ParityTrainer(vocab_size=260)
    report = trainer.run(Corpus.from_texts(texts), RunContext(memory_bytes=64_000_000)).report
    assert len(words) - 20 == report.dropped_words
    assert 2 == report.dropped_below
    assert "vocab_size" == report.stopped_because


@pytest.mark.parametrize(
    ("texts", "parallel", "message"),
    [
        (["ab"], {}, "parity compares languages, and some of the text has no label"),
        ({"hi": ["ab"]}, {}, "has only hi; give at least two"),
        ({"hi": ["ab"], "bn": ["ab"]}, {"hi": "a"}, "only one of the two has bn"),
        ({"hi": ["ab"], "bn": ["ab"]}, {"hi": "a", "bn": "b", "ta": "c"}, "two has ta"),
        ({"hi": ["ab"], "bn": ["ab"]}, {"hi": "a\nb", "bn": "b"}, "hi has 2, bn has 1 lines"),
        ({"hi": ["<s>"], "bn": ["ab"]}, {}, "the text in hi holds no word"),
        ({"hi": ["ab"], "bn": ["ab"]}, {"hi": "<s>", "bn": "b"}, "parallel text in hi holds no wo"),
    ],
)
def test_bad_languages(tmp_path: Path, texts: Any, parallel: dict[str, str], message: str) -> None:
    options: dict[str, Any] = {"parallel": tuple(write(tmp_path, **parallel))}
    trainer = ParityTrainer(vocab_size=300, special_tokens=("<s>",), **options)
    with pytest.raises(CorpusError, match=message):
        trainer.run(Corpus.from_texts(texts))


def test_parallel_text_without_a_label(tmp_path: Path) -> None:
    specs = write(tmp_path, hi="a", bn="b")
    trainer = ParityTrainer(vocab_size=300, parallel=(*specs, str(tmp_path / "hi.txt")))
    with pytest.raises(CorpusError, match="only one of the two has text without a label"):
        trainer.run(Corpus.from_texts({"hi": ["ab"], "bn": ["ab"]}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"global_merges": -1}, "global_merges is -1"),
        ({"global_merges": 44}, "leaves no merge to serve a language: stage 1 has 44"),
        ({"global_merges": 30, "transition": 0.95}, "stage 1 has 29"),
        ({"window_size": 0}, "window_size is 0"),
        ({"window_alpha": 0.0}, "window_alpha is 0.0"),
        ({"window_alpha": float("nan")}, "window_alpha is nan"),
        ({"vocab_size": 255}, "below the alphabet"),
        ({"grapheme_safe": True}, "grapheme_safe puts syllables first"),
        ({"transition": 1.5}, "transition is 1.5"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParityTrainer(**{"vocab_size": 300, **options})


def test_words_on_disk_make_no_difference(tmp_path: Path) -> None:
    """A counter that may hold nothing writes all words, and they are read in another order."""
    learned = []
    for budget in (0, 1):
        counters = []
        for texts in (LINES, {label: lines[:20] for label, lines in LINES.items()}):
            counter = _core.WordCounter(get_scanner(), 1, budget, str(tmp_path))
            for group, lines in enumerate(texts.values()):
                data = "".join(lines).encode()
                counter.add(data, np.array([0]), np.array([len(data)]), group)
            counters.append(counter)
        numbers = list(range(len(LINES)))
        parity = _core.Parity(len(LINES), numbers, counters[1], numbers)
        weights = _core.WordWeights([1] * len(LINES))
        learned.append(_core.train_bpe(counters[0], weights, 700, parity=parity).merges.tolist())
    assert learned[0] == learned[1]


def get_scanner() -> _core.PreTokenizer:
    scanner = compile_pattern(NAMED["o200k"])
    assert scanner is not None
    return scanner


def test_the_core_refuses_groups_without_a_language() -> None:
    counter = _core.WordCounter(_core.PreTokenizer([]))
    weights = _core.WordWeights([1])
    with pytest.raises(ValueError, match="every group of words needs a language"):
        _core.train_bpe(counter, weights, 300, parity=_core.Parity(2, [2]))
    with pytest.raises(ValueError, match="too many languages"):
        _core.train_bpe(counter, weights, 300, parity=_core.Parity(1 << 63, [2]))


def test_a_language_that_memory_has_no_word_of() -> None:
    """The words of x, which are more frequent, fill the budget."""
    counter = _core.WordCounter(_core.PreTokenizer([]))
    for group, count in enumerate((9, 1)):
        words = [f"{'xy'[group]}{number:07}" for number in range(1000)]
        ends = 8 * np.arange(1, len(words) + 1)
        counts = np.full(len(words), count, np.uint64)
        counter.add_words("".join(words).encode(), ends, counts, group)
    weights, parity = _core.WordWeights([1, 1]), _core.Parity(2, [0, 1])

    def train(memory_bytes: int) -> _core.Trained:
        return _core.train_bpe(
            counter, weights, 260, memory_bytes=memory_bytes, keep_words=True, parity=parity
        )

    assert 0 < train(0).peak_memory_bytes  # of few merges too
    with pytest.raises(ValueError, match="room for no word of one of the languages"):
        train(200_000)
