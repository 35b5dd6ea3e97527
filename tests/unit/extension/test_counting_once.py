"""Text is read once for each way of cutting it, however many tokenizers look at the words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.extension.continued import Additions
from vocabshift.extension.counting import TextCounts, count_metaspace
from vocabshift.extension.effect import measure
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.pruning import counts as token_counts
from vocabshift.text.counting import CorpusReader
from vocabshift.tokenizer.formats import load
from vocabshift.tokenizer.formats.sentencepiece import Piece, PieceType, Settings, from_pieces
from vocabshift.workflows.adapt_tokenizer import adapt_to_folder, adapt_tokenizer
from vocabshift.workflows.plan import CorpusCounts, plan

ENGLISH = "the cat and the other cat sat by the heater\nanother day, another letter\n" * 30
HINDI = "राम घर गया और सीता घर आई\nहिन्दी में राम घर आया\nसीता की किताब मेज पर है\n" * 30


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each time that words of a corpus were counted."""
    calls: list[int] = []
    original = CorpusReader.count_words

    def count_words(self: CorpusReader, **options: Any) -> Any:
        calls.append(1)
        return original(self, **options)

    monkeypatch.setattr(CorpusReader, "count_words", count_words)
    return calls


@pytest.fixture
def corpus(tmp_path: Path) -> vs.Corpus:
    (tmp_path / "en.txt").write_text(ENGLISH, encoding="utf-8")
    (tmp_path / "hi.txt").write_text(HINDI, encoding="utf-8")
    return vs.Corpus.from_files({"en": tmp_path / "en.txt", "hi": tmp_path / "hi.txt"})


@pytest.fixture
def base() -> vs.Tokenizer:
    """Of English, as Llama-3 cuts it: there is a repaired pre-tokenizer beside its own."""
    trainer = vs.BpeTrainer(vocab_size=280, pre_tokenizer="cl100k")
    return trainer.train(vs.Corpus.from_texts(ENGLISH.splitlines()))


def test_extending_counts_each_pre_tokenizer_once(
    base: vs.Tokenizer, corpus: vs.Corpus, counted: list[int]
) -> None:
    extend_with_report(base, corpus, ExtensionOptions(n_tokens=10))
    assert 2 == len(counted)  # its own, and the repaired one for the ceilings


def test_attempts_of_adapting_share_the_counts(
    base: vs.Tokenizer, corpus: vs.Corpus, counted: list[int]
) -> None:
    """The text runs out of pairs, so that both steps are done more than once."""
    few = vs.Corpus.from_texts(["kissa"])
    adapted = adapt_tokenizer(base, few, n_tokens=20)
    assert adapted.extension.n_added < 20
    assert 2 == len(counted)


def test_a_plan_and_what_follows_share_the_counts(
    base: vs.Tokenizer, corpus: vs.Corpus, counted: list[int]
) -> None:
    """The corpus under both pre-tokenizers, and the held-out text under both: four times."""
    counts = TextCounts(corpus)
    held_out = vs.Corpus.from_texts({"en": ["another cat"], "hi": ["राम आया"]})
    plan(base, counts, text=held_out, max_tokens=20)
    adapted = adapt_tokenizer(base, counts, n_tokens=5)
    assert 4 == len(counted)
    alone = adapt_tokenizer(base, corpus, n_tokens=5)
    assert alone.to_dict() == adapted.to_dict()
    assert alone.tokenizer.model.vocab == adapted.tokenizer.model.vocab


