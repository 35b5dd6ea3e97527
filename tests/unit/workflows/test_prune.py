"""`prune --until` with a model: what is measured, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import small_models
import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.surgery.transfer import transfer_model
from vocabshift.text.corpus import Corpus
from vocabshift.workflows.prune import prune_to_folder

CORPUS = Corpus.from_texts({"en": small_models.ENGLISH})
HELD_OUT = Corpus.from_texts({"en": ["the other letter sat by the cat"], "hi": ["और चिट्ठी"]})


@pytest.fixture(scope="module")
def old() -> Any:
    return small_models.old_tokenizer()


@pytest.mark.parametrize("kind", ["llama", "llama-tied", "gemma4-per-layer"])
def test_bits_per_byte_are_those_of_the_transferred_model(old: Any, kind: str) -> None:
    """Every step's value is what `transfer` to that tokenizer, then `score`, would give."""
    model = small_models.build(kind, old)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config = model.config.to_dict()
    pruned = vs.prune(old, CORPUS, until=0.02, held_out=HELD_OUT, model=model)
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert model.config.to_dict() == config

    scored = {row.language: row.value for row in vs.score(model, old, HELD_OUT)}
    moved = small_models.build(kind, old)
    tokenizer, _ = transfer_model(moved, old=old, new=pruned)
    after = {row.language: row.value for row in vs.score(moved, tokenizer, HELD_OUT)}
    assert pruned.vocab_size < old.vocab_size
    assert all(after[label] <= 1.02 * scored[label] for label in scored)


def test_the_folder_tells_every_step(old: Any, tmp_path: Path) -> None:
    model = small_models.build("llama", old)
    old.save_pretrained(tmp_path / "model")
    model.save_pretrained(tmp_path / "model")
    result = prune_to_folder(
        str(tmp_path / "model"), CORPUS, tmp_path / "out", until=0.03, held_out=HELD_OUT
    )
    written = json.loads((tmp_path / "out" / "vocabshift.json").read_text())
    steps = written["figures"]["steps"]
    assert steps == json.loads(json.dumps(result["steps"]))
    assert steps[0]["n_removed"] == 0
    chosen = next(step for step in steps if step["n_removed"] == result["n_removed"])
    assert chosen["change"] <= 0.03
    assert written["config"]["until"] == 0.03
    scored = {
        row.language: row.value
        for row in vs.score(model, old, HELD_OUT)
        if row.metric == "bits_per_byte"
    }
    assert steps[0]["values"] == pytest.approx(scored)


def test_a_tokenizer_without_a_model_is_refused(old: Any, tmp_path: Path) -> None:
    old.save_pretrained(tmp_path / "tokenizer")
    with pytest.raises(ValueError, match="bits per byte need the model, and there is none in"):
        prune_to_folder(
            str(tmp_path / "tokenizer"), CORPUS, tmp_path / "out", until=0.1, held_out=HELD_OUT
        )
    with pytest.raises(ValueError, match="bits per byte need the model of the tokenizer"):
        vs.prune(old, CORPUS, until=0.1, held_out=HELD_OUT)
    with pytest.raises(ValueError, match="until is measured on held-out text"):
        vs.prune(old, CORPUS, until=0.1)
    with pytest.raises(ValueError, match="until is measured on held_out"):
        prune_to_folder(old, CORPUS, None, n_tokens=3, held_out=HELD_OUT)


def test_the_model_of_another_tokenizer_is_refused(old: Any, tmp_path: Path) -> None:
    """Its embeddings could hold the ids, and the figures would mean nothing."""
    small_models.tiny_tokenizer().save_pretrained(tmp_path / "model")
    small_models.build("llama", old).save_pretrained(tmp_path / "model")
    given: Any = {"until": 0.1, "held_out": HELD_OUT, "model": tmp_path / "model"}
    with pytest.raises(vs.VocabMismatchError, match="another tokenizer than"):
        prune_to_folder(old, CORPUS, None, **given)
    with pytest.raises(vs.VocabMismatchError, match="another tokenizer than"):
        vs.prune(old, CORPUS, **given)
    with pytest.raises(ValueError, match="there is none in memory: name it"):
        prune_to_folder(old, CORPUS, None, until=0.1, held_out=HELD_OUT)


def test_a_limit_does_not_go_with_losing_characters(old: Any) -> None:
    """An unknown token costs little, so that no measure shows what is lost."""
    with pytest.raises(ValueError, match="until cannot be given with drop_unseen_characters"):
        vs.prune(old, CORPUS, until=0.1, held_out=HELD_OUT, drop_unseen_characters=True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--until", "1%"], "--until is measured on --held-out"),
        (["--n-tokens", "3", "--held-out", "x"], "--until is measured on --held-out"),
        (["--n-tokens", "3", "--until", "1%", "--held-out", "x"], "one of them"),
        (["--until", "half", "--held-out", "x"], "is no share from 0% to 100%"),
        (["--until", "120%", "--held-out", "x"], "is no share from 0% to 100%"),
        (["--until", "0.5", "--held-out", "x"], "is no share from 0% to 100%; write 0.5%"),
        (["--n-tokens", "3", "--model", "x"], "--by and --model are for --until"),
    ],
)
def test_flags_that_contradict_each_other(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prune", "x", "--corpus", "y", "--dry-run", *flags]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_from_the_command_line(
    old: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(old, name="small")
    small.save_pretrained(tmp_path / "tokenizer")
    (tmp_path / "en.txt").write_text("\n".join(small_models.ENGLISH))
    (tmp_path / "held.txt").write_text("the other letter sat by the cat\n")
    words = ["prune", str(tmp_path / "tokenizer"), "--corpus", f"en={tmp_path / 'en.txt'}"]
    words += [
        "--until",
        "5%",
        "--by",
        "bytes-per-token",
        "--held-out",
        f"en={tmp_path / 'held.txt'}",
    ]
    assert main([*words, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "held out, bytes-per-token, en" in said
    assert main([*words, "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_removed"] > 0
    assert found["steps"][0]["change"] == 0.0
