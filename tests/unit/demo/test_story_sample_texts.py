"""The sample texts are what the demo says they are."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from vocabshift.demo import story


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], dict[str, Path]]:
    """The texts, written once."""
    return story.write_split(tmp_path_factory.mktemp("corpus"))


def documents(path: Path) -> list[str]:
    """Documents of a file, however they are stored."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [json.loads(line)["text"] for line in lines] if path.suffix == ".jsonl" else lines


def test_there_is_enough(split: tuple[dict[str, Path], dict[str, Path]]) -> None:
    """At least 15 languages, 10 scripts and 100 kB, code included."""
    texts = {name: documents(path) for name, path in split[0].items()}
    letters = {c for own in texts.values() for text in own for c in text if c.isalpha()}
    scripts = {unicodedata.name(letter, "unknown").split()[0] for letter in letters}
    assert len(texts) >= 15
    assert len(scripts) >= 10
    assert sum(len(text.encode()) for own in texts.values() for text in own) >= 100_000
    assert "code" in texts


def test_every_language_has_a_group() -> None:
    """And every group's languages are there."""
    grouped = [name for names in story.GROUPS.values() for name in names]
    assert sorted(story.languages()) == sorted(grouped)


def test_held_out_is_held_out(split: tuple[dict[str, Path], dict[str, Path]]) -> None:
    """No held-out document is trained on, and every language has one to measure."""
    for language in story.languages():
        train, held_out = (documents(part[language]) for part in split)
        assert held_out
        assert not set(train) & set(held_out)
        assert (len(train) + len(held_out) + 4) // 8 == len(held_out)


def test_lines_are_clean(split: tuple[dict[str, Path], dict[str, Path]]) -> None:
    """Documents are whole UTF-8, not blank, without stray blanks or control characters."""
    for part in split:
        for path in part.values():
            for text in documents(path):
                assert text.strip()
                assert "\ufffd" not in text
                assert "\r" not in text
                if path.suffix == ".txt":
                    assert text == text.strip()


def test_more_documents_than_there_are() -> None:
    """A file's last line ends in a newline: no empty document follows it."""
    everything = story.beginnings(10_000)
    assert all(text for own in everything.values() for text in own)
    assert everything == story.beginnings(max(map(len, everything.values())))
