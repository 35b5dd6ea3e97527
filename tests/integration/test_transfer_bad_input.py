"""Folders and commands that mean harm, or are mistyped: one line, and nothing is touched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file  # noqa: E402

import small_models  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402

EMBEDDINGS = "model.embed_tokens.weight"
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """`model` in one file, `sharded`, and the tokenizer `new`."""
    place = tmp_path_factory.mktemp("models")
    old = small_models.old_tokenizer()
    model = small_models.build("llama", old)
    small_models.save(model, old, place / "model")
    small_models.save(model, old, place / "sharded", max_shard_size="10KB")
    small_models.new_tokenizer().save_pretrained(place / "new")
    return place


@pytest.fixture
def place(models, tmp_path) -> Path:
    """A copy of them that may be harmed."""
    return Path(shutil.copytree(models, tmp_path / "place"))


def _refused(capsys: Any, *words: object) -> str:
    capsys.readouterr()
    assert 2 == main([str(word) for word in words])
    found = capsys.readouterr()
    lines = [line for line in found.err.splitlines() if not line.startswith("[transformers]")]
    assert ("", 1) == (found.out, len(lines))
    return lines[0]


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def _edit_header(file: Path, edit: Any) -> None:
    data = file.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    edit(header)
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[end:])


def _edit_json(file: Path, edit: Any) -> None:
    data = json.loads(file.read_text())
    edit(data)
    file.write_text(json.dumps(data))


@pytest.mark.parametrize(
    "edit",
    [
        lambda header: header.update(__metadata__=[1]),
        lambda header: header.update(__metadata__="pt"),
        lambda header: header[EMBEDDINGS].update(shape=[float("inf"), 16]),
        lambda header: header[EMBEDDINGS].update(shape=[288.5, 16]),
        lambda header: header[EMBEDDINGS].update(shape=["288", 16]),
        lambda header: header[EMBEDDINGS].update(data_offsets=[0, 1, 2]),
    ],
)
def test_headers(place, capsys, edit) -> None:
    """What no writer of safetensors writes is a damaged file, not a fault of ours."""
    _edit_header(place / "model" / "model.safetensors", edit)
    before = _files(place)
    words = ["transfer", place / "model", place / "new", "-o", place / "out"]
    assert "model.safetensors has a damaged header" in _refused(capsys, *words)
    assert before == _files(place)


@pytest.mark.parametrize("name", [".lock", "checkpoints", "tokenizer.json", "..", "../model"])
def test_names_of_shards(place, capsys, name) -> None:
    """A shard cannot take the place of another file of the output."""
    folder = place / "sharded"
    first = json.loads((folder / INDEX).read_text())["weight_map"][EMBEDDINGS]
    _edit_json(
        folder / INDEX,
        lambda index: index["weight_map"].update(
            {key: name for key, file in index["weight_map"].items() if file == first}
        ),
    )
    if "." != name[0] or name == ".lock":
        shutil.copy(folder / first, folder / name)
    before = _files(place)
    words = ["transfer", folder, place / "new", "-o", place / "out"]
    assert "names" in _refused(capsys, *words) or name == "tokenizer.json"
    assert before == _files(place)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (INDEX, '{"weight_map": {}, "metadata": [1]}', "index.json is damaged"),
        ("generation_config.json", "[]", "generation_config.json"),
        ("generation_config.json", "null", "generation_config.json"),
        ("processor_config.json", '{"a":' * 900 + "1" + "}" * 900, "nested too deeply"),
        ("config.json", "[" * 100_000, "cannot be loaded"),
    ],
)
def test_json_beside_the_shards(place, capsys, file, text, said) -> None:
    (place / "sharded" / file).write_text(text)
    before = _files(place)
    words = ["transfer", place / "sharded", place / "new", "-o", place / "out"]
    assert said in _refused(capsys, *words)
    assert before == _files(place)


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": "288"},
        {"vocab_size": None},
        {"vocab_size": 288.0},
        {"eos_token_id": "2"},
        {"eos_token_id": [2, "x"]},
        {"model_type": []},
        {"hidden_size": -1},
        {"tie_word_embeddings": "yes"},
        {"rope_parameters": [1]},
        {"quantization_config": "x"},
    ],
)
def test_configs(place, capsys, changes) -> None:
    """What transformers' own checks say, under our one line."""
    _edit_json(place / "model" / "config.json", lambda config: config.update(changes))
    before = _files(place)
    words = ["transfer", place / "model", place / "new", "-o", place / "out"]
    assert "cannot be loaded" in _refused(capsys, *words)
    assert before == _files(place)


