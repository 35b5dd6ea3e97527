"""A tokenizer folder holds what the value holds, whole or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer import pretrained_folder
from vocabshift.tokenizer.formats.load import as_tokenizer, load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer


def test_saved_folder_loads_as_the_same_value(small: Tokenizer, tmp_path: Path) -> None:
    folder = small.save_pretrained(tmp_path / "out")
    again = load_tokenizer(folder)
    assert again.model.merges == small.model.merges
    assert again.added_tokens == small.added_tokens
    assert again.config["bos_token"] == "<s>"
    assert again.config["model_max_length"] == 512
    assert again.chat_template == "{{ messages }}"
    assert again.name == "out"
    assert sorted(path.name for path in folder.iterdir()) == [
        "chat_template.jinja",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_config_names_a_class_that_keeps_the_pre_tokenizer(
    small: Tokenizer, tmp_path: Path
) -> None:
    config = {"tokenizer_class": "Qwen2Tokenizer", "auto_map": {}, "add_bos_token": True}
    folder = replace(small, config=config).save_pretrained(tmp_path / "out")
    assert json.loads((folder / "tokenizer_config.json").read_text()) == {
        "clean_up_tokenization_spaces": False,
        "model_max_length": pretrained_folder.NO_LIMIT,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def test_existing_folder_needs_force(small: Tokenizer, tmp_path: Path) -> None:
    small.save_pretrained(tmp_path / "out")
    with pytest.raises(FileExistsError, match="--force"):
        small.save_pretrained(tmp_path / "out")
    replace(small, chat_template=None).save_pretrained(tmp_path / "out", force=True)
    assert not (tmp_path / "out" / "chat_template.jinja").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "src/main.py"])
def test_a_folder_with_more_than_texts_is_never_replaced(
    small: Tokenizer, tmp_path: Path, name: str
) -> None:
    """`save_pretrained` of transformers adds to a model's folder, which this would replace."""
    other = tmp_path / "out" / name
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    with pytest.raises(FileExistsError, match=r"would be replaced, .* included"):
        small.save_pretrained(tmp_path / "out", force=True)
    assert "mine" == other.read_text()


def test_older_homes_of_template_and_roles_are_read(small: Tokenizer, tmp_path: Path) -> None:
    folder = replace(small, chat_template=None, config={}).save_pretrained(tmp_path / "out")
    named = [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]
    eos = {"content": "<s>", "lstrip": False}
    config = json.dumps({"chat_template": named, "eos_token": eos, "pad_token": None})
    (folder / "tokenizer_config.json").write_text(config)
    (folder / "special_tokens_map.json").write_text('{"bos_token": "<s>"}')
    again = load_tokenizer(folder)
    assert again.chat_template == "d"
    assert again.config == {"eos_token": "<s>", "bos_token": "<s>"}


def test_a_pipe_is_no_config(small: Tokenizer, tmp_path: Path) -> None:
    """Reading from it would wait for ever."""
    folder = replace(small, chat_template=None).save_pretrained(tmp_path / "out")
    wanted = pretrained_folder.read_config(folder)
    for name in ("special_tokens_map.json", "chat_template.jinja", "chat_template.json"):
        os.mkfifo(folder / name)
    assert wanted == pretrained_folder.read_config(folder)


def test_verify_notices_a_folder_that_holds_something_else(
    small: Tokenizer, tmp_path: Path
) -> None:
    folder = small.save_pretrained(tmp_path / "out")
    fewer = replace(small, model=replace(small.model, merges=small.model.merges[:-1]))
    with pytest.raises(InvalidTokenizerError, match=r"other (merges|ids)"):
        pretrained_folder.verify(fewer, folder)
    other = replace(small, added_tokens=small.added_tokens[:1])
    with pytest.raises(InvalidTokenizerError, match="another vocabulary"):
        pretrained_folder.verify(other, folder)
    without = replace(small, pre_tokenizer=None)
    with pytest.raises(InvalidTokenizerError, match="other ids"):
        pretrained_folder.verify(without, folder)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("tokenizer_config.json", "{", "is not JSON"),
        ("tokenizer_config.json", "[]", "no JSON object"),
        ("tokenizer_config.json", '{"chat_template": 7}', "is no text"),
        ("tokenizer.json", "", "not JSON"),
    ],
)
def test_damaged_folders_are_refused(
    small: Tokenizer, tmp_path: Path, file: str, text: str, message: str
) -> None:
    folder = replace(small, chat_template=None).save_pretrained(tmp_path / "out")
    (folder / file).write_text(text)
    with pytest.raises(InvalidTokenizerError, match=message):
        load_tokenizer(folder)


def test_as_tokenizer_takes_tokenizers_and_transformers_objects(small: Tokenizer) -> None:
    assert as_tokenizer(small) is small
    assert as_tokenizer(small.backend).model.merges == small.model.merges
    with pytest.raises(TypeError, match="int is no tokenizer"):
        as_tokenizer(7)
    pytest.importorskip("transformers")
    again = as_tokenizer(small.to_hf())
    assert again.config["bos_token"] == "<s>"
    assert again.chat_template == small.chat_template


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tokenizer_config.json", b'{"chat_template": ["text"]}'),
        ("chat_template.jinja", b"\xff"),
    ],
)
def test_damaged_templates_are_refused_by_name(
    small: Tokenizer, tmp_path: Path, name: str, data: bytes
) -> None:
    """A template that is no text, and a list of templates that names none."""
    folder = replace(small, chat_template=None).save_pretrained(tmp_path / "out")
    (folder / name).write_bytes(data)
    with pytest.raises(InvalidTokenizerError, match=r"chat.template"):
        load_tokenizer(folder)
