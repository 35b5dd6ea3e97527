"""The Unigram trainer: what SentencePiece learns, as a tokenizer.json that says the same."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

import vocabshift as vs
from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.unigram import unigram_tokenizer
from vocabshift.trainers.unigram import learn_unigram, weighted_words, word_reader
from vocabshift.workflows.train import train_to_folder


def corpus() -> Corpus:
    """The demo's texts in three languages."""
    folder = Path(vs.__file__).parent / "demo" / "texts"
    return Corpus.from_files({name: folder / f"{name}.txt" for name in ("hin", "tam", "eng")})


TRAINER = vs.UnigramTrainer(vocab_size=900, special_tokens=("<|end|>",))


TRAINED = TRAINER.train(corpus())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unigram") / "unigram"
    train_to_folder("unigram", corpus(), {"vocab_size": 900, "special_tokens": ["<|end|>"]}, out)
    return out


def test_the_folder_is_a_plain_hugging_face_tokenizer(folder: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "नमस्ते दुनिया, the end  of\tit 🙂"
    assert text == tokenizer.decode(tokenizer(text)["input_ids"])
    assert [900] == tokenizer("<|end|>", add_special_tokens=False)["input_ids"]
    figures = json.loads((folder / "vocabshift.json").read_text())["figures"]
    assert 900 == figures["vocab_size"]
    backend = tokenizer.backend_tokenizer
    texts = [text for _, text in corpus().texts()]
    assert figures["training_tokens"] == sum(len(backend.encode(text).ids) for text in texts)


def test_threads_change_nothing() -> None:
    one, two = (TRAINER.train(corpus(), threads=threads) for threads in (1, 2))
    assert one.document == two.document


def test_its_ids_are_those_of_sentencepiece(tmp_path: Path) -> None:
    """The pieces that SentencePiece's own encoder takes, for each text of the corpus."""
    words = [("the", 9), ("then", 5), ("they", 4), ("नमस्ते", 6), ("नमन", 3), ("hat", 2), ("at", 7)]
    scored = learn_unigram(words, 300, character_coverage=1.0, max_piece_length=16)
    tokenizer = unigram_tokenizer(scored, normalizer=None, name="x")
    table = tmp_path / "words.tsv"
    table.write_text("".join(f"{word}\t{count}\n" for word, count in words), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(table),
        input_format="tsv",
        model_prefix=str(tmp_path / "m"),
        vocab_size=300,
        hard_vocab_limit=False,
        character_coverage=1.0,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        unk_id=0,
        bos_id=-1,
        eos_id=-1,
        minloglevel=2,
    )
    peer = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    for text in ("the hat", "then they नमस्ते", " at  the é", "नमननम"):
        assert peer.encode(text) == tokenizer.backend.encode(text).ids


def test_words_count_as_often_as_they_occur() -> None:
    """And parts by their weights: where every word counts once, no weight does anything."""
    texts = {"a": ["on on on at"], "b": ["in in at"]}
    for heavy, light in ((1.0, 1.0), (4.0, 0.5)):
        weighted = Corpus.from_texts(texts, weights={"a": heavy, "b": light})
        reader = word_reader(TRAINER, weighted)
        counts: Counter[str] = Counter()
        for word, count in weighted_words(reader, reader.count_words()):
            counts[word.strip()] += count
        assert counts["on"] == pytest.approx(3 * heavy, abs=1)
        assert counts["in"] == pytest.approx(2 * light, abs=1)


def test_weights_and_sampling_move_pieces_between_languages() -> None:
    """`--sampling-alpha` and SPEC@WEIGHT are there for this, and must not be taken for nothing."""

    def is_latin(piece: str) -> bool:
        return len(piece) > 2 and piece.strip("▁").isascii() and not piece.startswith("<")

    def latin(weight: float, alpha: float | None = None) -> int:
        folder = Path(vs.__file__).parent / "demo" / "texts"
        files = {name: folder / f"{name}.txt" for name in ("hin", "eng")}
        weighted = Corpus.from_files(files, weights={"eng": weight})
        trained = vs.UnigramTrainer(vocab_size=900, sampling_alpha=alpha).train(weighted)
        return sum(map(is_latin, trained.vocab))

    assert latin(0.05) < latin(1.0) < latin(20.0)
    assert latin(20.0, 0.1) < latin(20.0)


@given(st.text(max_size=30).filter(lambda text: "▁" not in text))
def test_text_comes_back(text: str) -> None:
    backend = TRAINED.backend
    assert text == backend.decode(backend.encode(text).ids)


def test_the_normalizer_travels_along() -> None:
    trained = vs.UnigramTrainer(vocab_size=900, normalizer="fifth-case").train(corpus())
    ids = [trained.backend.encode(text).ids for text in ("गंगा", "गङ्गा")]
    assert ids[0] == ids[1]


def test_fewer_pieces_where_the_text_has_no_more() -> None:
    trained = vs.UnigramTrainer(vocab_size=5000).run(Corpus.from_texts({"en": ["abc abd"] * 3}))
    assert trained.report.vocab_size < 300
    assert "no_piece_left" == trained.report.stopped_because


def test_pieces_that_nothing_gives_are_counted() -> None:
    """ "ab" is less likely than "a" and "b" together: no text gives it."""
    scored = learn_unigram([("a", 5), ("b", 5)], 300, character_coverage=1.0, max_piece_length=4)
    pieces, scores = (*scored.pieces, "ab"), (*scored.scores, -90.0)
    made = unigram_tokenizer(type(scored)(pieces, scores), normalizer=None, name="x")
    assert ("ab",) == made.unreachable()


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="give at least 257"):
        vs.UnigramTrainer(vocab_size=256)
    with pytest.raises(ValueError, match=r"character_coverage is 0.2; give a share from 0.9 to 1"):
        vs.UnigramTrainer(vocab_size=900, character_coverage=0.2)
    with pytest.raises(ValueError, match="has no room for the characters"):
        vs.UnigramTrainer(vocab_size=260).train(corpus())
    with pytest.raises(ValueError, match="fifth-case does not know"):
        vs.UnigramTrainer(vocab_size=900, normalizer="fifth-case:Tamil")


def test_counts_are_refused(tmp_path: Path) -> None:
    from vocabshift.text.count_folder import CountFolder, write_counts
    from vocabshift.text.counting import CorpusReader
    from vocabshift.text.patterns import get_pattern

    reader = CorpusReader(corpus(), get_pattern("o200k"), by_language=True)
    (tmp_path / "counts").mkdir()
    write_counts(reader.count_words(), reader, tmp_path / "counts")
    with pytest.raises(CorpusError, match="recipe unigram reads text"):
        TRAINER.train(CountFolder.open(tmp_path / "counts"))
