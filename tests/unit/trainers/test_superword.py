"""IST and SuperBPE: the share of each stage, the boundaries that stay, limits of a superword."""

from __future__ import annotations

import pytest

from vocabshift.storage.outcome import config_hash
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED, from_spec
from vocabshift.trainers.base import config_of
from vocabshift.trainers.superword import SuperBpeTrainer, SuperwordTrainer

SENTENCES = [
    "of the people, by the people, for the people of the land. by the sea. by the sea shore.",
    "राम घर गया और सीता घर आई। राम घर आया। वह बाज़ार से घर आया।",
    "some further words so that there are enough pairs: quick brown foxes jump over lazy dogs.",
] * 3
CORPUS = Corpus.from_texts(SENTENCES)


def superwords(trainer: SuperwordTrainer, corpus: Corpus = CORPUS) -> list[str]:
    tokens = trainer.train(corpus).model.vocab
    return [token for token in tokens if "Ġ" in token.strip("Ġ")]


def test_the_transition_is_that_of_the_papers() -> None:
    """IST and SuperBPE learn 90 % inside words; another share is another recipe."""
    assert 0.9 == SuperwordTrainer(vocab_size=300).transition


def test_both_stages_and_their_shares() -> None:
    report = SuperwordTrainer(vocab_size=320, transition=0.9).run(CORPUS).report
    assert "ist" == report.recipe
    assert 288 - 256 == report.stage1_merges
    assert 32 == report.stage2_merges
    assert 64 == report.merges
    assert report.superwords > 0
    assert ["count", "stage 1", "encode", "stage 2"] == [phase.name for phase in report.phases]


def test_stage1_joins_no_words() -> None:
    tokenizer = SuperwordTrainer(vocab_size=340, transition=0.9).train(CORPUS)
    stage1 = tokenizer.model.merges[: 306 - 256]
    assert 84 == len(tokenizer.model.merges)
    assert [] == [pair for pair in stage1 if "Ġ" in "".join(pair).strip("Ġ")]


def test_the_exported_pattern_is_that_of_stage2() -> None:
    ist = SuperwordTrainer(vocab_size=320).train(CORPUS)
    superbpe = SuperBpeTrainer(vocab_size=320).train(CORPUS)
    assert NAMED["ist-stage2"] == from_spec(ist.pre_tokenizer)
    assert NAMED["superbpe-stage2"] == from_spec(superbpe.pre_tokenizer)


def test_sentence_boundaries() -> None:
    """IST stops at a terminal; SuperBPE goes on."""
    ist = superwords(SuperwordTrainer(vocab_size=600, transition=0.6))
    superbpe = superwords(SuperBpeTrainer(vocab_size=600, transition=0.6, max_words=None))
    assert any(".ĠbyĠtheĠsea" in token for token in superbpe)
    assert not any(".Ġ" in token for token in ist)
    assert any("ĠtheĠpeople" in token for token in ist)


@pytest.mark.parametrize("max_words", [1, 2, 3, 4])
def test_max_words(max_words: int) -> None:
    trainer = SuperwordTrainer(vocab_size=600, transition=0.6, max_words=max_words)
    most = max(len(token.replace("Ġ", " ").split()) for token in trainer.train(CORPUS).model.vocab)
    assert max_words == most


def test_superbpe_joins_four_words_at_most() -> None:
    trainer = SuperBpeTrainer(vocab_size=900, transition=0.4)
    most = max(len(token.replace("Ġ", " ").split()) for token in trainer.train(CORPUS).model.vocab)
    assert 4 == most


def test_max_token_bytes_holds_in_both_stages() -> None:
    trainer = SuperwordTrainer(vocab_size=600, transition=0.6, max_token_bytes=7)
    assert 7 == max(len(token) for token in trainer.train(CORPUS).model.vocab)


@pytest.mark.parametrize(("vocab_size", "transition"), [(290, 1.0), (290, 0.999), (5000, 1.0)])
def test_transition_one_is_bpe_inside_words_of_sentences(
    vocab_size: int, transition: float
) -> None:
    """Words that run out make no room for superwords, and the words stay apart in the file."""
    texts = [*SENTENCES, "it'sB ABCd aB BC x(a (a b(a"]
    trainer = SuperwordTrainer(vocab_size=vocab_size, transition=transition)
    training = trainer.run(Corpus.from_texts(texts))
    assert 0 == training.report.stage2_merges
    assert 0 == training.report.superwords
    assert (*NAMED["ist-stage2"], *NAMED["o200k"]) == from_spec(training.tokenizer.pre_tokenizer)
    encodings = training.tokenizer.backend.encode_batch(texts)
    assert sum(len(encoding.ids) for encoding in encodings) == training.report.training_tokens


def test_when_stage1_runs_out_stage2_takes_the_rest() -> None:
    training = SuperwordTrainer(vocab_size=800, transition=0.9).run(CORPUS)
    assert training.report.stage1_merges < 720 - 256
    assert training.report.stage2_merges > 0
    assert "no_pair_left" == training.report.stopped_because


def test_digits_and_punctuation_runs_stay_apart() -> None:
    texts = ["call 12345 now (a != b) ok 12345 now (a != b)"] * 4
    tokens = SuperwordTrainer(vocab_size=500, transition=0.7).train(Corpus.from_texts(texts))
    for token in tokens.model.vocab:
        digits = sum(character.isdigit() and character.isascii() for character in token)
        assert digits <= 3
        assert digits in (0, len(token))
        assert "!=" not in token or token.strip("Ġ!=") == ""


def test_training_tokens_are_those_of_the_file() -> None:
    training = SuperwordTrainer(vocab_size=340).run(CORPUS)
    encodings = training.tokenizer.backend.encode_batch(SENTENCES)
    assert sum(len(encoding.ids) for encoding in encodings) == training.report.training_tokens


@pytest.mark.parametrize("transition", [0, -0.5, 1.01, float("nan"), float("inf")])
def test_transition_is_a_share(transition: float) -> None:
    with pytest.raises(ValueError, match="transition"):
        SuperwordTrainer(vocab_size=1000, transition=transition)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 280, "transition": 0.9}, "below the alphabet of 256"),
        ({"vocab_size": 100}, "below the alphabet"),
        ({"vocab_size": 1000, "max_words": 0}, "max_words"),
        ({"vocab_size": 1000, "stage2_pre_tokenizer": "nothing"}, "no pre-tokenizer is named"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuperwordTrainer(**options)  # type: ignore[arg-type]


def test_recipes_with_the_same_options_are_told_apart() -> None:
    ist = SuperwordTrainer(vocab_size=400, stage2_pre_tokenizer="superbpe-stage2", max_words=4)
    assert config_hash(config_of(ist)) != config_hash(config_of(SuperBpeTrainer(vocab_size=400)))
