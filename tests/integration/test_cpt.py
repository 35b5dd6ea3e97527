"""`vocabshift cpt` from a TOML file to a model folder, its interruptions and its refusals."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import small_models
from saved_models import weights
from vocabshift.cli.main import main
from vocabshift.cpt import optimize
from vocabshift.cpt import run as run_module
from vocabshift.cpt.pack_corpus import PackOptions, pack_corpus
from vocabshift.cpt.run_config import TRACKERS
from vocabshift.text.corpus import Corpus

torch = pytest.importorskip("torch")

Cpt = Callable[..., Any]

HINDI = [f"यह वाक्य {number} है, और छोटा है।" for number in range(30)]
ENGLISH = [f"this is sentence {number}, and it is small." for number in range(30)]

PHASES = """
[[phases]]
trained = "embeddings"
n_bytes = "1KB"
learning_rate = 1e-2

[[phases]]
n_bytes = 1_000
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Text, a model with its tokenizer, and a model with more tokens and the map that says so."""
    from vocabshift.surgery.transfer import transfer_folder
    from vocabshift.workflows.extend import extend

    folder = tmp_path_factory.mktemp("cpt")
    (folder / "hi.txt").write_text("\n".join(HINDI) + "\n", encoding="utf-8")
    (folder / "en.txt").write_text("\n".join(ENGLISH) + "\n", encoding="utf-8")
    tokenizer = small_models.old_tokenizer()
    small_models.save(small_models.build("llama", tokenizer), tokenizer, folder / "model")
    longer = extend(tokenizer, Corpus.from_texts(HINDI), n_tokens=20)
    transfer_folder(folder / "model", longer, folder / "extended")
    return folder


@pytest.fixture
def cpt(place: Path, tmp_path: Path, capsys) -> Cpt:
    """Runs the verb on a TOML file of `text`; its JSON, or its one line of error."""

    def go(*words: str, text: str | None = None, status: int = 0, **keys: Any) -> Any:
        given = {
            "model": str(place / "model"),
            "data": [f"hi={place / 'hi.txt'}", f"en={place / 'en.txt'}"],
            "out": str(tmp_path / "out"),
            "sequence_length": 32,
            "batch_size": 4,
            "cpu": True,
            **keys,
        }
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in given.items()]
        file = tmp_path / "cpt.toml"
        file.write_text("".join(lines) + (PHASES if text is None else text), encoding="utf-8")
        code = main(["cpt", str(file), *words, "--json"])
        streams = capsys.readouterr()
        assert code == status, streams.err
        return json.loads(streams.out) if status == 0 else streams.err.splitlines()[-1]

    return go


def lines(folder: Path) -> list[dict[str, Any]]:
    """The log, without what depends on the clock."""
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in each.items() if "second" not in k} for each in records]


def test_text_to_model(cpt: Cpt, place: Path, tmp_path: Path) -> None:
    """A folder that transformers loads, better at held-out text, with all that belongs to it."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import vocabshift as vs

    held_out = [f"hi={place / 'hi.txt'}", f"en={place / 'en.txt'}"]
    result = cpt(held_out=held_out, evaluate_bytes="1KB", trackers=["tensorboard"])
    out = tmp_path / "out"
    assert result["out"] == str(out)
    assert [row["language"] for row in result["bits_per_byte"]] == ["hi", "en"]
    assert all(row["after"] < row["before"] - 0.3 for row in result["bits_per_byte"])
    assert [phase["trained"] for phase in result["phases"]] == ["embeddings", "all"]
    assert result["n_bytes"] == sum(phase["n_bytes"] for phase in result["phases"])
    assert 2000 <= result["n_bytes"] < 2200

    model = AutoModelForCausalLM.from_pretrained(out)
    scored = vs.score(model, out, Corpus.from_specs(held_out), context=32)
    after = {row.language: row.value for row in scored}
    told = {row["language"]: row["after"] for row in result["bits_per_byte"]}
    assert told == pytest.approx(after, rel=1e-5)
    assert AutoTokenizer.from_pretrained(out)("the cat").input_ids
    records = lines(out)
    assert [r["kind"] for r in records].count("step") == result["n_steps"]
    assert next(r["run_bytes"] for r in records if r["kind"] == "evaluation") == 0
    provenance = json.loads((out / "vocabshift.json").read_text())
    assert provenance["operation"] == "cpt"
    assert provenance["config"]["phases"][0]["n_bytes"] == 1000
    assert list((out / "trackers").rglob("events*"))
    assert not (tmp_path / "out.partial").exists()


