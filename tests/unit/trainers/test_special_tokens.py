"""Special tokens of a new tokenizer: given, or copied from another with all that hangs on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer, ByteLevelTrainer
from vocabshift.trainers.special_tokens import add_special_tokens, copy_special_tokens
from vocabshift.trainers.superword import SuperwordTrainer

CORPUS = Corpus.from_texts(["the cat sat on the mat"])


@pytest.fixture
def plain() -> Tokenizer:
    return BpeTrainer(vocab_size=260).train(CORPUS)


@pytest.fixture
def other() -> Tokenizer:
    """Another tokenizer: three special tokens, one plain added one, roles, template, chat."""
    base = BpeTrainer(vocab_size=270).train(CORPUS)
    added = (
        AddedToken("<s>", 270),
        AddedToken("<tool>", 271, special=False),
        AddedToken("</s>", 272, rstrip=True),
        AddedToken("<pad>", 273),
    )
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [270], "tokens": ["<s>"]}},
    }
    return replace(
        base,
        added_tokens=added,
        post_processor={"type": "Sequence", "processors": [base.post_processor, template]},
        config={
            "bos_token": "<s>",
            "eos_token": {"content": "</s>", "rstrip": True},
            "unk_token": "<unk>",
            "model_max_length": 4096,
        },
        chat_template="{{ messages }}",
    )


def test_given_ones_come_behind_all_others(plain: Tokenizer) -> None:
    tokenizer = add_special_tokens(plain, ["<s>", "</s>"])
    assert [260, 261] == [token.id for token in tokenizer.added_tokens]
    assert all(token.special for token in tokenizer.added_tokens)
    again = add_special_tokens(tokenizer, ["<pad>"])
    assert [260, 261, 262] == [token.id for token in again.added_tokens]
    assert [260, *tokenizer.backend.encode("cat").ids] == tokenizer.backend.encode("<s>cat").ids


def test_nothing_given_changes_nothing(plain: Tokenizer) -> None:
    assert plain.added_tokens == add_special_tokens(plain, []).added_tokens


def test_bad_contents(plain: Tokenizer) -> None:
    with pytest.raises(ValueError, match="is empty"):
        add_special_tokens(plain, [""])
    with pytest.raises(ValueError, match="'<s>' is given twice"):
        add_special_tokens(plain, ["<s>", "<s>"])
    with pytest.raises(ValueError, match="'t' is one byte"):
        add_special_tokens(plain, ["t"])
    with pytest.raises(ValueError, match="'Ġ' is how a vocabulary spells one of the 256 bytes"):
        add_special_tokens(plain, ["Ġ"])


def test_one_that_is_there_already_stays(plain: Tokenizer) -> None:
    """Copied tokens may be named again: a chat template's <s>, say."""
    once = add_special_tokens(plain, ["<s>"])
    assert once.added_tokens == add_special_tokens(once, ["<s>"]).added_tokens


def test_ordinary_text_never_makes_a_special_token() -> None:
    """A pair whose product is a special token's content is refused, however frequent."""
    corpus = Corpus.from_texts(["<s> <s> <s>"] * 9)
    plain = BpeTrainer(vocab_size=258, pre_tokenizer=r"\S+").train(corpus)
    special = BpeTrainer(vocab_size=258, pre_tokenizer=r"\S+", special_tokens=("<s>",)).train(
        corpus
    )
    assert "<s>" in plain.model.vocab
    assert "<s>" not in special.model.vocab
    assert special.row_count - 1 == special.backend.token_to_id("<s>")


def test_no_token_is_spelt_as_a_special_token() -> None:
    """The vocabulary writes " the" as "Ġthe": the two would share a row."""
    trainer = BpeTrainer(vocab_size=262, special_tokens=("Ġthe",))
    tokenizer = trainer.train(Corpus.from_texts(["the the the"]))
    assert "Ġthe" not in tokenizer.model.vocab
    assert "the" in tokenizer.model.vocab
    assert tokenizer.added_tokens[0].id == tokenizer.vocab_size


def test_copied_ones_are_renumbered_with_their_flags(plain: Tokenizer, other: Tokenizer) -> None:
    tokenizer = copy_special_tokens(plain, other)
    assert [("<s>", 260, False), ("</s>", 261, True), ("<pad>", 262, False)] == [
        (token.content, token.id, token.rstrip) for token in tokenizer.added_tokens
    ]


def test_roles_template_and_chat_come_along(plain: Tokenizer, other: Tokenizer) -> None:
    tokenizer = copy_special_tokens(plain, other)
    assert "<s>" == tokenizer.config["bos_token"]
    assert {"content": "</s>", "rstrip": True} == tokenizer.config["eos_token"]
    assert "unk_token" not in tokenizer.config  # the new tokenizer has no such token
    assert "{{ messages }}" == tokenizer.chat_template
    ids = tokenizer.backend.encode("the cat").ids
    assert 260 == ids[0]
    assert "the cat" == tokenizer.backend.decode(ids, skip_special_tokens=True)


def test_given_and_copied_ones_together(other: Tokenizer, tmp_path: Path) -> None:
    folder = other.save_pretrained(tmp_path / "other")
    trainer = BpeTrainer(
        vocab_size=260, special_tokens=("<more>",), special_tokens_from=str(folder)
    )
    tokenizer = trainer.train(CORPUS)
    assert ["<s>", "</s>", "<pad>", "<more>"] == [t.content for t in tokenizer.added_tokens]
    assert [260, 261, 262, 263] == [token.id for token in tokenizer.added_tokens]
    again = tokenizer.save_pretrained(tmp_path / "again")
    assert (again / "tokenizer_config.json").exists()


@pytest.mark.parametrize("trainer", [BpeTrainer, SuperwordTrainer])
def test_special_tokens_in_the_corpus_are_counted_as_the_file_reads_them(
    trainer: type[ByteLevelTrainer],
) -> None:
    """Text is cut at them before training, so that the reported tokens are those of the file."""
    texts = ["one two<|end|>three four<|end|><|end|>", "five <|endless|> six <|end|> one two"] * 3
    training = trainer(vocab_size=300, special_tokens=("<|end|>", "<|endless|>")).run(
        Corpus.from_texts(texts)
    )
    encodings = training.tokenizer.backend.encode_batch(texts, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == training.report.training_tokens
