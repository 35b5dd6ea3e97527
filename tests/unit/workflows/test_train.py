"""Training into a folder: what is written, what is verified, what is left after a failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend

import vocabshift
from vocabshift.errors import CorpusError, InvalidTokenizerError, UnreachableTokenError
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.pretrained_folder import PROBES
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.base import RunContext
from vocabshift.trainers.recipes import RECIPES, make_trainer
from vocabshift.workflows import train as run
from vocabshift.workflows.train import train_to_folder

TEXTS = ["the cat. the cat sat on the mat.", "घर में राम। घर में सीता।", "12345 (a != b)"] * 2
CORPUS = Corpus.from_texts(TEXTS)
LABELLED = Corpus.from_texts({"one": TEXTS[:3], "other": TEXTS[3:]})


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], dict[str, Any]]:
    """Options that make any recipe train a vocabulary of a size."""
    folder = tmp_path_factory.mktemp("base") / "small"
    make_trainer("bpe", {"vocab_size": 270}).train(CORPUS).save_pretrained(folder)

    def of(recipe: str, size: int) -> dict[str, Any]:
        return {"vocab_size": size, **({"base": str(folder)} if recipe == "on-top" else {})}

    return of


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_folder_and_the_keys_of_the_contract(
    recipe: str, tmp_path: Path, options: Callable[[str, int], dict[str, Any]]
) -> None:
    out = tmp_path / "out"
    result = train_to_folder(recipe, LABELLED, options(recipe, 300), out)
    keys = (
        *("out", "recipe", "vocab_size", "merges", "stage1_merges", "stage2_merges"),
        *("training_tokens", "phases", "config_hash"),
    )
    assert set(keys) <= set(result)
    assert str(out) == result["out"]
    assert recipe == result["recipe"]
    assert 0 == result["unreachable"]
    assert {"name", "seconds", "peak_rss_bytes"} == set(result["phases"][0])
    json.dumps(result)
    backend = Backend.from_file(str(out / "tokenizer.json"))
    encodings = backend.encode_batch(TEXTS, add_special_tokens=False)
    assert sum(len(encoding.ids) for encoding in encodings) == result["training_tokens"]
    assert TEXTS == [backend.decode(encoding.ids) for encoding in encodings]
    config = json.loads((out / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["clean_up_tokenization_spaces"] is False
    assert result["vocab_size"] == open_tokenizer(out).vocab_size


def test_provenance(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = train_to_folder("ist", CORPUS, {"vocab_size": 300}, out)
    provenance = json.loads((out / "vocabshift.json").read_text(encoding="utf-8"))
    assert vocabshift.__version__ == provenance["version"]
    assert "train" == provenance["operation"]
    assert "ist" == provenance["config"]["recipe"]
    assert 0.9 == provenance["config"]["transition"]
    assert result["config_hash"] == provenance["config_hash"]
    assert result["training_tokens"] == provenance["figures"]["training_tokens"]
    assert result["corpus_fingerprint"] == provenance["corpus_fingerprint"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_folders_do_not_depend_on_threads_or_names(
    recipe: str, tmp_path: Path, options: Callable[[str, int], dict[str, Any]]
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    train_to_folder(recipe, LABELLED, options(recipe, 320), first, threads=1)
    train_to_folder(recipe, LABELLED, options(recipe, 320), second, threads=3)
    names = sorted(file.name for file in first.iterdir())
    assert names == sorted(file.name for file in second.iterdir())
    assert [(first / name).read_bytes() for name in names] == [
        (second / name).read_bytes() for name in names
    ]


def test_an_existing_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("kept", encoding="utf-8")
    with pytest.raises(FileExistsError, match="--force"):
        train_to_folder("bpe", Corpus.from_texts([""]), {"vocab_size": 300}, out)
    with pytest.raises(CorpusError):
        train_to_folder("bpe", Corpus.from_texts([""]), {"vocab_size": 300}, out, force=True)
    assert ["out"] == [path.name for path in tmp_path.iterdir()]
    assert ["mine"] == [path.name for path in out.iterdir()]
    train_to_folder("bpe", CORPUS, {"vocab_size": 300}, out, force=True)
    assert not (out / "mine").exists()


def test_a_token_out_of_reach_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tokenizer, "unreachable", lambda _: ("abc",))
    with pytest.raises(UnreachableTokenError, match="1 tokens"):
        train_to_folder("bpe", CORPUS, {"vocab_size": 300}, tmp_path / "out")
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_reads_differently_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_another(tokenizer: object, folder: Path) -> object:
        other = make_trainer("bpe", {"vocab_size": 290}).train(CORPUS)
        return run_write_files(other, folder)

    run_write_files = run.write_files
    monkeypatch.setattr(run, "write_files", write_another)
    with pytest.raises(InvalidTokenizerError, match=r"document \d of the corpus"):
        train_to_folder("bpe", CORPUS, {"vocab_size": 310}, tmp_path / "out")
    assert [] == list(tmp_path.iterdir())


def test_unknown_recipes_and_options() -> None:
    with pytest.raises(ValueError, match="unknown recipe 'bp'; known are: bpe, superbpe, ist"):
        make_trainer("bp", {"vocab_size": 300})
    with pytest.raises(ValueError, match="recipe bpe has no option 'transition'"):
        make_trainer("bpe", {"vocab_size": 300, "transition": 0.9})


def test_options_reach_the_trainer() -> None:
    trainer = make_trainer("ist", {"vocab_size": 300, "special_tokens": ["<s>"], "max_words": 3})
    assert ("<s>",) == trainer.special_tokens
    assert 3 == trainer.max_words  # type: ignore[attr-defined]


def test_only_so_much_text_is_encoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document may be a whole file: it is compared up to a length."""
    seen: list[list[str]] = []

    encode_batch = Tokenizer.encode_batch

    def record(self: Tokenizer, texts: Any, **options: Any) -> Any:
        if list(texts) != list(PROBES):  # of the check of the folder
            seen.append(list(texts))
        return encode_batch(self, texts, **options)

    monkeypatch.setattr(Tokenizer, "encode_batch", record)
    monkeypatch.setattr(run, "_VERIFIED_CHARACTERS", 40)
    train_to_folder("bpe", CORPUS, {"vocab_size": 270}, tmp_path / "out")
    assert [[TEXTS[0], TEXTS[1][: 40 - len(TEXTS[0])]]] == seen


def test_without_a_folder_words_wait_where_the_system_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never in the folder that the process happens to run in."""
    monkeypatch.setattr("vocabshift.trainers.base.MIN_MEMORY", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(OSError, match=r"cannot create a file in .*none"):
        make_trainer("bpe", {"vocab_size": 270}).run(CORPUS, RunContext(memory_bytes=2))
