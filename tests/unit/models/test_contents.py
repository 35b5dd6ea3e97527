"""What the files of a model folder are: every one is a config, copied, or left out for a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vocabshift.models.contents import config_file, module_paths, read_contents

MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "./1_Pooling/", "type": "sentence_transformers.models.Pooling"},
    {
        "idx": 2,
        "name": "2",
        "path": "2_Normalize",
        "type": "sentence_transformers.models.Normalize",
    },
]


def _write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("config.json", "written"),
        ("generation_config.json", "written"),
        ("tokenizer.json", "written"),
        ("chat_template.jinja", "written"),
        ("model-00001-of-00002.safetensors", "written"),
        ("preprocessor_config.json", "config"),
        ("config_sentence_transformers.json", "config"),
        ("normalizer.json", "config"),
        ("LICENSE", "copied"),
        ("USE_POLICY.md", "copied"),
        ("quantize_config.json", "copied"),
        ("recipe.yaml", "copied"),
        ("README.md", "a text about"),
        (".gitattributes", "hidden"),
        ("modeling_own.py", "code"),
        ("pytorch_model.bin", "weights"),
        ("pytorch_model.bin.index.json", "weights"),
        ("consolidated.safetensors", "weights"),
        ("params.json", "weights"),
        ("model.Q4_K_M.gguf", "weights"),
        ("tf_model.h5", "weights"),
        ("flax_model.msgpack", "weights"),
        ("rust_model.ot", "weights"),
        ("model.onnx", "weights"),
        ("openvino_model.xml", "weights"),
        ("vocab.txt", "of the tokenizer before"),
        ("merges.txt", "of the tokenizer before"),
        ("sentencepiece.bpe.model", "of the tokenizer before"),
        ("tokenizer.model.v3", "of the tokenizer before"),
        ("tekken.json", "of the tokenizer before"),
        ("special_tokens_map.json", "of the tokenizer before"),
        ("added_tokens.json", "of the tokenizer before"),
        ("adapter_config.json", "an adapter"),
        ("optimizer.pt", "state or results"),
        ("training_args.bin", "state or results"),
        ("all_results.json", "state or results"),
        ("vocabshift.json", "about the run"),
        ("token_map.json", "about the run"),
        ("picture.png", "not known"),
        ("onnx/", "weights"),
        ("original/", "weights"),
        ("checkpoint-500/", "state or results"),
        ("additional_chat_templates/", "only the default"),
        (".git/", "hidden"),
        ("3_Unknown/", "a folder that is not known"),
    ],
)
def test_every_name(tmp_path: Path, name: str, place: str) -> None:
    """In one place, alone in its folder."""
    _write(tmp_path, f"{name}file" if name.endswith("/") else name)
    found = read_contents(tmp_path, ["model-00001-of-00002.safetensors"])
    said = {"config": found.configs, "copied": found.copied, "written": ()}
    if place in said:
        wanted = () if place == "written" else (name,)
        assert wanted == said[place]
        assert {} == found.left_out
        assert len(wanted) == len(found.configs) + len(found.copied)
        return
    assert ((), ()) == (found.configs, found.copied)
    assert found.left_out.keys() == {name}
    assert found.left_out[name].startswith(place)


def test_modules(tmp_path: Path) -> None:
    """Folders that modules.json names come whole, weights of any format too, but for code."""
    (tmp_path / "modules.json").write_text(json.dumps(MODULES))
    _write(tmp_path, "1_Pooling/config.json", "1_Pooling/pytorch_model.bin", "1_Pooling/own.py")
    _write(tmp_path, "1_Pooling/inner/config.json", "1_Pooling/.cache")
    assert ["1_Pooling", "2_Normalize"] == module_paths(tmp_path)
    found = read_contents(tmp_path, [])
    assert {"1_Pooling/config.json", "1_Pooling/inner/config.json", "modules.json"} == set(
        found.configs
    )
    assert ("1_Pooling/pytorch_model.bin",) == found.copied
    assert ("1_Pooling", "1_Pooling/inner") == found.folders
    assert {"1_Pooling/own.py", "1_Pooling/.cache", "2_Normalize/"} == found.left_out.keys()
    assert "modules.json names it" in found.left_out["2_Normalize/"]
    sizes = [file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()]
    assert sum(sizes) - 4 == found.n_bytes
    (tmp_path / "2_Normalize").mkdir()
    assert "2_Normalize" in read_contents(tmp_path, []).folders


def test_module_with_a_tokenizer_of_its_own(tmp_path: Path) -> None:
    """Its ids are not the model's: nothing in it is read as a config."""
    (tmp_path / "modules.json").write_text(json.dumps(MODULES))
    _write(tmp_path, "1_Pooling/config.json", "1_Pooling/tokenizer.json", "1_Pooling/vocab.txt")
    found = read_contents(tmp_path, [])
    assert ("modules.json",) == found.configs
    assert 3 == len(found.copied)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "3",
        '[{"name": "0"}]',
        '[{"path": "../other"}]',
        '[{"path": "/etc"}]',
        '[{"path": "a/../../b"}]',
        '[{"path": "checkpoints"}]',
    ],
)
def test_damaged_modules(tmp_path: Path, text: str) -> None:
    """One line that names the file; no place outside of the folder is ever read or written."""
    (tmp_path / "modules.json").write_text(text)
    with pytest.raises(
        ValueError, match=r"modules\.json (is no list of modules|names '.*', which)"
    ):
        read_contents(tmp_path, [])


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").symlink_to(tmp_path / "nothing")
    assert "a link" in read_contents(tmp_path, []).left_out["preprocessor_config.json"][:6]


def test_wrapper(tmp_path: Path) -> None:
    """GLiNER's config is the model's; the tokenizers of its further parts go with it."""
    _write(tmp_path, "config.json", "labels_tokenizer/tokenizer.json")
    assert "config.json" == config_file(tmp_path).name
    assert {"labels_tokenizer/"} == read_contents(tmp_path, []).left_out.keys()
    _write(tmp_path, "gliner_config.json")
    assert "gliner_config.json" == config_file(tmp_path).name
    assert ("labels_tokenizer/tokenizer.json",) == read_contents(tmp_path, []).copied
