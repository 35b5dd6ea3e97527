"""Did anything change that nobody meant? Hashes of small runs on the texts of the package.

To renew them, after a change that is meant: run this file; each failure shows the new hash. If
TEXTS alone has changed, the sample texts were edited; then the others must change too.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

import pytest

from vocabshift.text.corpus import Corpus
from vocabshift.trainers.recipes import train_to_folder

TEXTS = "6790f7e490dbd16193bd7e9a9228b92d"
HASHES = {
    "boundless": "f4a139bc52e5ac789d117bea3b91c046",
    "bpe": "068bc3bc8ee3e71e4876469c19beb4eb",
    "ist": "581c9292c1f4e5bb6c2ce5c04b1790f8",
    "superbpe": "c0d04d6670dc423442df72e4a39f4244",
    "stacked": "9d59623775aee9887efee02730ff08d1",
}


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    """The package's own sample texts, by language."""
    folder = Path(str(resources.files("vocabshift.demo"))) / "texts"
    return {file.stem: file for file in sorted(folder.iterdir()) if file.suffix != ".md"}


def sha256(*contents: bytes) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()[:32]


def test_texts(files: dict[str, Path]) -> None:
    assert TEXTS == sha256(*(file.read_bytes() for file in files.values()))


@pytest.mark.parametrize("recipe", HASHES)
def test_tokenizer_json(recipe: str, files: dict[str, Path], tmp_path: Path) -> None:
    corpus = Corpus.from_files(files)
    options = {"vocab_size": 1500, "special_tokens": ["<|endoftext|>"]}
    train_to_folder(recipe, corpus, options, tmp_path / "out")
    assert HASHES[recipe] == sha256((tmp_path / "out" / "tokenizer.json").read_bytes())
