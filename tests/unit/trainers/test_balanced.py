"""Recipe vocabshift: what languages count, what it refuses, and that it stays what it promises."""

from __future__ import annotations

import random
from dataclasses import asdict
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import get_pattern
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.trainers.balanced import (
    WORDS,
    BalancedTrainer,
    draw_words,
    equal_characters,
    facts,
)
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.superword import SuperwordTrainer
from vocabshift.workflows.train import train_to_folder


def made_up(seed: int, letters: str, n_stems: int, n_lines: int) -> list[str]:
    """Lines of made-up words: the fewer stems, the easier a language is to compress."""
    chance = random.Random(seed)
    stems = ["".join(chance.choices(letters, k=5)) for _ in range(n_stems)]
    endings = ["".join(chance.choices(letters, k=2)) for _ in range(12)]
    line = lambda: " ".join(chance.choice(stems) + chance.choice(endings) for _ in range(8))  # noqa: E731
    return [line() for _ in range(n_lines)]


EASY = made_up(1, "abcdefghij", 40, 600)
HARD = made_up(2, "कखगघचछजझटठडढतथ", 900, 300)
CORPUS = Corpus.from_texts({"eng": EASY, "hin": HARD})


def learned(trainer: SuperwordTrainer, corpus: Corpus = CORPUS, **work: int) -> object:
    """What stands in the file."""
    model = trainer.run(corpus, RunContext(**work)).tokenizer.model
    return dict(model.vocab), tuple(model.merges)


def tokens(trainer: SuperwordTrainer, text: list[str], corpus: Corpus = CORPUS) -> int:
    """Tokens of a text."""
    return len(Encoder(trainer.train(corpus)).encode_batch(text)[0])


def test_a_language_that_takes_more_tokens_counts_more() -> None:
    unseen = made_up(2, "कखगघचछजझटठडढतथ", 900, 400)[300:]
    found = [tokens(BalancedTrainer(vocab_size=900, balance=b), unseen) for b in (0.0, 1.0, 2.0)]
    assert found[0] > found[1] > found[2]


def test_defaults_are_those_that_were_measured() -> None:
    """The results in docs were made with them; another value is another recipe."""
    assert 2.0 == BalancedTrainer(vocab_size=900).balance
    assert 5_000 == WORDS


def test_languages_have_as_many_characters_at_first() -> None:
    reader = CorpusReader(CORPUS, get_pattern("indic"), language_weights={})
    reader.count_words()
    weights = equal_characters(reader, draw_words(CORPUS.texts()))
    characters = {"eng": sum(map(len, EASY)), "hin": sum(map(len, HARD))}
    content = [weights[language] * n for language, n in characters.items()]
    assert content[0] == pytest.approx(content[1])
    counted = sum(weights[language] * reader.language_bytes[language] for language in characters)
    assert counted == pytest.approx(reader.n_bytes)
    reader.language_weights = weights
    assert [weights["eng"], weights["hin"]] == reader.weights
    assert reader.again(get_pattern("indic")).weights == reader.weights


def test_program_text_has_one_share_however_it_compresses() -> None:
    texts = {"eng": EASY, "code": HARD}
    plain, balanced = (
        learned(BalancedTrainer(vocab_size=900, balance=b), Corpus.from_texts(texts))
        for b in (0.0, 2.0)
    )
    assert plain == balanced


def test_weights_of_the_corpus_stay() -> None:
    heavy = Corpus.from_texts({"eng": EASY, "hin": HARD}, weights={"hin": 50.0})
    trainer = BalancedTrainer(vocab_size=900)
    assert tokens(trainer, HARD, heavy) < tokens(trainer, HARD)


def test_the_report_has_the_weights_that_were_found() -> None:
    """As if each language had as many characters, times its tokens per character squared."""
    report = BalancedTrainer(vocab_size=900).run(CORPUS).report
    assert {"eng", "hin"} == set(report.language_weights)
    reader = CorpusReader(CORPUS, get_pattern("indic"), language_weights={})
    reader.count_words()
    sizes = reader.language_bytes
    counted = sum(report.language_weights[label] * sizes[label] for label in sizes)
    assert counted == pytest.approx(sum(sizes.values()), rel=0.1)  # without what was held out
    alike = BalancedTrainer(vocab_size=900, balance=0.0).run(CORPUS).report.language_weights
    assert report.language_weights["hin"] > alike["hin"]
    assert facts(asdict(report))["a byte counts"].startswith("hin ")
    one = BalancedTrainer(vocab_size=900).run(Corpus.from_texts({"eng": EASY})).report
    assert {} == one.language_weights == facts(asdict(one))


