"""Files that training reads and writes are read, or refused in one line, however damaged they are.

Checkpoints of runs, adapters, data sets of other programs, and the settings of recipes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabshift as vs
from damage import check_damage, sound_copy
from strategies import examples
from vocabshift.cli.config import fill_from_config
from vocabshift.cli.main import build_parser
from vocabshift.cli.train import recipe_options
from vocabshift.cpt.id_files import write_ds_index
from vocabshift.cpt.megatron import megatron_files, open_megatron
from vocabshift.cpt.packed_shards import open_shard, write_shard
from vocabshift.errors import CorpusError
from vocabshift.tokenizer.tokenizer import Tokenizer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from vocabshift.cpt.checkpoints import StepCheckpoints  # noqa: E402
from vocabshift.models.adapter import open_adapter  # noqa: E402
from vocabshift.workflows.pretraining_inputs import model_key  # noqa: E402
from vocabshift.workflows.pretraining_models import export_checkpoint  # noqa: E402

TEXTS = ["some words", "some more words", "\u0930\u093e\u092e \u0915\u093e \u0918\u0930"]
LORA = {"trained": "lora", "lora_alpha": 4, "lora_rank": 2}
INFO = {"phase": 0, "step": 1, "run_steps": 1, "run_bytes": 10, "losses": [2.5]}
LAYER = "model.layers.0.self_attn.q_proj"


@cache
def tokenizer() -> Tokenizer:
    return vs.BpeTrainer(vocab_size=270).train(vs.Corpus.from_texts({"eng": TEXTS}))


def model(folder: Path) -> Path:
    """A Llama of one layer; beside what is damaged, so that it stays whole."""
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=2, vocab_size=270)
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "model")
    return folder / "model"


def checkpoints(folder: Path, **facts: Any) -> StepCheckpoints:
    return StepCheckpoints(folder, facts, export={"model": str(folder), "dtype": "float32"})


def a_run(folder: Path) -> Path:
    """A run that was resumed once, with two checkpoints."""
    run = checkpoints(folder / "OUT.partial", phases=[LORA], seed=1)
    for step in (1, 2):
        tensors = {"weight": torch.full((2, 3), float(step))}
        run.save(step, tensors, tensors, INFO | {"step": step})
    return folder / "OUT.partial"


def resume(folder: Path) -> None:
    """What a run does first: nothing that is found may be other than what was saved."""
    found = checkpoints(folder, phases=[LORA], seed=1).newest()
    if found is not None:
        assert dict(found.info) == INFO | {"step": found.info["step"]}
        assert (found.weights["weight"] == found.info["step"]).all()


def an_export(folder: Path) -> Path:
    """A checkpoint of a model."""
    base = model(folder.parent)
    weights = {"model.norm.weight": torch.ones(8)}
    run = StepCheckpoints(
        folder / "OUT.partial",
        {**model_key(base), "phases": [LORA]},
        export={"model": str(base), "dtype": "float32"},
    )
    run.save(1, weights, weights, INFO)
    return folder / "OUT.partial"


def export(folder: Path) -> None:
    export_checkpoint(folder, folder.parent.with_name("exported"), force=True)


def an_adapter(folder: Path) -> Path:
    from safetensors.torch import save_file

    out = folder / "adapter"
    out.mkdir()
    about = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    about |= {"base_model_name_or_path": str(model(folder.parent)), "rank_pattern": {"v_proj": 1}}
    (out / "adapter_config.json").write_text(json.dumps(about), encoding="utf-8")
    name = f"base_model.model.{LAYER}"
    parts = {f"{name}.lora_A.weight": torch.ones(2, 8), f"{name}.lora_B.weight": torch.ones(8, 2)}
    save_file(parts, out / "adapter_model.safetensors")
    return out


def read_adapter(folder: Path) -> None:
    opened = open_adapter(folder)
    for module in opened.modules:
        opened.scaling(module)


def merge(folder: Path) -> None:
    base = folder.parent.with_name("model")
    vs.merge_adapter(folder, folder.with_name("merged"), base=base, dry_run=True)


def megatron(folder: Path) -> Path:
    """A data set of Megatron's, which says nothing of its tokenizer."""
    options = vs.PackOptions(format="megatron")
    vs.pack_corpus(tokenizer(), vs.Corpus.from_texts({"eng": TEXTS}), folder / "data", options)
    (folder / "data" / "packed.json").unlink()
    return folder / "data"


def read_megatron(folder: Path) -> None:
    opened = open_megatron(megatron_files([str(folder)]), tokenizer())
    for i in range(len(opened)):
        assert 0 <= opened.document(i).max(initial=0) < opened.n_ids


def packed(form: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        options = vs.PackOptions(format=form)  # type: ignore[arg-type]
        corpus = vs.Corpus.from_texts({"eng": TEXTS})
        vs.pack_corpus(tokenizer(), corpus, folder / "packed", options)
        return folder / "packed"

    return write


def read_packed(folder: Path) -> None:
    """Without checksums too, as a second look at the same data has it."""
    for checksums in (False, True):
        opened = vs.PackedIds.open(folder, checksums=checksums)
        assert len(opened.tokens(0, opened.n_tokens)) == opened.n_tokens
        for i in range(len(opened)):
            opened.document(i)


def a_recipe(folder: Path) -> Path:
    file = folder / "recipe.toml"
    file.write_text(
        '# of a recipe\nrecipe = "matra"\nvocab_size = 200_000\nalpha = 0.75\n'
        'sampling_alpha = 0.7\ncorpus = ["eng=a.txt", "hin=b.txt"]\nout = "out"\n',
        encoding="utf-8",
    )
    return file


def read_recipe(file: Path) -> None:
    args = build_parser().parse_args(["train", "--config", str(file)])
    fill_from_config(args)
    recipe_options(args)


DOORS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "run": (a_run, resume),
    "export": (an_export, export),
    "adapter": (an_adapter, read_adapter),
    "merge": (an_adapter, merge),
    "Megatron": (megatron, read_megatron),
    "packed for Megatron": (packed("megatron"), read_packed),
    "packed for nanotron": (packed("nanotron"), read_packed),
    "packed for datasets": (packed("arrow"), read_packed),
    "recipe": (a_recipe, read_recipe),
}


@pytest.fixture(scope="module", params=[*DOORS])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Callable[[Path], object]]:
    """A sound file or folder, and what reads it."""
    if request.param == "packed for datasets":
        pytest.importorskip("pyarrow")
    write, read = DOORS[request.param]
    return sound_copy(write, read, tmp_path_factory), read


@examples(50)
@given(st.data())
def test_damage_is_refused_in_one_line_or_survived(
    door: tuple[Path, Callable[[Path], object]], data: st.DataObject
) -> None:
    # The command line has one file of settings, and names the key; an export names its model.
    check_damage(*door, data, nameless=("recipe.toml", "export.json"))


def test_offsets_whose_differences_overflow(tmp_path: Path) -> None:
    """2 ** 62 + 1, then its negative: the difference is a positive number of 64 bits."""
    ids = np.arange(3, dtype="<u2")
    bounds = np.array([0, 1, 2, 3])
    write_shard(tmp_path, 0, "nanotron", [ids], offsets=bounds, byte_offsets=bounds, tokenizer="x")
    [index] = tmp_path.glob("*.ds.index")
    far = 2**62 + 1
    write_ds_index(index, np.array([0, far, -far, 3]))
    with pytest.raises(CorpusError, match="offsets do not divide"):
        open_shard(tmp_path, 0, "nanotron", np.dtype("<u2"), n_tokens=3, n_documents=3, n_bytes=3)
