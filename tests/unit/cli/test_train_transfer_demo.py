"""The verbs that learn and move, against stand-ins for what they call."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from types import SimpleNamespace

import pytest

import vocabshift as vs
from vocabshift import workflows
from vocabshift.cli.main import main
from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.missing_bytes import LostCharacters


class FakeCorpus:
    """Remembers its specs and has two languages."""

    languages = ("hin", "eng")
    paths = ()

    def __init__(self, specs, documents="line", chosen=None) -> None:
        self.specs, self.documents, self.chosen = specs, documents, chosen

    @classmethod
    def from_specs(cls, specs, documents="line", errors="strict"):
        return cls(specs, documents)

    def require_text(self) -> None:
        """There is."""

    def select(self, languages):
        if not set(languages) <= set(self.languages):
            raise ValueError("no such language in the corpus")
        return FakeCorpus(self.specs, self.documents, list(languages))


TRAINED = {
    "recipe": "ist",
    "vocab_size": 32000,
    "merges": 31744,
    "stage1_merges": 28000,
    "stage2_merges": 3744,
    "training_tokens": 10,
    "phases": [{"name": "count", "seconds": 1.25, "peak_rss_bytes": 5}],
    "config_hash": "abc",
    "unreachable": 0,
    "superwords": 3000,
    "stopped_because": "memory",
    "dropped_words": 7,
    "dropped_occurrences": 9,
    "dropped_below": 2,
    "stopped_below": 40,
    "vocabulary": [
        {"name": "Tamil", "tokens": 12, "share": 1.0, "superwords": 3, "mean_bytes": 4.5}
    ],
}


@pytest.fixture
def calls(monkeypatch) -> list[tuple]:
    """Puts stand-ins in place of the workshops; gives the list of their calls."""
    calls: list[tuple] = []
    for workflow in pkgutil.iter_modules(workflows.__path__):
        # Imported later, one would keep a stand-in that it imports.
        importlib.import_module(f"vocabshift.workflows.{workflow.name}")

    def stand_in(module: str, **names) -> None:
        for name, value in names.items():
            monkeypatch.setattr(f"{module}.{name}", value)

    def train_to_folder(
        recipe, corpus, options, out, *, reserve_dummies, threads, memory_bytes, **run
    ):
        run["progress"]("count", 1, 2)
        assert reserve_dummies == 0
        said = (threads, run["force"], memory_bytes, run["resume"])
        calls.append(("train", recipe, corpus, options, out, *said))
        return {"out": str(out), **TRAINED}

    def transfer_folder(model, tokenizer, out, options, *, force, **streaming):
        assert not any(streaming[key] for key in ("hard_links", "dry_run"))
        assert streaming["resume"]
        tried = {} if options.score is None else {"mean": 1.5, "fvt": 2.25}
        calls.append(("transfer", model, tokenizer, out, options.init, force))
        return SimpleNamespace(
            n_copied=5,
            n_initialized=3,
            n_removed=2,
            tied=True,
            vocab_size=8,
            rows=8,
            init=next(iter(tried), options.init),
            tried=tried,
            n_overridden=0,
            ambiguous={9: [1, 2]},
            n_moved=4,
            n_by_mean=21,
            n_described=2,
            distilled={},
            lost_characters=LostCharacters(7, 6, ("U+0004",), ("F1", "F2")),
            bytes_before=20,
            bytes_after=30,
            files={"model.safetensors": "rewritten"},
            left_out={"model.onnx": "other weights"},
        )

    def run_demo(out, *, force, json):
        assert not force
        calls.append(("demo", out, json))
        return {"out": str(out)}

    monkeypatch.setattr("vocabshift.workflows.train.train_to_folder", train_to_folder)
    stand_in("vocabshift.surgery.transfer", transfer_folder=transfer_folder)

    def load_tokenizer(source, *, pattern=None):
        if source.endswith("ranks") and pattern is None:
            raise InvalidTokenizerError("name its pattern with --pattern")
        return f"<{source}>" if pattern is None else f"<{source} {pattern}>"

    stand_in(
        "vocabshift.tokenizer.formats.load",
        load_tokenizer=load_tokenizer,
        open_tokenizer=load_tokenizer,
    )
    monkeypatch.setattr(vs, "Corpus", FakeCorpus)
    monkeypatch.setattr("vocabshift.text.corpus.Corpus", FakeCorpus)
    stand_in("vocabshift.demo.walk", run_demo=run_demo)
    return calls


def _json(capsys, *words: str) -> dict:
    assert 0 == main([*words, "--json"]), capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


TRAIN = ("train", "--recipe", "ist", "--corpus", "hin=a.txt", "--vocab-size", "32000", "-o", "o")


def test_train(calls, capsys, tmp_path: Path, monkeypatch) -> None:
    """Options reach the trainer by its own names, and only those that were given."""
    monkeypatch.chdir(tmp_path)
    more = ("--corpus", "eng=b.txt", "c.txt", "--transition", "0.8", "-j", "2", "--force")
    assert {"out": "o", **TRAINED} == _json(capsys, *TRAIN, *more)
    _, recipe, corpus, options, out, threads, force, memory_bytes, resume = calls[0]
    assert ("ist", "o", 2, True) == (recipe, out, threads, force)
    assert (0, True) == (memory_bytes, resume)
    assert {"vocab_size": 32000, "transition": 0.8} == options
    assert (["hin=a.txt", "eng=b.txt", "c.txt"], "line") == (corpus.specs, corpus.documents)


def test_train_takes_a_config(calls, capsys, tmp_path: Path, monkeypatch) -> None:
    """A TOML alone is enough."""
    monkeypatch.chdir(tmp_path)
    Path("f.toml").write_text(
        'recipe = "bpe"\ncorpus = "a.txt"\nvocab_size = 300\nout = "o"\ndocuments = "file"\n',
        encoding="utf-8",
    )
    _json(capsys, "train", "--config", "f.toml", "--normalizer", "nfc")
    assert {"vocab_size": 300, "normalizer": "nfc"} == calls[0][3]
    assert "file" == calls[0][2].documents


def test_train_keeps_the_languages_asked_for(calls, capsys, tmp_path: Path, monkeypatch) -> None:
    """--languages narrows the corpus, which refuses an unknown one."""
    monkeypatch.chdir(tmp_path)
    _json(capsys, *TRAIN, "--languages", "hin")
    assert ["hin"] == calls[0][2].chosen
    assert 2 == main([*TRAIN, "--languages", "tam"])
    assert "no such language" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train",), "--recipe is required"),
        (TRAIN[:3], "--corpus (or --counts) is required"),
        (TRAIN[:5], "--vocab-size is required"),
        (TRAIN[:7], "-o DIR is required"),
        ((*TRAIN, "--recipe", "magic"), "unknown recipe 'magic'; known are: bpe, superbpe, ist"),
        ((*TRAIN, "--recipe", "bpe", "--transition", "0.5"), "bpe does not take --transition"),
        ((*TRAIN, "--config", "none.toml"), "none.toml: No such file or directory"),
    ],
)
def test_train_refuses(calls, capsys, words, message: str) -> None:
    """What is missing or foreign is named before any work is done."""
    assert 2 == main(words)
    streams = capsys.readouterr()
    assert message in streams.err
    assert "" == streams.out
    assert [] == calls


def test_transfer(calls, capsys, tmp_path: Path) -> None:
    """The contract's keys come from the report."""
    out = str(tmp_path / "new")
    expected = {"n_copied": 5, "n_initialized": 3, "n_removed": 2, "vocab_size": 8, "rows": 8}
    expected |= {"out": out, "tied": True, "n_overridden": 0, "n_ambiguous": 1}
    expected["ambiguous"] = [{"id": 9, "old_ids": [1, 2]}]
    lost = {"before": 7, "after": 6, "names": ["U+0004"], "bytes_added": ["F1", "F2"]}
    expected |= {"n_by_mean": 21, "n_described": 2, "lost_characters": lost}
    expected |= {"n_moved": 4, "bytes_before": 20, "bytes_after": 30, "dry_run": False}
    expected |= {"files": {"model.safetensors": "rewritten"}, "notes": []}
    expected["left_out"] = {"model.onnx": "other weights"}
    assert {**expected, "init": "fvt"} == _json(capsys, "transfer", "m", "t", "-o", out)
    assert [("transfer", "m", "<t>", Path(out), "fvt", False)] == calls
    words = ("--init", "auto", "--text", "hi=x")
    tried = [{"init": "mean", "bits_per_byte": 1.5}, {"init": "fvt", "bits_per_byte": 2.25}]
    found = _json(capsys, "transfer", "m", "t", *words, "-o", out)
    assert {**expected, "init": "mean", "tried": tried} == found
    assert 0 == main(["transfer", "m", "t", *words, "-o", out])
    assert "2.2500" in capsys.readouterr().out


def test_demo(calls, capsys, tmp_path: Path) -> None:
    """The walk is told where to write and whether people read along."""
    out = tmp_path / "walk"
    assert {"out": str(out)} == _json(capsys, "demo", "-o", str(out))
    assert [("demo", str(out), True)] == calls


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            TRAIN,
            ["31,744 (28,000 + 3,744 in stage 2)", "Tamil", "stopped early", "next: vocabshift ev"],
        ),
        (("transfer", "m", "t", "-o", "o"), ["tied to the embeddings", "next: vocabshift score o"]),
        (
            ("transfer", "m", "t", "-o", "o"),
            [
                "21: the old tokenizer lacks their bytes",
                "made of a description",
                "F1 F2",
                "7 before, 6 after (U+0004, …)",
            ],
        ),
    ],
)
def test_what_people_see(calls, capsys, tmp_path: Path, monkeypatch, words, shown) -> None:
    """A table on stdout, what to type next, and nothing that steers the terminal."""
    monkeypatch.chdir(tmp_path)
    assert 0 == main(words)
    out = capsys.readouterr().out
    for text in shown:
        assert text in out
    assert "\x1b" not in out
