"""Trimming a real model changes nothing for texts whose tokens all stay."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

import vocabshift as vs
from vocabshift.models.load import load_causal_model
from vocabshift.tokenizer.id_map import find
from vocabshift.workflows.prune import prune_to_folder

pytestmark = pytest.mark.real

TEXTS = ["The cat sat by the window and looked at the rain.", "def add(a, b):\n    return a + b\n"]


def test_hidden_states_and_kept_logits_stay(smollm2: Path, tmp_path: Path) -> None:
    """Hidden states bit for bit; kept logits within 1e-5, as products of other widths round."""
    corpus = vs.Corpus.from_texts({"en": TEXTS * 3})
    prune_to_folder(str(smollm2), corpus, tmp_path / "small", vocab_size=16384)
    base, old = load_causal_model(smollm2), vs.load_tokenizer(smollm2)
    id_map = find(tmp_path / "small")
    assert id_map is not None
    shared = {id(own): own for own in base.parameters()}
    small, new = vs.transfer(copy.deepcopy(base, shared), old=old, new=tmp_path / "small")
    assert small.get_input_embeddings().weight.shape[0] == new.row_count < 16_500
    kept = np.flatnonzero(id_map.old_to_new >= 0)
    places = torch.from_numpy(id_map.old_to_new[kept])
    for text in TEXTS:
        ids = vs.Encoder(old).encode(text)
        renumbered = vs.Encoder(new).encode(text)
        assert renumbered.tolist() == id_map.old_to_new[ids].tolist()
        with torch.inference_mode():
            a, b = (
                model(torch.tensor([own.tolist()]), output_hidden_states=True)
                for model, own in ((base, ids), (small, renumbered))
            )
        assert torch.equal(a.hidden_states[-1], b.hidden_states[-1])
        assert torch.allclose(
            a.logits[0][:, torch.from_numpy(kept)], b.logits[0][:, places], rtol=0, atol=1e-5
        )
