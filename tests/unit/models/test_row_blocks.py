"""The tables of a saved model, whatever their names; and what is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import small_models
from vocabshift.errors import VocabMismatchError
from vocabshift.models.row_blocks import open_tables
from vocabshift.tokenizer.tokenizer import Tokenizer

KINDS = (
    *("llama", "llama-tied", "qwen2-padded", "gemma3", "phi3", "gpt2", "gpt_neox", "gptj"),
    *("opt", "bloom", "gemma3n-per-layer", "gemma3-wrapper", "llava", "openai-gpt"),
)

WriteModel = Callable[..., Path]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return small_models.tiny_tokenizer()


@pytest.fixture
def write_model(tmp_path: Path) -> WriteModel:
    return partial(small_models.write_rows, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_those_that_the_model_uses(kind: str, tmp_path: Path) -> None:
    """The same rows are found that transformers embeds with, whatever they are called.

    OpenAI's GPT calls its input embeddings `tokens_embed`, which no other model here does.
    """
    tokenizer = small_models.old_tokenizer()
    model = small_models.build(kind, tokenizer)
    folder = small_models.save(model, tokenizer, tmp_path / kind)
    tables = open_tables(folder, tokenizer.row_count)
    ids = np.arange(tables.embeddings.rows)
    own = model.get_input_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(own, tables.embeddings.take(ids))
    head = model.get_output_embeddings()
    np.testing.assert_array_equal(head.weight.detach().numpy(), tables.head.take(ids))
    assert (head.weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()) == tables.tied
    bias = getattr(head, "bias", None)
    assert (bias is None) == (tables.bias is None)
    if bias is not None and tables.bias is not None:
        np.testing.assert_array_equal(bias.detach().numpy(), tables.bias.take(ids)[:, 0])


def test_rows_without_a_token_of_the_head_are_left_out(tmp_path: Path) -> None:
    """Mllama's input embeddings have 8 rows more than its head: both are read up to the head's."""
    tokenizer = small_models.old_tokenizer()
    model = small_models.mllama(tokenizer)
    folder = small_models.save(model, tokenizer, tmp_path / "mllama")
    rows = len(model.lm_head.weight)
    tables = open_tables(folder, rows)
    assert (rows, rows, False) == (tables.embeddings.rows, tables.head.rows, tables.tied)
    own = model.get_input_embeddings().weight.detach().numpy()
    np.testing.assert_array_equal(own[:rows], tables.embeddings.take(np.arange(rows)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_rows_of_every_float_are_read_exactly(dtype: torch.dtype, tmp_path: Path) -> None:
    tokenizer = small_models.old_tokenizer()
    model = small_models.build("llama", tokenizer).to(dtype)
    folder = small_models.save(model, tokenizer, tmp_path / "model", max_shard_size="20KB")
    assert (folder / "model.safetensors.index.json").exists()
    tables = open_tables(folder, tokenizer.row_count)
    own = model.get_input_embeddings().weight.detach().float().numpy()
    ids = np.array([0, 1, 2, 7, 9, 10])
    np.testing.assert_array_equal(own[ids], tables.embeddings.take(ids))
    np.testing.assert_array_equal(own, np.concatenate([b for _, b in tables.embeddings.blocks()]))
    assert 16 == len(tables.hash())


def test_a_head_equal_to_the_embeddings_is_tied(
    tokenizer: Tokenizer, write_model: WriteModel
) -> None:
    """Some files hold a tied matrix twice."""
    rows = np.random.default_rng(0).normal(size=(tokenizer.row_count, 4))
    folder = write_model(tokenizer, rows, rows)
    assert open_tables(folder, tokenizer.row_count).tied
    rows = rows.copy()
    (folder / "model.safetensors").unlink()
    other = write_model(tokenizer, rows, rows + 1, name="untied")
    assert not open_tables(other, tokenizer.row_count).tied


def test_a_larger_tokenizer_is_refused(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    folder = write_model(tokenizer, np.ones((200, 4)))
    with pytest.raises(VocabMismatchError, match=r"ids up to 266.* have 200 rows"):
        open_tables(folder, tokenizer.row_count)


def test_what_is_no_model_is_refused(
    tokenizer: Tokenizer, write_model: WriteModel, tmp_path: Path
) -> None:
    rows = np.ones((tokenizer.row_count, 4))
    untied = write_model(tokenizer, rows, name="a", config={"tie_word_embeddings": False})
    with pytest.raises(ValueError, match=r"lacks 1 tensors of the model, such as lm_head\.weight"):
        open_tables(untied, tokenizer.row_count)
    with pytest.raises(FileNotFoundError, match="no model folder"):
        open_tables(tokenizer.save_pretrained(tmp_path / "b"), tokenizer.row_count)
    bare = tokenizer.save_pretrained(tmp_path / "c")
    (bare / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="no safetensors weights"):
        open_tables(bare, tokenizer.row_count)
    for config in ("[1", "[1]", '{"model_type": "of nobody"}'):
        (untied / "config.json").write_text(config)
        with pytest.raises(ValueError, match=r"the model .* cannot be loaded: "):
            open_tables(untied, tokenizer.row_count)


def test_damaged_weights_are_refused(tokenizer: Tokenizer, write_model: WriteModel) -> None:
    """A truncated file, a header that points outside, another shape, integers, a row of NaN."""
    rows = np.ones((tokenizer.row_count, 4))
    file = write_model(tokenizer, rows) / "model.safetensors"
    whole = file.read_bytes()
    length = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + length])

    def write(changed: dict[str, object], body: bytes = whole[8 + length :]) -> None:
        text = json.dumps(changed).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + body)

    entry = header["model.embed_tokens.weight"]
    file.write_bytes(whole[:-3])
    with pytest.raises(ValueError, match="truncated"):
        open_tables(file.parent, 10)
    write({"model.embed_tokens.weight": {**entry, "data_offsets": [0, 1 << 50]}})
    with pytest.raises(ValueError, match="damaged"):
        open_tables(file.parent, 10)
    write({"something.weight": {**entry, "shape": [4, tokenizer.row_count]}})
    with pytest.raises(ValueError, match=r"lacks 1 tensors .* model\.embed_tokens\.weight"):
        open_tables(file.parent, 10)
    write({"model.embed_tokens.weight": {**entry, "dtype": "I32"}})
    with pytest.raises(ValueError, match=r"weight is I32: this table .* is quantized"):
        open_tables(file.parent, 10)
    write(header, whole[8 + length :][:-4] + struct.pack("<f", float("nan")))
    with pytest.raises(ValueError, match=r"row 266 of model\.embed_tokens\.weight"):
        list(open_tables(file.parent, 10).embeddings.blocks())