def test_held_out_text_beside_the_shortest_sequences(cpt: Cpt, place: Path) -> None:
    """It is scored with a token more than a sequence has: two leave no room for an overlap."""
    held_out = [f"en={place / 'en.txt'}"]
    text = '[[phases]]\ntrained = "embeddings"\nn_bytes = 100\n'
    [row] = cpt(text=text, sequence_length=2, batch_size=64, held_out=held_out)["bits_per_byte"]
    assert "en" == row["language"]
    assert 0 < row["after"]


def test_killed_and_resumed(cpt: Cpt, place: Path, tmp_path: Path, monkeypatch) -> None:
    """SIGTERM, the same command again: the log and the weights of an uninterrupted run."""
    cpt(f"out={tmp_path / 'whole'}")
    step = run_module.Run._step

    def signalled(self: Any, stretch: Any, batch: Any) -> Any:
        done = step(self, stretch, batch)
        if (done.phase, done.step) == (1, 2):
            os.kill(os.getpid(), signal.SIGTERM)
        return done

    monkeypatch.setattr(run_module.Run, "_step", signalled)
    line = cpt(status=130)
    assert "run the same command again" in line
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    line = cpt("seed=5", status=2)
    assert "seed = 5 (it was 0)" in line
    assert "--no-resume" in line
    assert "held_out" in cpt(status=2, held_out=[f"en={place / 'en.txt'}"])
    config = place / "model/config.json"
    before = config.read_bytes()
    config.write_bytes(before.replace(b'"attention_dropout": 0.0', b'"attention_dropout": 0.5'))
    assert "config.json" in cpt(status=2)
    config.write_bytes(before)
    resumed = cpt()
    assert lines(tmp_path / "out") == lines(tmp_path / "whole")
    assert resumed["n_steps"] == len(lines(tmp_path / "whole"))
    expected = weights(tmp_path / "whole")
    assert all(torch.equal(value, expected[n]) for n, value in weights(tmp_path / "out").items())
    line = cpt(status=2)
    assert "exists already" in line


def test_afresh_after_an_error(cpt: Cpt, tmp_path: Path, monkeypatch) -> None:
    """A changed configuration is taken with --no-resume."""
    whole = cpt("seed=5")
    step = run_module.Run._step

    def broken(self: Any, stretch: Any, batch: Any) -> Any:
        done = step(self, stretch, batch)
        if done.step == 2:
            raise RuntimeError("the machine went away")
        return done

    monkeypatch.setattr(run_module.Run, "_step", broken)
    cpt("out=" + str(tmp_path / "b"), status=1, checkpoint_steps=1)
    monkeypatch.undo()
    cpt("out=" + str(tmp_path / "b"), "seed=5", status=2)
    again = cpt("out=" + str(tmp_path / "b"), "seed=5", "--no-resume")
    assert again["loss"] == whole["loss"]


