"""LoRA on the command line: trained by `cpt`, loaded by PEFT, merged, moved to a new vocabulary."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import small_models
from saved_models import are_equal, load
from vocabshift.cli.main import main
from vocabshift.cpt import run as run_module

torch = pytest.importorskip("torch")
pytest.importorskip("peft")

Run = Callable[..., Any]
PHASES = """
[[phases]]
trained = "new-rows"
n_bytes = 500
learning_rate = 1e-2

[[phases]]
trained = "lora"
n_bytes = 1_200
learning_rate = 1e-2
lora_rank = 4
lora_dropout = 0.1
"""
IDS = torch.arange(1, 280, 7)

# In a process of its own, which knows nothing of vocabshift.
WITH_PEFT = """
import sys, torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
base, adapter, out = sys.argv[1:]
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter).eval()
assert "vocabshift" not in sys.modules
AutoTokenizer.from_pretrained(adapter)
ids = torch.arange(1, 280, 7)[None]
logits = model(ids).logits
merged = {name: value.clone() for name, value in model.merge_and_unload().state_dict().items()}
torch.save({"logits": logits.detach(), "merged": merged}, out)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text, and a tied and an untied model."""
    place = tmp_path_factory.mktemp("lora")
    text = [f"this is sentence {number}, and it is small." for number in range(40)]
    (place / "en.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    tokenizer = small_models.old_tokenizer()
    for name in ("llama", "llama-tied"):
        model = small_models.build(name, tokenizer, num_hidden_layers=2, attention_dropout=0.2)
        small_models.save(model, tokenizer, place / name)
    return place


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a verb; its JSON, or its last line of error."""

    def go(*words: str | Path, status: int = 0) -> Any:
        code = main([*map(str, words), "--json"])
        streams = capsys.readouterr()
        assert code == status, streams.err
        return json.loads(streams.out) if status == 0 else streams.err.splitlines()[-1]

    return go


