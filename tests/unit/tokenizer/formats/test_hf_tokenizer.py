"""hf_tokenizer: which calls the core serves; copies, other processes, folders; what is refused."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import transformers

import small_models
import vocabshift as vs
from vocabshift.tokenizer import pipeline
from vocabshift.tokenizer.batch_encoding import LazyEncodings
from vocabshift.tokenizer.formats import hf_tokenizer as module
from vocabshift.tokenizer.tokenizer import Tokenizer

TEXTS = ["the cat and the other cat " * 6, "another day, <|turn|>another letter"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer with a template, special tokens and a chat template."""
    tokenizer = small_models.old_tokenizer()
    return tokenizer.save_pretrained(tmp_path_factory.mktemp("hf") / "old")


@pytest.fixture
def hf(folder: Path) -> Any:
    return vs.hf_tokenizer(folder)


@pytest.fixture
def by_library(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Calls that reach transformers, and encodings that `tokenizers` makes."""
    calls: list[Any] = []
    usual = transformers.PreTrainedTokenizerFast._encode_plus
    made = LazyEncodings._make

    def encode(self: Any, *args: Any, **options: Any) -> Any:
        calls.append(args)
        return usual(self, *args, **options)

    def make(self: Any, wanted: Any) -> None:
        calls.append(wanted)
        made(self, wanted)

    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "_encode_plus", encode)
    monkeypatch.setattr(LazyEncodings, "_make", make)
    return calls


def test_the_core_serves_whole_calls(hf: Any, by_library: list[Any]) -> None:
    """None of these comes to transformers, and no encoding is made."""
    pairs = list(zip(TEXTS, TEXTS, strict=True))
    cut = {"truncation": True, "max_length": 9, "stride": 2}
    for call in (
        lambda: hf(TEXTS),
        lambda: hf(TEXTS[0]),
        lambda: hf("a", "cat"),
        lambda: hf.encode(TEXTS[0]),
        lambda: hf(pairs, padding=True, return_tensors="np"),
        lambda: hf(pairs, return_special_tokens_mask=True, return_token_type_ids=True),
        lambda: hf(TEXTS, **cut, padding="max_length", return_tensors="pt", return_length=True),
        lambda: hf(TEXTS, **cut, return_overflowing_tokens=True),
        lambda: hf([text.split() for text in TEXTS], is_split_into_words=True),
        lambda: hf(TEXTS, split_special_tokens=True, add_special_tokens=False),
        lambda: list(hf(TEXTS).items()),
    ):
        assert call()
        assert [] == by_library


def test_transformers_serves_the_others(hf: Any, by_library: list[Any]) -> None:
    for call in (
        lambda: hf("a cat"),
        lambda: hf(TEXTS, return_offsets_mapping=True),
        lambda: hf(TEXTS).word_ids(),
        lambda: hf.tokenize(TEXTS[0]),
    ):
        assert call()
        assert 1 == len(by_library)
        by_library.clear()


def test_only_the_encodings_asked_for_are_made(hf: Any, by_library: list[Any]) -> None:
    batch = hf([*TEXTS, *TEXTS], padding=True)
    assert len(batch[1].tokens) == len(batch["input_ids"][0])  # the other text is longer
    assert batch[1].tokens == batch.tokens(1) == batch.encodings[-3].tokens
    assert [[1]] * 4 == by_library
    assert 1 == len(batch.encodings._made)
    with pytest.raises(IndexError):
        batch.encodings[4]


def test_the_caller_may_change_its_lists(hf: Any) -> None:
    texts = [["a", "cat", "and"], ["the", "day"]]
    batch = hf(texts, is_split_into_words=True)
    texts[0].clear()
    texts.clear()
    assert [None, 0, 1, 2] == sorted(set(batch.word_ids(0)), key=lambda i: -1 if i is None else i)


def test_encodings_of_a_changed_tokenizer_are_refused(hf: Any) -> None:
    """Rather than words and characters of other tokens."""
    batch = hf(TEXTS)
    hf.add_tokens(["cat and"])
    with pytest.raises(RuntimeError, match="was changed after this batch was encoded"):
        batch.word_ids(0)
    assert hf(TEXTS).word_ids(0)


def test_asking_leaves_the_backend_as_it_is(hf: Any) -> None:
    batch = hf(TEXTS, truncation=True, max_length=5, padding="longest")
    hf(TEXTS)
    assert 5 == len(batch.char_to_token(0, 0) is not None and batch.tokens(0))
    assert (None, None) == (hf._tokenizer.truncation, hf._tokenizer.padding)


def test_a_warning_for_a_text_that_is_too_long(
    hf: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same as of transformers, and once."""
    base = sys.modules[transformers.PreTrainedTokenizerBase.__module__]
    said: list[str] = []
    monkeypatch.setattr(base.logger, "warning", said.append)
    for tokenizer in (transformers.AutoTokenizer.from_pretrained(folder), hf):
        tokenizer.model_max_length = 20
        tokenizer([*TEXTS, *TEXTS], max_length=30, truncation="do_not_truncate")
        assert [] == said[1:]
        tokenizer([TEXTS[1], *TEXTS])
        tokenizer(TEXTS)
    assert 2 == len(said)
    assert said[0] == said[1]
    assert " > 20)" in said[0]


def test_it_is_a_tokenizer_of_that_class(hf: Any, folder: Path) -> None:
    plain = transformers.AutoTokenizer.from_pretrained(folder)
    assert isinstance(hf, type(plain))
    assert isinstance(hf, transformers.PreTrainedTokenizerFast)
    assert type(plain).__name__ == type(hf).__name__
    assert repr(plain) == repr(hf)
    assert type(hf) is type(vs.hf_tokenizer(hf)) is module.with_core(type(plain))


def test_it_saves_what_transformers_saves(hf: Any, folder: Path, tmp_path: Path) -> None:
    """Every byte, so that the folder opens where vocabshift is not installed."""
    hf(TEXTS, truncation=True, max_length=5)
    hf(TEXTS)
    hf.save_pretrained(tmp_path / "ours")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "plain")
    ours = {file.name: file.read_bytes() for file in (tmp_path / "ours").iterdir()}
    assert {f.name: f.read_bytes() for f in (tmp_path / "plain").iterdir()} == ours
    again = type(hf).from_pretrained(tmp_path / "ours")
    assert type(hf) is type(again)
    assert hf(TEXTS)["input_ids"] == again(TEXTS)["input_ids"]


