"""Did anything change that nobody meant? Hashes of small runs on the texts of the package.

To renew them, after a change that is meant: run this file; each failure shows the new hash. If
TEXTS alone has changed, the sample texts were edited; then the others must change too.
"""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from vocabshift.text.corpus import Corpus
from vocabshift.workflows.train import RECIPES, train_to_folder

TEXTS = "6790f7e490dbd16193bd7e9a9228b92d"
HASHES = {
    "bpe": "068bc3bc8ee3e71e4876469c19beb4eb",
    "superbpe": "e7be358bd4a19b5a581f6514ed5461b1",
    "ist": "303a747cea75724e9dc43e7c0fbc8174",
    "matra": "a3fb673a4e795a082038e22d83737132",
    "vocabshift": "d1bcd3148c4508aa1124b330061855c9",
    "boundless": "1810e2fa26454cfebeaa0f8481415e7a",
    "picky": "535bdc2c988b8782abcddd9ed6006dca",
    "overlap": "3b6b6ef8008cf70118d1f6c7247a030e",
    "parity": "5100777d6c89297fd8b6631c5a931839",
    "stacked": "9d59623775aee9887efee02730ff08d1",
    "on-top": "b300b9ebe23d7442e1617a25b8496256",
    "unigram": "390b576f673cca3b9df92ed5f5c6661c",
    "cluster": "3de97639d876cc6cd7d2771f84772e81",
    "cluster-bpe": "bec2eb2240a743e92ec023b110a41931",
}
IDS = {
    "bpe": "b0f96334781176ba79b789a16be3f804",
    "superbpe": "bba7ea1e3743dce0ccf275c0dec2af9c",
    "ist": "5aafae3c7776726dc55850d0130bc4fe",
    "matra": "14a67e954523e7886c6c818023ad3881",
    "vocabshift": "b8ccb106f5ac99206c33e8dc7f830ff3",
    "boundless": "9dbb7599523d90af511c929354ca06af",
    "on-top": "3a3a217943ac4b3b7cc1d637c0177ec3",
}
"""Of the ids of TEXTS, as `tokenizers` encodes them: they stay when only the spelling of the file
changes."""
# Of Unigram models the hash is of pieces in their order. Their scores are the trainer's own
# logarithms, whose last bits may be the machine's: only the mean is held, to six digits.
MEAN_SCORES = {"unigram": -6.772691, "cluster": -8.761155}


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


def test_every_recipe_is_held() -> None:
    assert set(RECIPES) == set(HASHES)


@pytest.mark.parametrize("recipe", HASHES)
def test_tokenizer_json(recipe: str, files: dict[str, Path], tmp_path: Path) -> None:
    if recipe in ("unigram", "cluster", "cluster-bpe"):
        pytest.importorskip("sentencepiece")
        pytest.importorskip("scipy")
    corpus = Corpus.from_files(files)
    options: dict[str, Any] = {"vocab_size": 1500, "special_tokens": ["<|endoftext|>"]}
    if recipe == "on-top":
        train_to_folder("bpe", corpus, {**options, "vocab_size": 1200}, tmp_path / "base")
        options = {"vocab_size": 1500, "base": tmp_path / "base"}
    train_to_folder(recipe, corpus, options, tmp_path / "out")
    content = (tmp_path / "out" / "tokenizer.json").read_bytes()
    if recipe in MEAN_SCORES:
        document = json.loads(content)
        pieces, scores = zip(*document["model"]["vocab"], strict=True)
        document["model"]["vocab"] = pieces
        content = json.dumps(document).encode()
        assert MEAN_SCORES[recipe] == pytest.approx(sum(scores) / len(scores), rel=1e-6)
    if recipe in IDS:
        library = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
        texts = [file.read_text(encoding="utf-8") for file in files.values()]
        ids = [encoding.ids for encoding in library.encode_batch(texts)]
        assert IDS[recipe] == sha256(json.dumps(ids).encode())
    assert HASHES[recipe] == sha256(content)
