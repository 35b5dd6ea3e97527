"""A tokenizer's way to the Hub: measured, its card, a dry run, an upload that stays here."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vocabshift.cli.main import main

pytest.importorskip("huggingface_hub")

TALES = [
    "नदी पुराने घर के पास से बहती है। सुबह नाव नदी में आती है।",
    "The river runs past the old mill, and the mill turns all day.",
]


@pytest.fixture
def run(capsys):
    """Runs a verb with --json; its object, or the line that it ends with."""

    def call(*words: object, status: int = 0) -> Any:
        code = main([*map(str, words), "--json"])
        streams = capsys.readouterr()
        assert status == code, streams.err
        return streams.err if status else json.loads(streams.out)

    return call


@pytest.fixture
def folder(tmp_path: Path, run) -> Path:
    """A tokenizer with its card, and results beside it."""
    (tmp_path / "tales.txt").write_text("\n".join(TALES * 9), encoding="utf-8")
    (tmp_path / "hi.tsv").write_text("source\tbytes\tclass\tlicence\nx\t9\tnc\ty\n", "utf-8")
    spec = f"hi={tmp_path / 'tales.txt'}"
    command = ["train", "--recipe", "ist", "--corpus", spec, "--vocab-size", 320]
    out, results = tmp_path / "mill", tmp_path / "results.jsonl"
    run(*command, "-o", out)
    run("evaluate", out, "--text", spec, "--output", results)
    words = ["--sources", tmp_path / "hi.tsv", "--rebuild", " ".join(map(str, command))]
    run("card", out, "--results", results, *words, "-o", out / "README.md")
    return out


def test_the_command_on_the_card_rebuilds_the_file(folder: Path, tmp_path: Path, run) -> None:
    """What the card says is run again; the checksum that it names is that of the new file."""
    from vocabshift.report.card_facts import sha256_of

    card = (folder / "README.md").read_text(encoding="utf-8")
    command = re.search(r"```sh\n(.*?)\n```", card, re.DOTALL)
    assert command is not None
    run(*command.group(1).split(), "-o", tmp_path / "again")
    assert f"| {sha256_of(tmp_path / 'again' / 'tokenizer.json')} |" in card


def test_card_tells_all_that_it_was_rendered_from(folder: Path, run) -> None:
    """The object of --json and the results give the same card again."""
    from vocabshift.report.card import render_card
    from vocabshift.report.card_facts import Source, TokenizerFacts
    from vocabshift.results import read_results

    results, out = folder.parent / "results.jsonl", folder.parent / "card.md"
    words = ["--license", "other", "--limit", "one", "two", "--name", "Mill"]
    told = run("card", folder, "--results", results, *words, "-o", out)
    assert (str(out), "mill", ["hi"]) == (told.pop("out"), told["subject"], told["languages"])
    facts = TokenizerFacts.from_dict(told.pop("facts"))
    sources = [Source(**source) for source in told.pop("sources")]
    again = render_card(read_results([results]), facts, sources=sources, **told)
    assert out.read_text(encoding="utf-8") == again
    assert "# Mill\n" in again
    assert "exists already" in run("card", folder, "--results", results, "-o", out, status=2)


def test_publish_sends_nothing_unless_told(folder: Path, run, monkeypatch, capsys) -> None:
    from huggingface_hub import HfApi

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a dry run talks to nobody")

    for name in ("create_repo", "create_commit", "upload_folder"):
        monkeypatch.setattr(HfApi, name, never)
    told = run("publish", folder, "me/mill")
    names = ["README.md", "tokenizer.json", "tokenizer_config.json", "vocabshift.json"]
    assert names == [file["name"] for file in told["files"]]
    assert sum(file.stat().st_size for file in folder.iterdir()) == told["total_bytes"]
    assert (False, True, None) == (told["uploaded"], told["private"], told["url"])
    assert "tokenizers" == told["opened_by"][0]
    assert ["hi"] == told["card"]["language"]
    assert 0 == main(["publish", str(folder), "me/mill"])
    shown = capsys.readouterr().out
    assert "nothing was sent; with --upload it goes to me/mill (private)" in shown
    assert "card, license: not given" in shown
    assert not run("publish", folder, "me/mill", "--public")["private"]


@pytest.mark.parametrize(("words", "is_private"), [([], True), (["--public"], False)])
def test_upload_calls_the_library(folder: Path, run, monkeypatch, words, is_private) -> None:
    """One repository, one commit, exactly the files of the folder."""
    from huggingface_hub import HfApi

    calls: list[tuple[Any, ...]] = []

    def create_repo(_: object, repo_id: str, **options: object) -> SimpleNamespace:
        calls.append((repo_id, options))
        return SimpleNamespace(repo_id=repo_id)

    def create_commit(_: object, repo_id: str, **options: Any) -> SimpleNamespace:
        sent = {o.path_in_repo: Path(o.path_or_fileobj) for o in options.pop("operations")}
        calls.append((repo_id, sent, options))
        return SimpleNamespace(commit_url="https://huggingface.co/me/mill/commit/1")

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    monkeypatch.setattr(HfApi, "create_commit", create_commit)
    (folder / ".hidden").write_text("secret", encoding="utf-8")
    told = run("publish", folder, "me/mill", "--upload", "--message", "First", *words)
    names = ("README.md", "tokenizer.json", "tokenizer_config.json", "vocabshift.json")
    assert [
        ("me/mill", {"private": is_private, "exist_ok": True, "repo_type": "model"}),
        (
            "me/mill",
            {name: folder / name for name in names},
            {"commit_message": "First", "repo_type": "model"},
        ),
    ] == calls
    assert told["uploaded"]
    assert "https://huggingface.co/me/mill/commit/1" == told["url"]


def _no_card(folder: Path) -> None:
    (folder / "README.md").unlink()


def _bare_card(folder: Path) -> None:
    (folder / "README.md").write_text("# mill\n", encoding="utf-8")


def _broken_card(folder: Path) -> None:
    (folder / "README.md").write_text("---\na: [\n---\n", encoding="utf-8")


def _other_tokenizer(folder: Path) -> None:
    file = folder / "tokenizer.json"
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")


def _broken_tokenizer(folder: Path) -> None:
    (folder / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _unfinished(folder: Path) -> None:
    (folder / "model.safetensors.partial").write_bytes(b"")


def _in_progress(folder: Path) -> None:
    folder.with_name("mill.partial").mkdir()


def _link(folder: Path) -> None:
    (folder / "passwd").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_no_card, "has no README.md"),
        (_bare_card, "no metadata"),
        (_broken_card, "cannot be read"),
        (_other_tokenizer, "card of another tokenizer.json"),
        (_broken_tokenizer, "tokenizer.json"),
        (_no_tokenizer, "holds no tokenizer.json"),
        (_unfinished, "is unfinished"),
        (_in_progress, "work in progress"),
        (_link, "is a link"),
    ],
)
def test_what_is_amiss_stops_everything(folder: Path, run, monkeypatch, spoil, message) -> None:
    from huggingface_hub import HfApi

    calls: list[object] = []
    monkeypatch.setattr(HfApi, "create_repo", lambda *_, **__: calls.append(1))
    spoil(folder)
    error = run("publish", folder, "me/mill", "--upload", status=2)
    assert message in error
    assert 1 == error.count("\n")
    assert [] == calls


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("DIR", "a/b/c"), "no name of a repository"),
        (("nowhere", "me/mill"), "is no folder"),
    ],
)
def test_a_bad_call_is_refused(folder: Path, run, words, message) -> None:
    words = [folder if word == "DIR" else word for word in words]
    assert message in run("publish", *words, status=2)


def test_a_model_gets_a_card_and_is_published(tmp_path: Path, run) -> None:
    """Moved, trained, scored beside its base: the card has both steps, and the Hub reads it."""
    pytest.importorskip("transformers")
    from huggingface_hub import ModelCard

    from small_models import ENGLISH, build, new_tokenizer, old_tokenizer, save

    base, moved, trained = (tmp_path / name for name in ("base", "moved", "trained"))
    save(build("llama-tied", old_tokenizer()), old_tokenizer(), base)
    new_tokenizer().save_pretrained(tmp_path / "ist")
    run("transfer", base, tmp_path / "ist", "-o", moved)
    text = tmp_path / "en.txt"
    text.write_text("\n".join(ENGLISH), encoding="utf-8")
    settings = {"model": str(moved), "data": [f"en={text}"], "out": str(trained), "n_bytes": 500}
    settings |= {"sequence_length": 16, "batch_size": 4, "cpu": True}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (tmp_path / "cpt.toml").write_text("\n".join(lines), encoding="utf-8")
    run("cpt", tmp_path / "cpt.toml")
    bits = tmp_path / "bits.jsonl"
    run("score", base, trained, "--text", f"en={text}", "--output", bits)
    words = ["--results", bits, "--base", "me/mill", "--license", "mit"]
    written = run("card", trained, *words, "-o", trained / "README.md")
    assert ["transfer", "cpt"] == [step["operation"] for step in written["facts"]["steps"]]
    card = ModelCard((trained / "README.md").read_text(encoding="utf-8"))
    assert ("me/mill", "mit") == (card.data.base_model, card.data.license)
    assert "| cpt | all trained on" in card.text
    assert str(tmp_path) not in card.text
    assert "mit" == run("publish", trained, "me/mill-hi")["card"]["license"]
    line = run("card", tmp_path / "ist", *words, "-o", tmp_path / "card.md", status=2)
    assert "holds no weights, and only a model has a base model" in line