@pytest.mark.parametrize("name", ["Trainer", "LlamaTokenizer", "AutoModelForCausalLM", 7])
def test_architectures_that_are_no_models(place, name) -> None:
    """The causal language model of the type is meant."""
    _edit_json(place / "model" / "config.json", lambda config: config.update(architectures=[name]))
    transfer_folder(place / "model", place / "new", place / "out")
    transfer_folder(place / "sharded", place / "new", place / "twin")
    head = "lm_head.weight"
    found = load_file(place / "out" / "model.safetensors")[head]
    twin = {k: v for f in (place / "twin").glob("*.safetensors") for k, v in load_file(f).items()}
    assert torch.equal(twin[head], found)


def test_what_is_read_is_never_replaced(place, capsys) -> None:
    """--force replaces an old output, and not a tokenizer, donor, file or text that is given."""
    read = place / "read"
    shutil.copytree(place / "model", read)
    (read / "overrides.json").write_text('{"id:300": "id:3"}')
    (read / "hi.txt").write_text("\n".join(small_models.HINDI), encoding="utf-8")
    before = _files(place)
    base = ["transfer", place / "model", place / "new", "--force", "-o"]
    text = read / "hi.txt"
    (place / ".." / "en.txt").write_text("\n".join(small_models.ENGLISH))
    learned = ["--corpus", f"en={place}/../en.txt", "--n-tokens", "9"]
    for words in (
        [*base, place / "new"],
        [*base, place],
        [*base, read, "--init", "omp", "--donor", read],
        [*base, read, "--overrides", read / "overrides.json"],
        [*base, read, "--init", "focus", "--corpus", text],
        [*base, read, "--init", "auto", "--text", text],
        ["transfer", read, "--back", "--initial", place / "model", "--force", "-o", read],
        ["adapt", *base[1:2], *learned, "--init", "omp", "--donor", read, "--force", "-o", read],
    ):
        assert "would replace the input" in _refused(capsys, *words)
        assert before == _files(place)


def test_one_file_goes_before_an_index(place) -> None:
    """Where both are there transformers reads `model.safetensors`, and so does the transfer."""
    both = place / "sharded"
    tensors = load_file(place / "model" / "model.safetensors")
    tensors["model.norm.weight"] += 1
    save_file(tensors, both / "model.safetensors", metadata={"format": "pt"})
    transfer_folder(both, place / "new", place / "out")
    found = load_file(place / "out" / "model.safetensors")
    assert torch.equal(tensors["model.norm.weight"], found["model.norm.weight"])
    assert not (place / "out" / INDEX).exists()


def test_a_smaller_tokenizer_is_another_ones(place, capsys) -> None:
    """Rows of 288 tokens are no padding of 100."""
    model = small_models.build("llama", small_models.old_tokenizer(), vocab_size=600)
    model.save_pretrained(place / "model")
    words = ["transfer", place / "model", place / "new", "-o", place / "out"]
    assert "600 rows, but its tokenizer has tokens for 288 only" in _refused(capsys, *words)


def test_the_chat_template_of_an_older_processor_goes_along(place) -> None:
    """transformers 4 kept it in `chat_template.json`, which version 5 still reads."""
    template = {"chat_template": "{{ '<image>' }}"}
    (place / "model" / "chat_template.json").write_text(json.dumps(template))
    transfer_folder(place / "model", place / "new", place / "out")
    assert template == json.loads((place / "out" / "chat_template.json").read_text())
