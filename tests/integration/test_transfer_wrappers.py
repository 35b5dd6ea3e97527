"""Multimodal models whose embeddings are not just a row per token: Mllama and Gemma 3n."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import small_models  # noqa: E402
from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.surgery.checks import check_offsets, offsets_of  # noqa: E402
from vocabshift.surgery.row_sources import RowSources  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402
from vocabshift.workflows.transfer import transfer  # noqa: E402

ROLES = {"bos_token_id": "<s>", "eos_token_id": "</s>", "pad_token_id": "<pad>"}
VISION = 286
"""First id that the small Gemma 3n embeds by its vision config; 287 is audio's, the last."""


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    return small_models.old_tokenizer()


@pytest.fixture(scope="module")
def new() -> Tokenizer:
    return small_models.new_tokenizer()


@pytest.fixture
def gemma3n(old, monkeypatch) -> Any:
    """A small Gemma 3n; what sees (a model of timm's) is left out, its embedder is there."""
    from transformers.models.gemma3n import modeling_gemma3n

    real = modeling_gemma3n.AutoModel

    def from_config(config: Any, **options: Any) -> Any:
        if isinstance(config, transformers.Gemma3nVisionConfig):
            return torch.nn.Identity()
        return real.from_config(config, **options)

    monkeypatch.setattr(modeling_gemma3n, "AutoModel", SimpleNamespace(from_config=from_config))
    ids = small_models.special_ids(old)
    text = {**small_models.PLAIN["gemma3n-per-layer"][1], "vocab_size": old.row_count}
    text |= {"vocab_size_per_layer_input": VISION} | {key: ids[t] for key, t in ROLES.items()}
    ear = {"conf_num_hidden_layers": 1, "conf_num_attention_heads": 2}
    parts = {"hidden_size": 16, "vocab_size": 1}
    config = transformers.Gemma3nConfig(
        text_config=text,
        vision_config={**parts, "vocab_offset": VISION},
        audio_config={**parts, **ear, "vocab_offset": VISION + 1},
        boi_token_id=ids["<|turn|>"],
        eoi_token_id=ids["<|turn|>"],
        image_token_id=ids["<|turn|>"],
        boa_token_id=ids["<image>"],
        eoa_token_id=ids["<image>"],
        audio_token_id=ids["<image>"],
    )
    torch.manual_seed(3)
    return transformers.Gemma3nForConditionalGeneration(config).eval()


def _same_both_ways(model: Any, old: Tokenizer, new: Tokenizer, place: Path) -> Tokenizer:
    """Transfer on the disk and in memory; every tensor and id is the same. The new tokenizer."""
    source = small_models.save(model, old, place / "model")
    transfer_folder(source, new, place / "out")
    _, tokenizer = transfer(model, old=old, new=new)
    loaded = type(model).from_pretrained(place / "out")
    streamed, expected = loaded.state_dict(), model.state_dict()
    assert expected.keys() == streamed.keys()
    assert [] == [name for name in expected if not torch.equal(expected[name], streamed[name])]
    for part in (lambda config: config, lambda config: config.get_text_config()):
        ours, theirs = vars(part(model.config)), vars(part(loaded.config))
        ids = [key for key in ours if key.endswith(("_token_id", "_token_index", "vocab_size"))]
        assert {key: ours[key] for key in ids} == {key: theirs[key] for key in ids}
    return tokenizer


def test_mllama_in_a_folder(old, new, tmp_path) -> None:
    """Its config says nothing of ties, and its embeddings have 8 rows more than its head."""
    model = small_models.mllama(old)
    image = model.get_input_embeddings().weight[-8].detach().clone()
    tokenizer = _same_both_ways(model, old, new, tmp_path)
    embeddings, head = model.get_input_embeddings().weight, model.lm_head.weight
    assert len(embeddings) == len(head) + 8 == model.config.text_config.vocab_size + 8
    token_id = small_models.special_ids(tokenizer)["<image>"]
    assert token_id == model.config.image_token_index
    assert torch.equal(image, embeddings[token_id].detach())


