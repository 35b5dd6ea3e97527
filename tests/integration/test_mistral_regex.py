"""`fix_mistral_regex=True` of transformers leaves our pre-tokenizer alone, for any model type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers")

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers  # noqa: E402
from tokenizers import Tokenizer as Backend  # noqa: E402

import small_models  # noqa: E402
from vocabshift.models.folder import write_version  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.formats.load import as_tokenizer  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402

TYPES = ("mistral", "mistral3", "voxtral", "ministral", "pixtral")
"""What transformers looks for; a model of the Hub counts if a tag derives it from one of them."""
N_TOKENS = 100_010  # it looks from 100,001 on
TEXT = "the cat and  the other cat sat by the heater, another day 1234567"
OLD_VERSION = "4.50.0"

SCRIPT = """
import json, sys
from transformers import AutoTokenizer, __version__
found = {"version": __version__}
for flag in (None, True, False):
    options = {} if flag is None else {"fix_mistral_regex": flag}
    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], **options)
    found[str(flag)] = tokenizer.encode(sys.argv[2], add_special_tokens=False)
print(json.dumps(found))
"""


def _large(regex: str) -> Tokenizer:
    """A tokenizer of so many tokens that transformers looks, most of which no text reaches."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(regex), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator([TEXT] * 4, trainer)
    data = json.loads(backend.to_str())
    vocab = data["model"]["vocab"]
    vocab |= {f"<<{i}>>": i for i in range(len(vocab), N_TOKENS - 1)}
    backend = Backend.from_str(json.dumps(data))
    backend.add_special_tokens(["</s>"])
    return as_tokenizer(backend)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Mistral of an older transformers, moved by streaming to a tokenizer with superwords."""
    place = tmp_path_factory.mktemp("mistral")
    old = _large(r"\S+|\s+")
    sizes: dict[str, Any] = {"hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 1, "num_key_value_heads": 1, "tie_word_embeddings": True}
    ids = dict.fromkeys(("bos_token_id", "eos_token_id"), N_TOKENS - 1)
    config = transformers.MistralConfig(vocab_size=N_TOKENS, **sizes, **ids)
    source = small_models.save(transformers.MistralForCausalLM(config), old, place / "model")
    said = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**said, "transformers_version": OLD_VERSION}))
    transfer_folder(source, _large(r"\S+\s+\S+|\S+|\s+"), place / "out")
    return place / "out"


def _ids(folder: Path, **flags: Any) -> list[int]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **flags)
    return list(tokenizer.encode(TEXT, add_special_tokens=False))


def test_the_flag_changes_no_id_of_a_moved_model(folder: Path, tmp_path: Path) -> None:
    """It would, under the version that the model came with: so the version is written."""
    config = json.loads((folder / "config.json").read_text())
    assert ("mistral", "5.0.0") == (config["model_type"], config["transformers_version"])
    backend = Backend.from_file(str(folder / "tokenizer.json"))
    ours = backend.encode(TEXT, add_special_tokens=False).ids
    assert ours == _ids(folder) == _ids(folder, fix_mistral_regex=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    config["transformers_version"] = OLD_VERSION
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert ours != _ids(tmp_path, fix_mistral_regex=True)


def test_no_model_type_is_affected(tmp_path: Path) -> None:
    """A sweep over all that transformers knows; the five it looks for are affected without it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    spec = json.loads(backend.to_str())["pre_tokenizer"]
    file = tmp_path / "config.json"
    affected = []
    for model_type in CONFIG_MAPPING_NAMES:
        for is_written in (False, True):
            said = {"model_type": model_type, "transformers_version": OLD_VERSION}
            file.write_text(json.dumps(said))
            if is_written:
                write_version(file, N_TOKENS)
            mine = Backend.from_str(backend.to_str())
            patched = transformers.PreTrainedTokenizerFast._patch_mistral_regex(
                mine, str(tmp_path), is_local=True, init_kwargs={}, fix_mistral_regex=True
            )
            if json.loads(patched.to_str())["pre_tokenizer"] != spec:
                affected.append((model_type, is_written))
    known = [(model_type, False) for model_type in TYPES if model_type in CONFIG_MAPPING_NAMES]
    assert len(known) >= 4
    assert sorted(known) == sorted(affected)


@pytest.mark.parametrize("model_type", ["mistral", "llama"])
def test_transformers_4_keeps_our_ids(folder: Path, tmp_path: Path, model_type: str) -> None:
    """4.57.3 and later look at every type, if the config names no version or one after 4.57.2."""
    python = os.environ.get("VOCABSHIFT_TRANSFORMERS4")
    if not python:
        pytest.skip("needs VOCABSHIFT_TRANSFORMERS4: a python with transformers 4 (CONTRIBUTING)")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    before = _read(python, tmp_path)
    assert before["version"].startswith("4."), before["version"]
    write_version(tmp_path / "config.json", N_TOKENS)
    found = _read(python, tmp_path)
    ours = found["None"]
    assert [ours] * 2 == [found["True"], found["False"]]
    assert ours != before["True"] or before["version"] < "4.57.3"


def _read(python: str, folder: Path) -> dict[str, Any]:
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    if python != sys.executable:
        environment.pop("PYTHONPATH", None)
    run = subprocess.run(
        [python, "-c", SCRIPT, str(folder), TEXT],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return dict(json.loads(run.stdout.splitlines()[-1]))