@pytest.mark.parametrize("tied", [True, False])
def test_new_rows_alone(cpt: Cpt, place: Path, tmp_path: Path, tied: bool) -> None:
    """Every other row and tensor is the same bit for bit; the new rows of the text moved."""
    model = place / "extended"
    if tied:
        from vocabshift.tokenizer.formats.load import load_tokenizer

        tokenizer = load_tokenizer(model)
        small_models.save(small_models.build("llama-tied", tokenizer), tokenizer, tmp_path / "m")
        (tmp_path / "m/transfer_map.json").write_bytes((model / "transfer_map.json").read_bytes())
        model = tmp_path / "m"
    text = '[[phases]]\ntrained = "new-rows"\nn_bytes = 2000\nlearning_rate = 1e-2\n'
    cpt(model=str(model), text=text)
    before, after = weights(model), weights(tmp_path / "out")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    rows = {"model.embed_tokens.weight"} | (set() if tied else {"lm_head.weight"})
    assert changed == rows
    mapping = json.loads((model / "transfer_map.json").read_text())
    kept = torch.tensor([i for i in mapping["old_to_new"] if i is not None])
    for name in rows:
        moved = (before[name] != after[name]).any(dim=1)
        assert not moved[kept].any()
        assert moved.sum() >= 5
    assert (tmp_path / "out/transfer_map.json").exists()


def test_control(cpt: Cpt, place: Path, tmp_path: Path) -> None:
    """The old model sees the same bytes of the same documents; packed text must be of both."""
    keys: dict[str, Any] = {"model": str(place / "extended"), "control": str(place / "model")}
    new = cpt(**keys)
    old = cpt("--control", **keys)
    assert old["out"] == f"{new['out']}-control"
    assert old["n_bytes"] == new["n_bytes"]
    assert old["n_tokens"] > new["n_tokens"]

    corpus = Corpus.from_texts(HINDI)
    from vocabshift.tokenizer.formats.load import load_tokenizer

    packed = {}
    for name, model, texts in (
        ("new", "extended", corpus),
        ("old", "model", corpus),
        ("other", "model", Corpus.from_texts(ENGLISH)),
    ):
        packed[name] = str(tmp_path / f"packed-{name}")
        tokenizer = load_tokenizer(place / model)
        pack_corpus(tokenizer, texts, packed[name], PackOptions(eos="</s>"))
    keys |= {"data": packed["new"], "control_data": packed["old"]}
    out = f"out={tmp_path / 'packed-run'}"
    assert cpt(out, **keys)["n_bytes"] == cpt(out, "--control", **keys)["n_bytes"]
    line = cpt(out, "--control", status=2, **keys | {"control_data": packed["other"]})
    assert "pack the same corpus with both" in line
    other = {"control_data": [str(place / "en.txt")]}  # not packed, and so found out later
    line = cpt(f"out={tmp_path / 'specs'}", "--control", status=2, **keys | other)
    assert "pack the same corpus with both" in line
    line = cpt("control_data=[]", out, "--control", status=2, **keys)
    assert "packed with another tokenizer" in line
    assert "the key 'control' is missing" in cpt("--control", status=2)


def test_megatron_files(cpt: Cpt, place: Path, tmp_path: Path) -> None:
    """Made by another program, they train the model that our own folder does, and its control."""
    from vocabshift.tokenizer.formats.load import load_tokenizer

    corpus = Corpus.from_texts(HINDI)
    for name in ("model", "extended"):
        for form in ("numpy", "megatron"):
            options = PackOptions(eos="</s>", format=form, shard_tokens=300)
            pack_corpus(load_tokenizer(place / name), corpus, tmp_path / f"{name}-{form}", options)
        (tmp_path / f"{name}-megatron" / "packed.json").unlink()
    keys: dict[str, Any] = {"model": str(place / "extended"), "control": str(place / "model")}
    for out, form in (("a", "numpy"), ("b", "megatron")):
        keys |= {"data": str(tmp_path / f"extended-{form}")}
        result = cpt(f"out={tmp_path / out}", **keys)
    assert lines(tmp_path / "a") == lines(tmp_path / "b")
    files = sorted(map(str, (tmp_path / "model-megatron").glob("*.idx")))
    assert len(files) > 1
    control = cpt(f"out={tmp_path / 'b'}", "--control", **keys | {"control_data": files})
    assert result["n_bytes"] == control["n_bytes"]
    line = cpt(f"out={tmp_path / 'c'}", status=2, data=str(tmp_path / "extended-megatron"))
    assert "another one made the file" in line


