"""The verbs, against stand-ins for what they call."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.errors import InvalidTokenizerError
from vocabshift.results import Result, Results


class FakeCorpus:
    """Remembers its specs and has two languages."""

    languages = ("hin", "eng")
    paths = ()

    def __init__(self, specs, documents="line", chosen=None) -> None:
        self.specs, self.documents, self.chosen = specs, documents, chosen

    @classmethod
    def from_specs(cls, specs, documents="line"):
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

HINDI = {
    "language": "hi",
    "lines": 4,
    "n_bytes": 100,
    "tokens": 20,
    "round_trip_failures": 1,
    "ceiling_bytes_per_token": 5.2,
    "repaired_ceiling_bytes_per_token": 11.75,
    "bytes_per_token": 5.0,
}
CHECKED = SimpleNamespace(
    vocab_size=300,
    unreachable=("ab",),
    unreachable_by_pipeline=("ab", "\x1b[31m"),
    only_in_rare_contexts=(),
    only_by_merge_skipping=("ab",),
    byte_pieces=256,
    missing_byte_pieces=(),
    partial_utf8=(),
    superwords=(),
    terminal_spanning=(),
    duplicates=(),
    shadowed=(),
    special_tokens=("<s>",),
    other_added_tokens=(),
    id_holes=(7, 9),
    rows=310,
    padding=10,
    missing_rows=54,
    round_trip_failures=1,
    languages=(
        SimpleNamespace(
            language="hi", is_bound=True, lost_lines=["x \x1b"], to_dict=lambda: dict(HINDI)
        ),
    ),
    ok=False,
)


@pytest.fixture
def calls(monkeypatch) -> list[tuple]:
    """Puts stand-ins in place of the workshops; gives the list of their calls."""
    calls: list[tuple] = []
    for workflow in ("train", "transfer"):  # before what they import is another
        importlib.import_module(f"vocabshift.workflows.{workflow}")

    def stand_in(module: str, **names) -> None:
        fake = ModuleType(module)
        fake.__dict__.update(names)
        monkeypatch.setitem(sys.modules, module, fake)

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
            bytes_before=20,
            bytes_after=30,
            files={"model.safetensors": "rewritten"},
        )

    def evaluate(tokenizers, texts, metrics, *, base, threads, note, progress, **options):
        calls.append(("evaluate", tokenizers, texts.specs, metrics, base, threads, options))
        note("gini is left out")
        return Results([Result("ist", "hin", "fertility", 1.5, 3, 1.25, 1.75)])

    def check(tokenizer, corpus=None, *, threads, model_rows):
        calls.append(("check", tokenizer, corpus, threads, model_rows))
        return CHECKED

    def run_demo(out, *, force, json):
        assert not force
        calls.append(("demo", out, json))
        return {"out": str(out)}

    monkeypatch.setattr("vocabshift.workflows.train.train_to_folder", train_to_folder)
    stand_in("vocabshift.surgery.transfer", transfer_folder=transfer_folder)
    stand_in("vocabshift.evaluation.evaluate", evaluate=evaluate)
    stand_in("vocabshift.checks.check", check=check)

    def load_tokenizer(source, *, pattern=None):
        if source.endswith("ranks") and pattern is None:
            raise InvalidTokenizerError("name its pattern with --pattern")
        return f"<{source}>" if pattern is None else f"<{source} {pattern}>"

    files = {"local_path": Path, "tokenizer_file": Path}
    for name, value in (files | {"load_tokenizer": load_tokenizer}).items():
        monkeypatch.setattr(f"vocabshift.tokenizer.formats.load.{name}", value)
    monkeypatch.setattr(vs, "load_tokenizer", load_tokenizer)
    monkeypatch.setattr("vocabshift.tokenizer.unigram_or_wordpiece.open_prunable", load_tokenizer)
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
    expected |= {"n_moved": 4, "bytes_before": 20, "bytes_after": 30, "dry_run": False}
    expected |= {"files": {"model.safetensors": "rewritten"}, "notes": []}
    assert {**expected, "init": "fvt"} == _json(capsys, "transfer", "m", "t", "-o", out)
    assert [("transfer", "m", "t", Path(out), "fvt", False)] == calls
    words = ("--init", "auto", "--text", "hi=x")
    tried = [{"init": "mean", "bits_per_byte": 1.5}, {"init": "fvt", "bits_per_byte": 2.25}]
    found = _json(capsys, "transfer", "m", "t", *words, "-o", out)
    assert {**expected, "init": "mean", "tried": tried} == found
    assert 0 == main(["transfer", "m", "t", *words, "-o", out])
    assert "2.2500" in capsys.readouterr().out


def test_evaluate(calls, capsys, tmp_path: Path) -> None:
    """Rows are printed and written; a second time needs --force."""
    output = tmp_path / "results.jsonl"
    words = ("evaluate", "a", "b", "--text", "x", "--text", "y", "--base", "c", "-j", "1")
    printed = _json(capsys, *words, "--output", str(output))
    row = {"subject": "ist", "language": "hin", "metric": "fertility", "value": 1.5, "n": 3}
    assert {"results": [{**row, "ci_low": 1.25, "ci_high": 1.75}], "comparisons": []} == printed
    options = {"reference": None, "frequencies": None, "renyi_alpha": 2.5, "parallel": False}
    options |= {"code_switch": (), "morphemes": None, "leading_space": False}
    assert [("evaluate", {"a": "<a>", "b": "<b>"}, ["x", "y"], None, "<c>", 1, options)] == calls
    assert printed["results"] == Results.from_jsonl(output.read_text("utf-8")).to_dicts()
    assert [output] == list(tmp_path.iterdir())
    assert 2 == main([*words, "--output", str(output)])
    assert "exists already" in capsys.readouterr().err
    _json(capsys, *words, "--output", str(output), "--force")


def test_evaluate_options(calls, capsys) -> None:
    """Everything that can be said about the measuring arrives; notes go to stderr."""
    words = ("--metrics", "all", "--reference", "hi", "--renyi-alpha", "3", "--parallel")
    words += ("--code-switch", "hi+en")
    assert 0 == main(["evaluate", "a", "--text", "x", *words, "--frequencies", "f", "-j", "1"])
    printed = capsys.readouterr()
    assert "note: gini is left out" in printed.err
    assert "note" not in printed.out
    (call,) = calls
    assert ("evaluate", {"a": "<a>"}, ["x"], ["all"], None, 1) == call[:-1]
    assert ["f"] == call[-1].pop("frequencies").specs
    options = {"reference": "hi", "renyi_alpha": 3.0, "parallel": True, "leading_space": False}
    assert {**options, "code_switch": ["hi+en"], "morphemes": None} == call[-1]
    for order in ("0", "-1", "x", "nan"):
        assert 2 == main(["evaluate", "a", "--text", "x", "--renyi-alpha", order])
        assert "is not a number above 0" in capsys.readouterr().err
    assert 0 == main(["evaluate", "a", "--text", "x", "--compare-subjects"])
    assert "two tokenizers and five languages are needed" in capsys.readouterr().out


def test_a_pattern_goes_where_one_is_missing(calls, capsys) -> None:
    """Of several tokenizers only the rank file gets the pattern; one that none needs is refused."""
    _json(capsys, "check", "t", "x.ranks", "--pattern", "gpt2")
    assert ["<t>", "<x.ranks gpt2>"] == [call[1] for call in calls]
    assert 2 == main(["check", "x.ranks"])
    assert "name its pattern with --pattern" in capsys.readouterr().err
    assert 2 == main(["check", "t", "--pattern", "gpt2"])
    assert "--pattern is not needed" in capsys.readouterr().err


def test_check(calls, capsys) -> None:
    """Counts for each tokenizer; the tokens themselves with --details."""
    (entry,) = _json(capsys, "check", "t")["tokenizers"]
    assert {
        "tokenizer": "t",
        "vocab_size": 300,
        "unreachable": 1,
        "unreachable_by_pipeline": 2,
        "only_in_rare_contexts": 0,
        "only_by_merge_skipping": 1,
        "byte_pieces": 256,
        "missing_byte_pieces": 0,
        "partial_utf8": 0,
        "superwords": 0,
        "terminal_spanning": 0,
        "duplicates": 0,
        "shadowed": 0,
        "special_tokens": 1,
        "other_added_tokens": 0,
        "id_holes": 2,
        "rows": 310,
        "padding": 10,
        "round_trip_failures": 1,
        "languages": [HINDI | {"is_bound": True}],
        "ok": False,
    } == entry
    words = ("check", "t", "--details", "--text", "x", "-j", "3")
    (entry,) = _json(capsys, *words)["tokenizers"]
    assert ["ab"] == entry["details"]["unreachable"]
    assert [7, 9] == entry["details"]["id_holes"]
    assert {"hi": ["x \x1b"]} == entry["details"]["lost_lines"]
    assert (["x"], 3, None) == (calls[1][2].specs, *calls[1][3:])


@pytest.mark.parametrize(
    ("config", "rows"),
    [
        ({"vocab_size": 256}, 256),
        ({"text_config": {"vocab_size": 256}}, 256),
        ({"vocab_size": "256"}, None),
        ({"vocab_size": True}, None),
        ([], None),
        ("no JSON", None),
    ],
)
def test_check_reads_the_rows_of_the_model_beside(
    calls, capsys, tmp_path: Path, config: object, rows: int | None
) -> None:
    text = config if isinstance(config, str) else json.dumps(config)
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    for source in (tmp_path, tmp_path / "tokenizer.json"):
        (entry,) = _json(capsys, "check", str(source))["tokenizers"]
        assert rows == calls[-1][4] == entry.get("model_rows")
        assert (rows is not None) == ("missing_rows" in entry)


def test_check_strict(calls, capsys) -> None:
    """--strict exits with 2 once the report was printed."""
    assert 2 == main(["check", "t", "--strict", "--json"])
    assert not json.loads(capsys.readouterr().out)["tokenizers"][0]["ok"]


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
        (("transfer", "m", "t", "-o", "o"), ["tied to the embeddings", "next: vocabshift"]),
        (("evaluate", "a", "--text", "x"), ["fertility", "1.50 ±0.25"]),
        (("check", "t"), ["unreachable_by_pipeline", "next: the same with --details"]),
        (
            ("check", "t"),
            [
                "vocabshift extend t --pre-tokenizer repaired lifts the ceiling",
                "hi 5.20 -> 11.75",
                "at most: hi 4.0%",
            ],
        ),
        (
            ("check", "t", "--details"),
            ["unreachable_by_pipeline: 'ab' '\\x1b[31m'", "lines lost, hi: 'x \\x1b'"],
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