def config(place: Path, folder: Path, kind: str = "llama", **keys: Any) -> Path:
    given = {
        "model": str(place / kind),
        "data": [f"en={place / 'en.txt'}"],
        "out": str(folder / "out"),
        "new_ids": [65, 66, 270, 281],
        "sequence_length": 32,
        "batch_size": 4,
        "cpu": True,
        **keys,
    }
    file = folder / "cpt.toml"
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in given.items()]
    file.write_text("".join(lines) + PHASES, encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", [pytest.param("llama", marks=pytest.mark.nightly), "llama-tied"])
def test_trained_loaded_elsewhere_and_merged(
    run: Run, place: Path, tmp_path: Path, kind: str
) -> None:
    """One model, four ways: the run's output, the last saved one, PEFT's, and `merge`'s."""
    held_out = [f"en={place / 'en.txt'}"]
    keys = {"held_out": held_out, "save_models": True, "evaluate_bytes": 600}
    result = run("cpt", config(place, tmp_path, kind, **keys))
    out, adapter = tmp_path / "out", tmp_path / "out/adapter"
    assert ["new-rows", "lora"] == [phase["trained"] for phase in result["phases"]]
    assert (
        str(place / kind)
        == json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"]
    )
    found = tmp_path / "found.pt"
    code = [sys.executable, "-c", WITH_PEFT, str(place / kind), str(adapter), str(found)]
    subprocess.run(code, check=True, capture_output=True)
    theirs = torch.load(found)
    ours = load(out)
    torch.testing.assert_close(theirs["logits"], ours(IDS[None]).logits, rtol=1e-5, atol=1e-5)
    before = load(place / kind)(IDS[None]).logits
    assert not torch.allclose(before, theirs["logits"], atol=1e-2)
    assert all(torch.equal(value, theirs["merged"][n]) for n, value in ours.state_dict().items())
    merged = run("merge", adapter, "-o", tmp_path / "merged")
    assert (14, 4 if kind == "llama-tied" else 8) == (merged["n_lora"], merged["n_rows"])
    assert are_equal(out, tmp_path / "merged")
    assert are_equal(out, sorted((out / "models").iterdir())[-1])


def test_the_adapter_alone(run: Run, place: Path, tmp_path: Path) -> None:
    whole = run("cpt", config(place, tmp_path), f"out={tmp_path / 'whole'}")
    alone = run("cpt", config(place, tmp_path, adapter_only=True))
    assert ("adapter", ".") == (whole["adapter"], alone["adapter"])
    out = tmp_path / "out"
    assert not (out / "model.safetensors").exists()
    assert not (out / "config.json").exists()
    assert {"log.jsonl", "vocabshift.json", "tokenizer.json"} <= {x.name for x in out.iterdir()}
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole/adapter" / name).read_bytes()


def test_a_checkpoint_becomes_a_merged_model(
    run: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the run resumes from it; what was exported is what was saved at that step."""
    keys = {"save_models": True, "evaluate_bytes": 1}
    run("cpt", config(place, tmp_path, **keys), f"out={tmp_path / 'whole'}")
    whole = run_module.Run._step

    def signalled(self: Any, state: Any, batch: Any) -> Any:
        done = whole(self, state, batch)
        if (done.phase, done.step) == (1, 3):
            os.kill(os.getpid(), signal.SIGTERM)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(run_module.Run, "_step", signalled)
        run("cpt", tmp_path / "cpt.toml", status=130)
    partial = tmp_path / "out.partial"
    steps = run("cpt", "--export", partial, "-o", tmp_path / "so-far")["run_steps"]
    name = f"step-{steps:09}"
    assert are_equal(tmp_path / "so-far", tmp_path / "whole/models" / name)
    files = list(partial.glob(f"checkpoints/training/steps/{name}/data/*.safetensors"))
    assert 2 == len(files)
    small = sum(file.stat().st_size for file in files)
    assert small < 3 * (tmp_path / "whole/adapter/adapter_model.safetensors").stat().st_size + 9000
    run("cpt", tmp_path / "cpt.toml")
    assert are_equal(tmp_path / "out", tmp_path / "whole")


def test_moved_to_a_new_vocabulary(run: Run, place: Path, tmp_path: Path, capsys) -> None:
    """Trained before a transfer, used after it: a text whose tokens stay has the same logits."""
    run("cpt", config(place, tmp_path, "llama-tied", adapter_only=True))
    small_models.new_tokenizer().save_pretrained(tmp_path / "tokenizer")
    new = tmp_path / "new"
    run("transfer", place / "llama-tied", tmp_path / "tokenizer", "-o", new)
    assert 0 == main(["transfer", str(tmp_path / "out"), str(new), "-o", str(tmp_path / "moved")])
    shown = capsys.readouterr().out
    assert "rows of tokens moved" in shown
    run("merge", tmp_path / "out", "-o", tmp_path / "merged-before")
    run("merge", tmp_path / "moved", "-o", tmp_path / "merged-after")
    places = json.loads((new / "transfer_map.json").read_text())["old_to_new"]
    kept = torch.tensor([i for i, to in enumerate(places) if to is not None])
    moved = torch.tensor([to for to in places if to is not None])
    before = load(tmp_path / "merged-before")(kept[None, :40]).logits[..., kept]
    after = load(tmp_path / "merged-after")(moved[None, :40]).logits[..., moved]
    torch.testing.assert_close(before, after, rtol=1e-5, atol=1e-5)
    message = run("transfer", tmp_path / "out", new, "--hard-links", "-o", "x", status=2)
    assert "--hard-links is of no use for an adapter" in message


def test_people_see_what_is_merged(run: Run, place: Path, tmp_path: Path, capsys) -> None:
    assert 0 == main(["cpt", str(config(place, tmp_path, adapter_only=True))])
    assert f"vocabshift merge {tmp_path / 'out'} -o DIR" in capsys.readouterr().out
    words = ["merge", str(tmp_path / "out"), "-o", str(tmp_path / "merged")]
    assert 0 == main([*words, "--dry-run"])
    shown = capsys.readouterr().out
    assert "nothing: a dry run" in shown
    assert "layers with LoRA" in shown
    assert not (tmp_path / "merged").exists()
    assert 0 == main(words)
    assert 2 == main(words)
    assert "exists already" in capsys.readouterr().err
    assert 2 == main(["merge", str(place / "llama"), "-o", str(tmp_path / "x")])
    assert "is no adapter: it holds no adapter_config.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["phases.1.trained=all", "adapter_only=true"], "adapter_only needs a last phase 'lora'"),
        (["phases.0.trained=all", "adapter_only=true"], "adapter_only needs a last phase 'lora'"),
        (['phases.1.lora_targets=["lm_head"]'], "no linear layer of .* is called 'lm_head'"),
        (["phases.1.lora_rank=0"], "lora_rank is 0; at least 1 is needed"),
        (["phases.1.lora_rnk=2"], "unknown key 'lora_rnk'; the nearest that exists is 'lora_rank'"),
        (["phases.1.lora_targets=3"], "lora_targets is 3; a list of strings is needed"),
        (["phases.1.trained=ends", "phases.1.end_layers=0"], "end_layers is 0"),
        (["new_ids=[65,900]"], "new_ids reach from 65 to 900"),
    ],
)
def test_refused_before_the_first_step(
    run: Run, place: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    import re

    error = run("cpt", config(place, tmp_path), *words, status=2)
    assert re.search(message, error), error
    assert not (tmp_path / "out").exists()