@pytest.mark.parametrize("corpus", [Corpus.from_texts(EASY), Corpus.from_texts({"eng": EASY})])
def test_one_language_is_trained_as_by_ist(corpus: Corpus) -> None:
    options = {"pre_tokenizer": "indic", "stage2_pre_tokenizer": "indic-stage2"}
    ist = SuperwordTrainer(vocab_size=600, **options)
    assert learned(ist, corpus) == learned(BalancedTrainer(vocab_size=600), corpus)


def test_clean_and_the_same_with_any_threads() -> None:
    trainer = BalancedTrainer(vocab_size=900)
    assert () == tuple(unreachable_tokens(trainer.train(CORPUS)))
    first = learned(trainer, threads=1)
    assert first == learned(trainer, threads=3)
    assert first == learned(trainer, memory_bytes=200_000_000)


def test_every_text_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = train_to_folder("vocabshift", CORPUS, {"vocab_size": 700}, out)
    assert (0, 700, "vocabshift") == tuple(
        result[key] for key in ("unreachable", "vocab_size", "recipe")
    )
    assert ["weights", "count", "stage 1", "encode", "stage 2"] == [
        phase["name"] for phase in result["phases"]
    ]
    encoder = Encoder(out)
    text = "e\u0301 abc \u0915\u094d\u200d\u0937 \u0958"
    assert text == encoder.decode(encoder.encode(text))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"balance": -0.1}, "balance is -0.1; give a number from 0"),
        ({"balance": float("nan")}, "balance is nan"),
        ({"balance": 4.5}, "balance is 4.5"),
        ({"sampling_alpha": 0.3}, "leave sampling_alpha out"),
        ({"vocab_size": 255}, "below the alphabet"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BalancedTrainer(**{"vocab_size": 900, **options})  # type: ignore[arg-type]


def test_a_language_of_one_document_cannot_be_held_out() -> None:
    corpus = Corpus.from_texts({"eng": EASY, "hin": [" ".join(HARD)]})
    with pytest.raises(CorpusError, match=r"nothing is left of 'hin'.*two documents"):
        BalancedTrainer(vocab_size=900).train(corpus)
    blank = Corpus.from_texts({"eng": EASY, "hin": [" \n", *HARD[:10]]})
    with pytest.raises(CorpusError, match=r"held out of 'hin'.*use recipe ist"):
        BalancedTrainer(vocab_size=900).train(blank)


def test_counts_hold_no_documents(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file, counts = tmp_path / "hin.txt", tmp_path / "counts"
    file.write_text("\n".join(HARD), encoding="utf-8")
    words = ["--pattern", "indic-stage2"]
    assert 0 == main(["count", f"hin={file}", *words, "-o", str(counts)])
    with pytest.raises(CorpusError, match="give --corpus"):
        BalancedTrainer(vocab_size=900).train(CountFolder.open(counts))


def test_words_are_drawn_from_everywhere_and_are_as_many_of_each_language() -> None:
    many = [f"w{i} x{i}" for i in range(20_000)]
    samples = draw_words([*((("a"), text) for text in many), ("b", "é é ü"), ("c", " ")])
    assert ["a", "b"] == list(samples)
    assert WORDS == len(samples["a"].words) == len(set(samples["a"].words))
    places = [int(word[2:]) for word in samples["a"].words]
    assert min(places) < 2_000
    assert max(places) > 18_000
    assert (" é", " ü") == samples["b"].words
    assert 4 == samples["b"].n_characters
    assert samples["b"].characters_per_byte == pytest.approx(5 / 8)
    assert samples == draw_words([*((("a"), text) for text in many), ("b", "é é ü"), ("c", " ")])