def test_tokens_of_the_base_are_counted_once(
    base: vs.Tokenizer, corpus: vs.Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the plan and for all attempts of the exchange."""
    original = token_counts.count_tokens
    of_base: list[str] = []

    def count_tokens(tokenizer: Any, *args: Any, **options: Any) -> Any:
        of_base.extend(["base"] if tokenizer is base else [])
        return original(tokenizer, *args, **options)

    monkeypatch.setattr(token_counts, "count_tokens", count_tokens)
    adapted = adapt_tokenizer(base, vs.Corpus.from_texts(["kissa"]), n_tokens=20)
    assert adapted.extension.n_added < 20
    assert ["base"] == of_base
    counts = CorpusCounts.of(corpus)
    held_out = vs.Corpus.from_texts({"en": ["another cat"], "hi": ["राम आया"]})
    plan(base, counts, text=held_out, max_tokens=20)
    shared = adapt_tokenizer(base, counts, n_tokens=5)
    assert ["base"] * 2 == of_base
    alone = adapt_tokenizer(base, corpus, n_tokens=5)
    assert alone.to_dict() == shared.to_dict()


def test_a_folder_is_opened_once_for_plan_and_exchange(
    base: vs.Tokenizer, corpus: vs.Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = base.save_pretrained(tmp_path / "base")
    original = load.load_folder
    opened: list[str] = []

    def load_folder(source: Any) -> vs.Tokenizer:
        opened.append(Path(source).name)
        return original(source)

    monkeypatch.setattr(load, "load_folder", load_folder)
    adapt_to_folder(folder, corpus, tmp_path / "out")
    assert 1 == opened.count("base")


def test_shared_counts_change_nothing(base: vs.Tokenizer, corpus: vs.Corpus) -> None:
    """Not even after another tokenizer, and other options, have used them."""
    counts = TextCounts(corpus)
    for options in (
        {"n_tokens": 30},
        {"n_tokens": 30, "pre_tokenizer": "repaired"},
        {"n_tokens": 30, "sampling_alpha": 0.3},
        {"n_tokens": 30, "normalizer": "nfd"},
        {"n_tokens": 7, "method": "append"},
    ):
        shared = extend_with_report(base, counts, ExtensionOptions(**options))
        alone = extend_with_report(base, corpus, ExtensionOptions(**options))
        assert alone.report.to_dict() == shared.report.to_dict()
        assert alone.tokenizer.model.vocab == shared.tokenizer.model.vocab
        assert alone.tokenizer.model.merges == shared.tokenizer.model.merges


def test_added_tokens_are_part_of_the_way_of_cutting(corpus: vs.Corpus, counted: list[int]) -> None:
    """Their ids are not: they move when tokens are taken out."""
    counts = TextCounts(corpus)
    texts = vs.Corpus.from_texts(ENGLISH.splitlines())
    for names in ((), ("<cat>",), ("cat",)):
        for vocab_size in (270, 280):
            trainer = vs.BpeTrainer(vocab_size=vocab_size, special_tokens=names)
            extend_with_report(trainer.train(texts), counts, ExtensionOptions(n_tokens=3))
    training, cuts, pre_tokenizers = 6, 3, 2  # o200k and its repair
    assert training + cuts * pre_tokenizers == len(counted)


def test_missing_characters_cost_no_further_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """SentencePiece: with the new characters and without them in one pass over the text."""
    reads: list[int] = []
    original = CorpusReader.read

    def read(self: CorpusReader, *args: Any) -> Iterator[Any]:
        reads.append(1)
        return original(self, *args)

    pieces = [
        Piece("<unk>", 0.0, PieceType.UNKNOWN),
        *[Piece(f"<0x{byte:02X}>", 0.0, PieceType.BYTE) for byte in range(256)],
        *[Piece(text, -float(i)) for i, text in enumerate(("▁", "a", "b"))],
    ]
    base = from_pieces(pieces, Settings(roles={"unk": 0}, byte_fallback=True))
    texts = vs.Corpus.from_texts({"x": ["abé abé ab", "aéaé ñb"], "y": ["ab ab"]})
    without = count_metaspace(base, texts, add_characters=None)
    before = measure(without.form, Additions((), ()), without.text)
    monkeypatch.setattr(CorpusReader, "read", read)
    report = extend_with_report(
        base, texts, ExtensionOptions(n_tokens=2, character_coverage=1.0)
    ).report
    assert 2 == len(reads)  # for the characters, then for the groups
    assert report.n_characters == 2
    assert report.effect is not None
    assert [row.bytes_per_token for row in before.languages] == [
        row.bytes_per_token_before for row in report.effect.languages
    ]