def test_a_new_tokenizer_is_learned_from_it(hf: Any, by_library: list[Any]) -> None:
    new = hf.train_new_from_iterator(small_models.HINDI, 300)
    assert new(small_models.HINDI)["input_ids"]
    assert type(hf) is type(new)
    assert [] == by_library


def test_copies_share_what_is_compiled(hf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickled or copied, with nothing of the core in them; changed, each for itself."""
    hf(TEXTS)
    made = []
    compile_model = pipeline.compile_model
    monkeypatch.setattr(
        pipeline, "compile_model", lambda *a, **k: made.append(1) or compile_model(*a, **k)
    )
    others = [copy.copy(hf), copy.deepcopy(hf), pickle.loads(pickle.dumps(hf)), vs.hf_tokenizer(hf)]
    for other in others:
        assert type(hf) is type(other)
        assert hf(TEXTS).data == other(TEXTS).data
    assert [] == made
    others[1].add_tokens(["cat and"])
    assert hf(TEXTS).data == others[2](TEXTS).data != others[1](TEXTS).data
    assert [1] == made


def test_nothing_keeps_it_alive(folder: Path) -> None:
    hf = vs.hf_tokenizer(folder)
    hf(TEXTS)
    seen = weakref.ref(hf)
    del hf
    gc.collect()
    assert seen() is None


HASHES = """
import sys, vocabshift as vs
from datasets.fingerprint import Hasher
hf = vs.hf_tokenizer(sys.argv[1])
print(Hasher.hash(hf), Hasher.hash(lambda row: hf(row["text"])))
"""


def test_datasets_recognise_it(hf: Any, folder: Path) -> None:
    """`map` finds its cache again in another process: the hashes are equal there."""
    pytest.importorskip("datasets")
    runs = [
        subprocess.run(
            [sys.executable, "-c", HASHES, str(folder)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in (1, 2)
    ]
    assert runs[0] == runs[1] != ""


@pytest.mark.parametrize(
    ("parallelism", "threads", "forked", "expected"),
    [
        ("false", "3", False, 1),
        ("0", None, False, 1),
        ("true", "3", True, 3),
        (None, "3", False, 3),
        (None, "3", True, 1),
        (None, None, False, len(os.sched_getaffinity(0))),
    ],
)
def test_threads_are_those_of_tokenizers(
    monkeypatch: pytest.MonkeyPatch,
    parallelism: str | None,
    threads: str | None,
    forked: bool,
    expected: int,
) -> None:
    named = {"TOKENIZERS_PARALLELISM": parallelism, "RAYON_NUM_THREADS": threads}
    for name, value in named.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    if forked:
        monkeypatch.setattr(module, "_IMPORTED_BY", -1)
    assert expected == module._threads()


def test_other_sources(folder: Path, hf: Any) -> None:
    """A Tokenizer, a file, and a tokenizer of transformers, which stays as it is."""
    plain = transformers.AutoTokenizer.from_pretrained(folder)
    for source in (plain, vs.load_tokenizer(folder), folder / "tokenizer.json", str(folder)):
        assert hf(TEXTS)["input_ids"] == vs.hf_tokenizer(source)(TEXTS)["input_ids"]
    assert not isinstance(plain, type(hf))


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        vs.hf_tokenizer(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="int is no tokenizer that can be used"):
        vs.hf_tokenizer(3)  # type: ignore[arg-type]
    slow = small_models.tiny_tokenizer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tokenizer, "to_hf", lambda _: transformers.ByT5Tokenizer())
        with pytest.raises(ValueError, match="ByT5Tokenizer, which is no fast tokenizer"):
            vs.hf_tokenizer(slow)


class OwnResults(transformers.PreTrainedTokenizerFast):
    """A class with results of its own, as those of layout models."""

    def _encode_plus(self, *args: Any, **options: Any) -> Any:
        return super()._encode_plus(*args, **options) | {"own": 1}


def test_a_class_with_results_of_its_own_keeps_them(folder: Path) -> None:
    hf = vs.hf_tokenizer(OwnResults.from_pretrained(folder))
    assert 1 == hf(TEXTS)["own"]
