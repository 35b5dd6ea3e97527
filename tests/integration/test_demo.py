"""The demo carries from text to a measured model, here with as little training as will do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vocabshift.cli.main import main
from vocabshift.demo import story, walk
from vocabshift.results import Results

TINY = walk.Plan(
    base_vocab_size=320,
    ist_vocab_size=700,
    hidden_size=32,
    n_layers=1,
    pretraining_rounds=0.2,
    further_rounds=0.1,
    sequence_length=64,
)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One finished walk."""
    folder = tmp_path_factory.mktemp("demo") / "out"
    walk.run_demo(folder, plan=TINY)
    return folder


def test_every_figure_is_there(out: Path) -> None:
    """Each group and each language has every metric of every subject."""
    results = Results.from_jsonl((out / "results.jsonl").read_text(encoding="utf-8"))
    subjects = {
        "fertility": [walk.BASE, walk.IST],
        "bytes_per_token": [walk.BASE, walk.IST],
        "bits_per_byte": [walk.BEFORE, walk.CONTROL, walk.MOVED, walk.ADAPTED],
    }
    labels = {*story.languages(), *story.GROUPS}
    assert results.distinct("metric") == list(subjects)
    for metric, names in subjects.items():
        assert results.where(metric=metric).distinct("subject") == names
        for name in names:
            assert {row.language for row in results.where(metric=metric, subject=name)} == labels


def test_training_helps(out: Path) -> None:
    """Even so little further training makes the moved model better than it was."""
    results = Results.from_jsonl((out / "results.jsonl").read_text(encoding="utf-8"))
    before, after = (
        results.value(subject, story.INDIAN, "bits_per_byte")
        for subject in (walk.MOVED, walk.ADAPTED)
    )
    assert after < before


@pytest.mark.parametrize(
    ("folder", "tokenizer"),
    [
        ("base-model", "base-tokenizer"),
        ("control-model", "base-tokenizer"),
        ("adapted-model", "ist-tokenizer"),
    ],
)
def test_models_load_and_write(out: Path, folder: str, tokenizer: str) -> None:
    """AutoTokenizer gives the ids of the tokenizer that was trained; the model generates."""
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM, AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(out / folder)
    model = AutoModelForCausalLM.from_pretrained(out / folder)
    trained = Tokenizer.from_file(str(out / tokenizer / "tokenizer.json"))
    for text in (out / "corpus" / "held-out" / "hin.txt").read_text(encoding="utf-8").split("\n"):
        ids = trained.encode(text, add_special_tokens=False).ids
        assert loaded(text, add_special_tokens=False)["input_ids"] == ids
        assert loaded.decode(ids) == text
    assert loaded.eos_token == walk.END_TOKEN
    assert loaded.convert_tokens_to_ids(walk.END_TOKEN) == model.config.eos_token_id
    prompt = torch.tensor([[model.config.bos_token_id]])
    generated = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=5, do_sample=False
    )
    assert generated.shape[1] > 1


def test_only_rows_were_trained(out: Path) -> None:
    """Between base and adapted model nothing but embeddings and head differs."""
    from safetensors.numpy import load_file

    base, control, adapted = (
        load_file(out / name / "model.safetensors")
        for name in ("base-model", "control-model", "adapted-model")
    )
    rows = {"model.embed_tokens.weight", "lm_head.weight"}
    for other in (control, adapted):
        assert {n for n in base if base[n].tobytes() != other[n].tobytes()} == rows


def test_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`demo --json` prints one object; a folder that is in the way stops it before any work."""
    monkeypatch.setattr(walk, "Plan", lambda: TINY)
    folder = tmp_path / "out"
    folder.mkdir()
    assert main(["demo", "-o", str(folder)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["demo", "-o", str(folder), "--json", "--force"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert printed["out"] == str(folder)
    assert len(printed["results"]) == len((folder / "results.jsonl").read_text().splitlines())
