"""Plain BPE: what its tokenizer and its report say, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from vocabshift.errors import CorpusError
from vocabshift.storage.outcome import config_hash
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.base import RunContext, config_of
from vocabshift.trainers.byte_level import BpeTrainer

CORPUS = Corpus.from_texts({"eng": ["low low low lower lowest", "new newer"], "hin": ["घर घर"]})


def test_merges_by_hand() -> None:
    """lo 5, low 5 (ties go to the smaller ids), then Ġlow 4."""
    tokenizer = BpeTrainer(vocab_size=259).train(Corpus.from_texts(["low low low lower lowest"]))
    assert (("l", "o"), ("lo", "w"), ("Ġ", "low")) == tokenizer.model.merges
    assert {"lo": 256, "low": 257, "Ġlow": 258}.items() <= tokenizer.model.vocab.items()


def test_the_alphabet_is_always_whole() -> None:
    tokenizer = BpeTrainer(vocab_size=256).train(CORPUS)
    assert list(byte_level.ALPHABET) == list(tokenizer.model.vocab)
    assert () == tokenizer.model.merges


def test_the_tokenizer_is_lossless_and_has_no_normalizer() -> None:
    tokenizer = BpeTrainer(vocab_size=280).train(CORPUS)
    assert tokenizer.normalizer is None
    document = json.loads(to_json(tokenizer))
    byte_level_last = document["pre_tokenizer"]["pretokenizers"][-1]
    assert not byte_level_last["add_prefix_space"]
    assert not byte_level_last["use_regex"]
    assert "ByteLevel" == document["decoder"]["type"]
    for text in (" lower", "घ र\r\n", "\x00 e\u0301"):
        assert text == tokenizer.backend.decode(tokenizer.backend.encode(text).ids)


def test_report() -> None:
    training = BpeTrainer(vocab_size=270).run(CORPUS)
    report = training.report
    assert "bpe" == report.recipe
    assert 270 == report.vocab_size
    assert 14 == report.merges == report.stage1_merges
    assert 0 == report.stage2_merges
    assert 0 == report.superwords
    assert 3 == report.training_documents
    assert len("low low low lower lowestnew newer") + len("घर घर".encode()) == report.training_bytes
    assert "vocab_size" == report.stopped_because
    assert config_hash(config_of(BpeTrainer(vocab_size=270))) == report.config_hash
    assert ["count", "stage 1"] == [phase.name for phase in report.phases]
    assert all(phase.peak_rss_bytes > 0 for phase in report.phases)
    texts = [text for _, text in CORPUS.texts()]
    encodings = training.tokenizer.backend.encode_batch(texts)
    assert sum(len(encoding.ids) for encoding in encodings) == report.training_tokens


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"vocab_size": 5000}, "no_pair_left"),
        ({"vocab_size": 5000, "min_frequency": 3}, "min_frequency"),
        ({"vocab_size": 258}, "vocab_size"),
        ({"vocab_size": 256}, "vocab_size"),
    ],
)
def test_why_it_stopped(options: dict[str, int], reason: str) -> None:
    assert reason == BpeTrainer(**options).run(CORPUS).report.stopped_because


def test_limits() -> None:
    short = BpeTrainer(vocab_size=5000, max_token_bytes=3).train(CORPUS)
    assert 3 == max(map(len, short.model.vocab))
    frequent = BpeTrainer(vocab_size=5000, min_frequency=5).train(CORPUS)
    assert (("l", "o"), ("lo", "w")) == frequent.model.merges


def test_weights_decide_which_pairs_merge_and_count_no_token_twice() -> None:
    texts = {"a": ["xy xy"], "b": ["zq zq zq"]}
    plain = BpeTrainer(vocab_size=257).train(Corpus.from_texts(texts))
    assert (("z", "q"),) == plain.model.merges
    corpus = Corpus.from_texts(texts, weights={"a": 2.0})
    training = BpeTrainer(vocab_size=257).run(corpus)
    assert (("x", "y"),) == training.tokenizer.model.merges
    assert 3 + 8 == training.report.training_tokens


def test_the_order_of_weighted_documents_changes_nothing() -> None:
    """With min_frequency 2, two occurrences of weight 1 are enough, whichever part comes first."""
    weights = {"rare": 0.1, "plain": 1.0}
    texts = {"rare": ["ab"], "plain": ["xy xy"]}
    trainer = BpeTrainer(vocab_size=400, min_frequency=2)
    merges = [
        trainer.train(
            Corpus.from_texts({name: texts[name] for name in order}, weights=weights)
        ).model.merges
        for order in (("rare", "plain"), ("plain", "rare"))
    ]
    assert (("x", "y"),) == merges[1]
    assert merges[0] == merges[1]


def test_special_tokens_stand_behind_the_vocabulary() -> None:
    trainer = BpeTrainer(vocab_size=260, special_tokens=("<s>", "</s>"))
    tokenizer = trainer.train(CORPUS)
    assert 260 == tokenizer.vocab_size
    assert [("<s>", 260), ("</s>", 261)] == [(t.content, t.id) for t in tokenizer.added_tokens]
    assert "<s>" not in tokenizer.model.vocab
    assert [260, 261] == Tokenizer.from_json(to_json(tokenizer)).backend.encode("<s></s>").ids
    plain = BpeTrainer(vocab_size=260).train(CORPUS)
    assert plain.model.merges == tokenizer.model.merges


def test_a_regex_or_a_pattern_of_ones_own() -> None:
    texts = ["a-b-a-b-a-b"]
    one = BpeTrainer(vocab_size=300, pre_tokenizer="-").train(Corpus.from_texts(texts))
    assert () == one.model.merges
    none = BpeTrainer(vocab_size=300, pre_tokenizer=()).train(Corpus.from_texts(texts))
    assert ("-", "b") == none.model.merges[0]


def test_progress_is_told_by_phase() -> None:
    seen: list[str] = []
    BpeTrainer(vocab_size=300).run(
        CORPUS, RunContext(progress=lambda phase, done, total: seen.append(phase))
    )
    assert {"count"} <= set(seen) <= {"count", "stage 1"}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"vocab_size": 255}, ValueError, "below the alphabet.*at least 256"),
        ({"vocab_size": 300.0}, TypeError, "whole number"),
        ({"vocab_size": True}, TypeError, "whole number"),
        ({"vocab_size": 300, "min_frequency": 0}, ValueError, "min_frequency"),
        ({"vocab_size": 300, "max_token_bytes": 0}, ValueError, "max_token_bytes"),
        ({"vocab_size": 300, "pre_tokenizer": "nothing"}, ValueError, "no pre-tokenizer is named"),
        ({"vocab_size": 300, "normalizer": "lower"}, ValueError, "no normalizer is named"),
    ],
)
def test_bad_options(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        BpeTrainer(**options)  # type: ignore[arg-type]


def test_an_empty_corpus_is_an_error() -> None:
    with pytest.raises(CorpusError, match="holds no text"):
        BpeTrainer(vocab_size=300).train(Corpus.from_texts([""]))


def test_a_trainer_is_its_configuration() -> None:
    trainer = BpeTrainer(vocab_size=300)
    assert trainer == BpeTrainer(vocab_size=300)
    assert trainer != replace(trainer, min_frequency=2)
    assert "vocab_size=300" in repr(trainer)
    hashes = {
        config_hash(config_of(BpeTrainer(vocab_size=300))),
        config_hash(config_of(BpeTrainer(vocab_size=301))),
        config_hash(config_of(BpeTrainer(vocab_size=300, normalizer="nfc"))),
        config_hash(config_of(BpeTrainer(vocab_size=300, pre_tokenizer="gpt2"))),
    }
    assert 4 == len(hashes)
    assert config_hash(config_of(trainer)) in hashes
