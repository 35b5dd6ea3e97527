"""A checkpoint belongs to one trainer on one input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vocabshift
from vocabshift.text.corpus import Corpus
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.trainers.superword import SuperwordTrainer
from vocabshift.workflows.train import training_key


def test_every_option_changes_the_key(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n", encoding="utf-8")
    corpus = Corpus.from_specs([str(tmp_path / "a.txt")])
    trainers = [
        BpeTrainer(vocab_size=300),
        BpeTrainer(vocab_size=301),
        BpeTrainer(vocab_size=300, pre_tokenizer="gpt2"),
        BpeTrainer(vocab_size=300, special_tokens=("<s>",)),
        SuperwordTrainer(vocab_size=300),
        SuperwordTrainer(vocab_size=300, max_words=3),
    ]
    keys = [training_key(trainer, corpus) for trainer in trainers]
    assert None not in keys
    assert len(keys) == len(set(keys))
    assert keys[0] == training_key(BpeTrainer(vocab_size=300), corpus)
    labelled = Corpus.from_specs([f"en={tmp_path / 'a.txt'}"])
    assert training_key(trainers[0], labelled) not in keys


def test_budget_and_version_change_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget may leave words out, and another version may learn other merges."""
    (tmp_path / "a.txt").write_text("one two\n", encoding="utf-8")
    corpus, trainer = Corpus.from_specs([str(tmp_path / "a.txt")]), BpeTrainer(vocab_size=300)
    keys = {training_key(trainer, corpus, budget) for budget in (0, 10**6, 10**7)}
    monkeypatch.setattr(vocabshift, "__version__", "0.0.0")
    keys.add(training_key(trainer, corpus))
    assert 4 == len(keys)


def test_the_content_of_a_tokenizer_that_gives_special_tokens_counts(tmp_path: Path) -> None:
    """Not only its path: special tokens are cut out of the text before it is counted."""
    (tmp_path / "a.txt").write_text("one two\n", encoding="utf-8")
    corpus = Corpus.from_specs([str(tmp_path / "a.txt")])
    folder = tmp_path / "base"
    BpeTrainer(vocab_size=256, special_tokens=("<s>",)).train(corpus).save_pretrained(folder)
    trainer = BpeTrainer(vocab_size=256, special_tokens_from=str(folder))
    before = training_key(trainer, corpus)
    text = (folder / "tokenizer.json").read_text(encoding="utf-8")
    assert "<s>" in json.loads(text)["added_tokens"][0]["content"]
    (folder / "tokenizer.json").write_text(text.replace("<s>", "<t>"), encoding="utf-8")
    config = folder / "tokenizer_config.json"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("<s>", "<t>"), encoding="utf-8")
    assert before != training_key(trainer, corpus)


def test_text_in_memory_has_no_key() -> None:
    assert training_key(BpeTrainer(vocab_size=300), Corpus.from_texts(["one"])) is None
