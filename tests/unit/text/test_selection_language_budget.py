"""So many bytes of each language: never more, drawn evenly, and the same ones every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vocabshift.errors import CorpusError
from vocabshift.text import readers
from vocabshift.text.corpus import Corpus
from vocabshift.text.documents import pack
from vocabshift.text.held_out import hold_out

HINDI = [f"वाक्य {i}" for i in range(3000)]
TAMIL = [f"வரி {i}" for i in range(300)]


def n_bytes(corpus: Corpus, label: str) -> int:
    return sum(len(text.encode()) for language, text in corpus.texts() if language == label)


def test_as_many_bytes_as_fit() -> None:
    """The order stays; a language that has less stays whole, and so does one not named."""
    corpus = Corpus.from_texts({"hi": HINDI, "ta": TAMIL})
    drawn = corpus.limit_bytes(20_000)
    texts = [text for label, text in drawn.texts() if label == "hi"]
    assert 19_900 < n_bytes(drawn, "hi") <= 20_000
    assert [text for text in HINDI if text in set(texts)] == texts
    assert [text for label, text in drawn.texts() if label == "ta"] == TAMIL
    assert list(corpus.limit_bytes({"ta": 1000}).select("hi").texts()) == [
        ("hi", text) for text in HINDI
    ]


def test_the_draw_depends_on_seed_and_language_alone() -> None:
    corpus = Corpus.from_texts({"hi": HINDI, "ta": TAMIL}, weights={"hi": 2.0})
    alone = Corpus.from_texts({"hi": HINDI}).limit_bytes(20_000)
    assert list(alone.texts()) == list(corpus.limit_bytes(20_000).select("hi").texts())
    assert list(alone.texts()) == list(alone.texts())
    other = Corpus.from_texts({"hi": HINDI}).limit_bytes(20_000, seed=1)
    assert list(alone.texts()) != list(other.texts())
    renamed = Corpus.from_texts({"mr": HINDI}).limit_bytes(20_000)
    assert [text for _, text in alone.texts()] != [text for _, text in renamed.texts()]


def test_every_part_of_a_file_is_drawn_from() -> None:
    """Thousand places in ten parts, of which half is drawn: 50 each, give or take."""
    corpus = Corpus.from_texts({"hi": [f"{i:04}" for i in range(1000)]}).limit_bytes(2000)
    places = [int(text) for _, text in corpus.texts()]
    assert 500 == len(places)
    found = np.histogram(places, bins=10, range=(0, 1000))[0]
    assert found.min() > 30
    assert found.max() < 70


def test_sources_of_one_language_share_its_budget(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(HINDI[:1500]), encoding="utf-8")
    (tmp_path / "b.txt").write_text("\n".join(HINDI[1500:]), encoding="utf-8")
    corpus = Corpus.from_files({"hi": [tmp_path / "a.txt", tmp_path / "b.txt"]})
    drawn = corpus.limit_bytes(20_000)
    sizes = [sum(documents.n_bytes for documents in part.read()) for part in drawn.parts]
    assert 19_900 < sum(sizes) <= 20_000
    assert min(sizes) > 8_000
    assert 19_900 < (drawn.n_bytes_hint or 0) <= 20_000
    assert drawn.paths == corpus.paths


def test_sources_of_one_language_have_draws_of_their_own(tmp_path: Path) -> None:
    """Line for line the same choice would take both sides of every pair, and neither of others."""
    for name in ("a", "b"):
        lines = [f"{name} {i:04}" for i in range(1500)]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    drawn = Corpus.from_files({"hi": [tmp_path / "a.txt", tmp_path / "b.txt"]}).limit_bytes(9_000)
    places = {name: {t[2:] for _, t in drawn.texts() if t[0] == name} for name in ("a", "b")}
    assert min(map(len, places.values())) > 500
    assert 300 < len(places["a"] & places["b"]) < 500


def test_blocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{{"text": "{text}"}}\n' for text in HINDI)
    (tmp_path / "a.jsonl").write_text(rows, encoding="utf-8")
    drawn = Corpus.from_specs([str(tmp_path / "a.jsonl")]).limit_bytes(9_000)
    found = list(drawn.texts())
    assert 0 < len(found) < len(HINDI)
    monkeypatch.setattr(readers, "pack", lambda texts, name: pack(texts, name, block_bytes=100))
    again = Corpus.from_specs([str(tmp_path / "a.jsonl")]).limit_bytes(9_000)
    assert found == list(again.texts())


def test_what_is_held_out_was_drawn() -> None:
    """Together the two parts are the drawn text, and no text is held out of what was left."""
    drawn = Corpus.from_texts({"hi": HINDI}).limit_roman_words(3).limit_bytes(20_000)
    training, held_out = hold_out(drawn)
    both = [*training.texts(), *held_out.texts()]
    assert sorted(both) == sorted(drawn.texts())
    assert len(list(held_out.texts())) == -(-len(both) // 20)


def test_refused() -> None:
    corpus = Corpus.from_texts({"hi": HINDI})
    with pytest.raises(ValueError, match="no 'ta' in the corpus; its languages: hi"):
        corpus.limit_bytes({"ta": 5})
    with pytest.raises(ValueError, match="0 bytes of a language"):
        corpus.limit_bytes(0)
    with pytest.raises(CorpusError, match="5 bytes of 'hi' are asked for"):
        list(corpus.limit_bytes(5).texts())
    with pytest.raises(CorpusError, match="5 bytes of the text are asked for"):
        list(Corpus.from_texts(HINDI).limit_bytes(5).texts())
