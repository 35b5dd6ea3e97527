"""`teach`, and `cpt` with a teacher: from two models and text to a model folder."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import small_models
from saved_models import weights
from vocabshift.cli.cpt import show
from vocabshift.cli.main import main
from vocabshift.cpt import run as run_module
from vocabshift.cpt import teacher_writer
from vocabshift.cpt.chunks import Stretch
from vocabshift.cpt.teacher import LiveTeacher
from vocabshift.cpt.teacher_folder import ARRAYS, StoredTeacher
from vocabshift.text.corpus import Corpus
from vocabshift.workflows.teach import teach_to_folder

torch = pytest.importorskip("torch")

TEXT = {
    "en": [
        f"the cat {number} and the other cat sat by the heater {number}" for number in range(20)
    ],
    "hi": [f"बिल्ली {number} और दूसरी बिल्ली वहाँ बैठी थी" for number in range(12)],
}
LONG = " ".join(["another day, another letter and the other heater"] * 8)

Verb = Callable[..., Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Text, a model, and the same model with another tokenizer."""
    from vocabshift.surgery.transfer import transfer_folder

    folder = tmp_path_factory.mktemp("matching")
    for label, lines in TEXT.items():
        (folder / f"{label}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "en.txt").open("a") as file:
        file.write(LONG + "\n")
    old = small_models.old_tokenizer()
    small_models.save(small_models.build("llama", old), old, folder / "old")
    transfer_folder(folder / "old", small_models.new_tokenizer(), folder / "new")
    return folder


@pytest.fixture
def run(capsys) -> Verb:
    """Run a verb with --json: its result, or its one line of error."""

    def go(*words: Any, status: int = 0) -> Any:
        code = main([*map(str, words), "--json"])
        streams = capsys.readouterr()
        assert code == status, streams.err
        return json.loads(streams.out) if status == 0 else streams.err.splitlines()[-1]

    return go


@pytest.fixture
def cpt(run: Verb, place: Path, tmp_path: Path) -> Verb:
    """Run `cpt` by likelihood matching."""

    def go(*words: str, status: int = 0, **keys: Any) -> Any:
        given = {
            "model": str(place / "new"),
            "data": specs(place),
            "out": str(tmp_path / "out"),
            "objective": "likelihood-matching",
            "boundary_threshold": 0.01,
            "n_bytes": 2500,
            "learning_rate": 1e-2,
            "sequence_length": 32,
            "batch_size": 8,
            "cpu": True,
            **keys,
        }
        file = tmp_path / "cpt.toml"
        file.write_text("".join(f"{key} = {json.dumps(v)}\n" for key, v in given.items()))
        return run("cpt", file, *words, status=status)

    return go


def specs(place: Path) -> list[str]:
    return [f"en={place / 'en.txt'}", f"hi={place / 'hi.txt'}"]


def records(out: Path) -> list[dict[str, Any]]:
    """The log, without what depends on the clock."""
    lines = (out / "log.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if "second" not in k} for line in lines]


@pytest.fixture(scope="module")
def taught(place: Path) -> Path:
    """What the model before its transfer has read."""
    out = place / "taught"
    code = main(["teach", str(place / "old"), *specs(place), "-o", str(out)])
    assert code == 0
    return out


def test_a_stored_teacher_and_one_that_runs_along(
    cpt: Verb, place: Path, taught: Path, tmp_path: Path
) -> None:
    """The same losses; the teacher is found by the model's provenance; both parts are logged."""
    stored = cpt(teacher_logprobs=str(taught), held_out=[f"en={place / 'en.txt'}"])
    live = cpt("out=" + str(tmp_path / "live"))
    assert stored["matched_share"] > 0.5
    one, other = (
        [r for r in records(Path(r["out"])) if r["kind"] == "step"] for r in (stored, live)
    )
    assert len(one) == len(other) >= 5
    for a, b in zip(one, other, strict=True):
        assert a["chunks"] == b["chunks"] > 0
        assert a["loss"] == pytest.approx(a["matching_loss"] + a["next_token_loss"])
        assert a["loss"] == pytest.approx(b["loss"], rel=2e-3)
    assert stored["bits_per_byte"][0]["after"] < stored["bits_per_byte"][0]["before"]


def test_the_summary_for_people(cpt: Verb, taught: Path, capsys) -> None:
    """It has both parts of the loss, and how much of the text was matched."""
    result = cpt(teacher_logprobs=str(taught))
    console = Console(width=100)
    show(argparse.Namespace(), result, console)
    show(argparse.Namespace(), result | {"unmatched_documents": 2}, console)
    shown = capsys.readouterr().out
    assert "of it matching, first and last" in shown
    assert f"{result['matched_share']:.1%}" in shown
    assert shown.count("documents that could not be aligned") == 1


def test_killed_and_resumed(cpt: Verb, taught: Path, tmp_path: Path, monkeypatch) -> None:
    """The log and the weights of an uninterrupted run; another weight of the loss is refused."""
    whole = tmp_path / "whole"
    cpt(f"out={whole}", teacher_logprobs=str(taught))
    step = run_module.Run._step

    def signalled(self: Any, state: Any, batch: Any) -> Any:
        done = step(self, state, batch)
        if done.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return done

    monkeypatch.setattr(run_module.Run, "_step", signalled)
    assert "run the same command again" in cpt(teacher_logprobs=str(taught), status=130)
    monkeypatch.undo()
    line = cpt("next_token_weight=0.5", teacher_logprobs=str(taught), status=2)
    assert "next_token_weight = 0.5 (it was 1.0)" in line
    assert "differs in teacher" in cpt(status=2)  # the one that would run along
    cpt(teacher_logprobs=str(taught))
    assert records(tmp_path / "out") == records(whole)
    expected = weights(whole)
    assert all(torch.equal(value, expected[n]) for n, value in weights(tmp_path / "out").items())


def test_the_control_learns_from_its_teacher(cpt: Verb, place: Path) -> None:
    """The old model is its own teacher: nothing to match before the first step."""
    result = cpt("--control", control=str(place / "old"))
    assert result["first_matching_loss"] == pytest.approx(0.0, abs=1e-4)
    assert result["matched_share"] > 0.5


def test_after_a_run_of_cpt_the_teacher_is_still_known(cpt: Verb, tmp_path: Path) -> None:
    """The provenance is followed to the model before the transfer."""
    first = cpt("objective=causal", f"out={tmp_path / 'first'}")
    second = cpt(model=first["out"])
    assert second["matching_loss"] > 0


def test_reading_is_resumed(run: Verb, place: Path, tmp_path: Path, monkeypatch) -> None:
    """A run that was killed gives the same files, bit for bit."""
    words = ["teach", place / "old", *specs(place), "--context", "32", "-o"]
    monkeypatch.setattr(teacher_writer, "_GROUP_BYTES", 300)
    monkeypatch.setattr(teacher_writer, "_SAVE_SECONDS", 0.0)
    whole = run(*words, tmp_path / "whole")
    assert whole["n_read_tokens"] > whole["n_tokens"] > 0
    save = teacher_writer._save

    def killed(checkpoints: Any, number: int, part: Any) -> Any:
        if number == 2:
            raise KeyboardInterrupt
        return save(checkpoints, number, part)

    monkeypatch.setattr(teacher_writer, "_save", killed)
    assert "run the same command again" in run(*words, tmp_path / "out", status=130)
    monkeypatch.setattr(teacher_writer, "_save", save)
    added: list[int] = []
    add = teacher_writer._Part.add
    monkeypatch.setattr(
        teacher_writer._Part,
        "add",
        lambda self, texts, teacher: added.append(len(texts)) or add(self, texts, teacher),
    )
    run(*words, tmp_path / "out")
    assert 0 < sum(added) < 33
    for name in [*(f"{array}.npy" for array in ARRAYS), "teacher.json"]:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_reading_gives(run: Verb, place: Path, taught: Path) -> None:
    """Bits per byte as `score` finds them; a dry run says what it costs and writes nothing."""
    scored = run("score", place / "old", "--text", *specs(place))["results"]
    n_bytes = {"en": 0, "hi": 0}
    for label in n_bytes:
        n_bytes[label] = sum(map(len, (place / f"{label}.txt").read_bytes().splitlines()))
    bits = {row["language"]: row["value"] for row in scored}
    stored = StoredTeacher.open(taught)
    expected = sum(bits[label] * n for label, n in n_bytes.items()) / sum(n_bytes.values())
    assert stored.header["bits_per_byte"] == pytest.approx(expected, rel=1e-4)
    cost = run("teach", place / "old", *specs(place), "-o", place / "none", "--dry-run")
    assert cost["n_tokens"] == stored.header["n_tokens"]
    size = sum((taught / f"{name}.npy").stat().st_size - 128 for name in ARRAYS)
    assert cost["n_output_bytes"] == pytest.approx(size, abs=16)
    assert not (place / "none").exists()


def test_a_dry_run_reads_little_of_a_book(place: Path, monkeypatch) -> None:
    """Though it is the first document; and its cost is told in full."""
    read: list[int] = []
    nats = LiveTeacher._nats

    def counted(self: LiveTeacher, batch: Any) -> Any:
        read.extend(window.ids.size for window in batch)
        return nats(self, batch)

    monkeypatch.setattr(LiveTeacher, "_nats", counted)
    corpus = Corpus.from_texts([" ".join(["another day and the other heater"] * 5000)])
    cost = teach_to_folder(place / "old", corpus, place / "none", device="cpu", dry_run=True)
    assert sum(read) < 20_000 < cost["n_tokens"] < cost["n_read_tokens"]


def test_nothing_to_read(place: Path, tmp_path: Path) -> None:
    """A lone token without BOS has no probability: documents of one take no time."""
    shutil.copytree(place / "old", tmp_path / "plain")
    config = json.loads((tmp_path / "plain/config.json").read_text()) | {"bos_token_id": None}
    (tmp_path / "plain/config.json").write_text(json.dumps(config))
    corpus = Corpus.from_texts(["a", "b"])
    for dry_run in (True, False):
        found = teach_to_folder(
            tmp_path / "plain", corpus, tmp_path / "out", device="cpu", dry_run=dry_run
        )
        assert found["n_tokens"] == 2
        assert found["n_read_tokens"] == 0
    assert found["bits_per_byte"] == 0


def test_a_teacher_of_some_languages(
    cpt: Verb, run: Verb, place: Path, taught: Path, tmp_path: Path
) -> None:
    """Its numbers are those of the whole reading; other documents have none, and no chunks."""
    words = ["teach", place / "old", *specs(place), "--known", "en"]
    cost = run(*words, "-o", tmp_path / "none", "--dry-run")
    some = run(*words, "-o", tmp_path / "some")
    assert cost["n_tokens"] == some["n_tokens"]
    whole, part = StoredTeacher.open(taught), StoredTeacher.open(tmp_path / "some")
    alone = run("teach", place / "old", specs(place)[0], "-o", tmp_path / "alone")
    assert cost["n_bytes"] == some["n_bytes"] == alone["n_bytes"]
    assert some["bits_per_byte"] == pytest.approx(alone["bits_per_byte"], rel=1e-5)
    assert (whole.document_bytes == part.document_bytes).all()
    stretches = [Stretch(number, bytes, 0, 1) for number in range(len(part.document_bytes))]
    n_english = len(TEXT["en"]) + 1
    pairs = list(zip(whole.read(stretches), part.read(stretches), strict=True))
    for expected, found in pairs[:n_english]:
        assert (expected.ends == found.ends).all()
        assert np.allclose(expected.logprobs, found.logprobs, atol=1e-5, equal_nan=True)
    assert 0 == sum(len(found.ends) for _, found in pairs[n_english:])

    both, one = (
        [r for r in records(Path(result["out"])) if r["kind"] == "step"]
        for result in (
            cpt(f"out={tmp_path / name}", teacher_logprobs=str(folder))
            for name, folder in (("both", taught), ("one", tmp_path / "some"))
        )
    )
    assert 0 < sum(r["chunks"] for r in one) < sum(r["chunks"] for r in both)
    assert both[0]["next_token_loss"] == pytest.approx(one[0]["next_token_loss"])
    line = run(*words, "ta", "-o", tmp_path / "no", status=2)
    assert "no 'ta' in the corpus; its languages: en, hi" in line
    corpus = Corpus.from_specs(specs(place))
    teach_to_folder(place / "old", corpus, tmp_path / "str", known="en", device="cpu")
    assert part.header == StoredTeacher.open(tmp_path / "str").header
    (tmp_path / "ta.txt").touch()
    words = ["teach", place / "old", *specs(place), f"ta={tmp_path / 'ta.txt'}", "--known", "ta"]
    assert "the corpus holds no text" in run(*words, "-o", tmp_path / "no", status=2)


def test_refused(cpt: Verb, run: Verb, place: Path, taught: Path, tmp_path: Path) -> None:
    """One line that says what is wrong, before the first step."""
    given = {"teacher_logprobs": str(taught)}
    shutil.copytree(place / "new", tmp_path / "lost")
    (tmp_path / "lost/vocabshift.json").unlink()
    assert "so the teacher is not known" in cpt(model=str(tmp_path / "lost"), status=2)
    assert "the teacher is not there" in cpt(teacher="nowhere", status=2)
    line = cpt(**given, data=[f"en={place / 'en.txt'}"], status=2)
    assert "let the teacher read the same text" in line
    assert "is not the model" in cpt(**given, teacher=str(place / "new"), status=2)
    retokenized = tmp_path / "retokenized"  # the same weights
    shutil.copytree(place / "old", retokenized)
    plain = json.loads((retokenized / "tokenizer.json").read_text())
    plain["model"]["merges"].pop()
    (retokenized / "tokenizer.json").write_text(json.dumps(plain))
    line = cpt(**given, teacher=str(retokenized), status=2)
    assert "(teacher): it has another tokenizer; leave teacher out" in line
    assert "only 'likelihood-matching' has one" in cpt("objective=causal", **given, status=2)
    assert "make some with vocabshift teach" in cpt(teacher_logprobs=str(tmp_path), status=2)

    assert [] == list(tmp_path.glob("out*"))

    swapped = tmp_path / "swapped"  # as many documents of the same lengths
    swapped.mkdir()
    for label in TEXT:
        text = (place / f"{label}.txt").read_text().swapcase().replace("ि", "ी")
        (swapped / f"{label}.txt").write_text(text)
    assert "do not spell the text" in cpt(**given, data=specs(swapped), status=2)

    damaged = tmp_path / "damaged"
    shutil.copytree(taught, damaged)
    logprobs = np.load(damaged / "logprobs.npy")
    logprobs[3] += 1
    np.save(damaged / "logprobs.npy", logprobs)
    assert "its checksum differs" in cpt(teacher_logprobs=str(damaged), status=2)
    header = json.loads((damaged / "teacher.json").read_text())
    for wrong in ({}, header | {"crc32": {"../elsewhere": 0}}, header | {"n_tokens": "many"}):
        (damaged / "teacher.json").write_text(json.dumps(wrong))
        assert "of another version" in cpt(teacher_logprobs=str(damaged), status=2)
    (damaged / "teacher.json").write_text("[" * 100_000)
    assert "is damaged" in cpt(teacher_logprobs=str(damaged), status=2)

    words = ["teach", place / "old", "-o", tmp_path / "out"]
    assert "leave out the @WEIGHT" in run(*words, f"{specs(place)[0]}@2", status=2)
    assert "overlap is 90" in run(*words, *specs(place), "--overlap", "90", status=2)
    bert = small_models.build("bert", small_models.old_tokenizer())
    small_models.save(bert, small_models.old_tokenizer(), tmp_path / "bert")
    line = run("teach", tmp_path / "bert", *specs(place), "-o", tmp_path / "out", status=2)
    assert "no causal language model" in line
    assert "no causal language model" in cpt(teacher=str(tmp_path / "bert"), status=2)