def test_dtype_of_the_output(cpt: Cpt, place: Path, tmp_path: Path) -> None:
    """As the model was stored, unless said otherwise; untouched tensors lose nothing."""
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    half = tmp_path / "half"
    tokenizer = small_models.old_tokenizer()
    small_models.save(small_models.build("llama", tokenizer).to(torch.bfloat16), tokenizer, half)
    text = '[[phases]]\ntrained = "embeddings"\nn_bytes = 300\n'
    cpt(model=str(half), text=text)
    before, after = weights(half), weights(tmp_path / "out")
    assert {value.dtype for value in after.values()} == {torch.bfloat16}
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert set(before) - same == {"model.embed_tokens.weight", "lm_head.weight"}
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "out").dtype == torch.bfloat16
    mixed = shutil.copytree(half, tmp_path / "mixed")
    norm, extra = "model.layers.0.input_layernorm.weight", "model.layers.9.norm.weight"
    values = before | {norm: before[norm].float() + 1e-4, extra: before[norm].clone()}
    save_file(values, mixed / "model.safetensors", metadata={"format": "pt"})
    (mixed / "additional_chat_templates").mkdir()
    (mixed / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools }}")
    found = cpt("--force", model=str(mixed), text=text)
    after = weights(tmp_path / "out")
    assert torch.equal(values[norm], after[norm])
    assert after.pop(norm).dtype == torch.float32
    assert {value.dtype for value in after.values()} == {torch.bfloat16}
    assert ["model.layers.9"] == found["left_out"]
    assert (
        "{{ tools }}"
        == (tmp_path / "out" / "additional_chat_templates" / "tool_use.jinja").read_text()
    )
    cpt("dtype=float32", "--force", model=str(half), text=text)
    assert {value.dtype for value in weights(tmp_path / "out").values()} == {torch.float32}


@pytest.mark.parametrize(
    ("keys", "text", "message"),
    [
        ({"learning_rat": 1e-3}, None, "unknown key 'learning_rat'; the nearest that exists is "
         "'learning_rate'"),
        ({}, '[[phases]]\nn_byte = 5\n', "'n_byte'; the nearest that exists is 'n_bytes'"),
        ({}, '[[phases]]\ntrained = "head"\nn_bytes = 5\n', "unknown phase 'head'"),
        ({}, "", "'n_bytes' is missing"),
        ({}, "phases = 3\n", "[[phases]] are needed"),
        ({"sequence_length": "long"}, None, "sequence_length is 'long'; a whole number is needed"),
        ({"sequence_length": 100}, None, "the model has 64 positions"),
        ({"n_bytes": "lots"}, "", "is not a size"),
        ({"schedule": "linear"}, None, "schedule is 'linear'; known are 'cosine', 'wsd', "
         "'polynomial'"),
        ({"max_masks": 20}, None, "max_masks is for the masked objective"),
        ({"objective": "masked", "duplication": 0}, None, "duplication is 0; at least 1"),
        ({"model": "nowhere/at/all"}, None, "no such file or folder"),
        ({"data": ["nowhere.txt"]}, None, "nowhere.txt"),
        ({"data": []}, None, "nothing to train"),
        ({"evaluate_bytes": 100}, None, "without held_out"),
        ({"objective": "masked", "held_out": ["en.txt"]}, None, "leave it out"),
        ({"trackers": ["comet"]}, None, "trackers is 'comet'"),
        ({"dtype": "int8"}, None, "dtype is 'int8'"),
        ({"step_tokens": 8}, None, "less than one sequence"),
        ({}, '[[phases]]\ntrained = "new-rows"\nn_bytes = 5\n', "name them as new_ids"),
        ({"new_ids": []}, '[[phases]]\ntrained = "new-rows"\nn_bytes = 5\n', "no token is new"),
        ({"new_ids": [9999]}, '[[phases]]\ntrained = "new-rows"\nn_bytes = 5\n', "288 rows"),
    ],
)  # fmt: skip
def test_refused_before_the_first_step(
    cpt: Cpt, tmp_path: Path, keys: dict[str, Any], text: str | None, message: str
) -> None:
    """One line that says what is wrong, and nothing is left behind."""
    assert message in cpt(status=2, text=text, **keys)
    assert [] == [path.name for path in tmp_path.iterdir() if path.name != "cpt.toml"]