def test_gemma3n_keeps_what_lies_behind_its_offsets(gemma3n, old, tmp_path) -> None:
    """Other text below, the same tokens behind: rows, per-layer rows and embedders are right."""
    new = small_models.train(small_models.HINDI, 283, small_models.SPECIALS)
    assert small_models.special_ids(old) == small_models.special_ids(new)
    per_layer = gemma3n.model.language_model.embed_tokens_per_layer.weight.detach().clone()
    by_eye = gemma3n.model.embed_vision.embedding.weight.detach().clone()
    _same_both_ways(gemma3n, old, new, tmp_path)
    language = gemma3n.model.language_model
    assert (VISION, VISION + 1) == tuple(offsets_of(gemma3n.config).values())
    assert old.row_count == len(language.embed_tokens.weight)
    assert torch.equal(by_eye, gemma3n.model.embed_vision.embedding.weight)
    # Ids behind the table took its row 0; now they have rows of their own that say the same.
    assert len(language.embed_tokens_per_layer.weight) == old.row_count
    eos = small_models.special_ids(old)["</s>"]
    assert torch.equal(per_layer[eos], language.embed_tokens_per_layer.weight[eos])
    for hard in (VISION, VISION + 1):
        assert torch.equal(per_layer[0], language.embed_tokens_per_layer.weight[hard])


@pytest.mark.parametrize("size", [263, 340])
def test_gemma3n_refuses_a_vocabulary_of_another_size(gemma3n, old, tmp_path, size) -> None:
    """New tokens behind `vocab_offset` would be taken for images; nothing is changed."""
    new = small_models.train(small_models.HINDI, size)
    source = small_models.save(gemma3n, old, tmp_path / "model")
    before = {name: tensor.clone() for name, tensor in gemma3n.state_dict().items()}
    message = f"embeds the ids from {VISION} on by its vision_config and audio_config"
    with pytest.raises(VocabMismatchError, match=message):
        transfer(gemma3n, old=old, new=new)
    with pytest.raises(VocabMismatchError, match=message):
        transfer_folder(source, new, tmp_path / "out")
    assert all(torch.equal(before[name], t) for name, t in gemma3n.state_dict().items())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("pairs", "made", "n_rows", "reason"),
    [
        ({0: 0, 1: 1, 8: 8}, [2], 10, None),
        ({0: 1, 1: 0, 8: 8}, [], 10, None),
        ({0: 0, 1: 1, 8: 7}, [], 10, "1 tokens would move there or away, such as new id 7"),
        ({0: 0, 1: 9, 8: 8}, [], 10, "such as new id 9"),
        ({0: 0, 8: 8}, [9], 10, "such as new id 9"),
        ({0: 0, 1: 1}, [], 10, "1 tokens there would be gone, such as old id 8"),
        ({0: 0, 1: 1, 8: 8}, [], 12, "the rows would become 12 instead of 10"),
    ],
)
def test_check_offsets(pairs, made, n_rows, reason) -> None:
    """Each way to change what lies from id 8 on is named; below, everything may move."""
    config = SimpleNamespace(eye=SimpleNamespace(vocab_offset=8), hidden_size=4)
    ids = np.array(made, dtype=np.int64)
    mapping = RowSources(
        copied_from=np.array(list(pairs)),
        copied_to=np.array(list(pairs.values())),
        made=ids,
        pieces=np.zeros(len(ids), np.int64),
        offsets=np.arange(len(ids) + 1),
        old_ids=np.array([0, 1, 8]),
    )
    check_offsets(SimpleNamespace(hidden_size=4), mapping, 10, n_rows)
    if reason is None:
        check_offsets(config, mapping, 10, n_rows)
        return
    with pytest.raises(VocabMismatchError, match=reason):
        check_offsets(config, mapping, 10, n_rows)