def test_a_tracker_that_is_not_installed(cpt: Cpt, monkeypatch) -> None:
    monkeypatch.setitem(TRACKERS, "wandb", ("no_such_package",))
    line = cpt(status=2, trackers=["tensorboard", "wandb"])
    assert "'wandb' is not installed; run: pip install no_such_package" in line


def test_bad_text_is_refused(cpt: Cpt, place: Path, tmp_path: Path) -> None:
    """An empty file, and ids of another tokenizer."""
    (tmp_path / "empty.txt").write_text("")
    assert "no text" in cpt(status=2, data=[str(tmp_path / "empty.txt")])
    other = replace(small_models.old_tokenizer(), normalizer={"type": "NFC"})
    pack_corpus(other, Corpus.from_texts(HINDI), tmp_path / "packed", PackOptions())
    assert "another tokenizer" in cpt(status=2, data=str(tmp_path / "packed"))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("n_bytes", "is no key=value"),
        ("n_bytes=5", "write phases.0.n_bytes"),
        ("phases.7.n_bytes=5", "has 2 phases"),
        ("a.b=1", "names no place"),
        ("checkpoint_minutes=nan", "checkpoint_minutes is nan"),
    ],
)
def test_bad_words(cpt: Cpt, word: str, message: str) -> None:
    assert message in cpt(word, status=2)


def test_words_go_before_the_file(cpt: Cpt) -> None:
    result = cpt("phases.0.n_bytes=200", "phases.1.n_bytes=100", "batch_size=2")
    assert 300 <= result["n_bytes"] < 400


def test_out_of_memory_says_what_to_lower(cpt: Cpt, monkeypatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    monkeypatch.setattr("vocabshift.cpt.training_module.batch_loss", full)
    line = cpt(status=2)
    assert "lower micro_batch_size (it is 4, the whole step" in line
    assert "activation_checkpointing" in line


def test_a_spike_stops_with_a_saved_state(cpt: Cpt, tmp_path: Path, monkeypatch) -> None:
    """And the run goes on through it with another factor."""
    monkeypatch.setattr("vocabshift.cpt.optimize.LEAST", 3)
    monkeypatch.setattr("vocabshift.cpt.optimize._NATS_ABOVE", -9.0)
    line = cpt("spike_factor=1.0001", status=2, max_gradient_norm=1e-9, batch_size=1)
    assert "spiked above 1.0001 times the median" in line
    assert "spike_factor" in line
    assert "run the same command again" in line
    cpt("spike_factor=0", max_gradient_norm=1e-9, batch_size=1)


def test_people_see_a_table(cpt: Cpt, tmp_path: Path, place: Path, capsys, monkeypatch) -> None:
    """Bits per byte before and after, where the model lies, and MFU where a peak is known."""
    monkeypatch.setattr(optimize, "device_peak", lambda _: 1e12)
    cpt()
    words = ["--force", f'held_out="hi={place / "hi.txt"}"']
    assert 0 == main(["cpt", str(tmp_path / "cpt.toml"), words[1], words[0]])
    out, err = capsys.readouterr()
    assert "bits per byte, held out" in out
    assert str(tmp_path / "out") in out
    assert "phase 1/2 embeddings, step 1/" in err
    assert "MFU 0." in err
    assert "after 0 bytes, bits per byte: hi" in err
