"""Vendor tokenizers in which tokens are exchanged for others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from real_text import vendor
from vendor_checks import check_against_base, sample, some_languages, vendor_param
from vocabshift.workflows.adapt_tokenizer import adapt_tokenizer

pytestmark = pytest.mark.shared


@pytest.mark.parametrize(
    ("name", "first"),
    [
        vendor_param("tokenizers-hf/llama3", "extend", name="llama3"),
        vendor_param("tokenizers-hf/mistral7b-v1", "prune", name="mistral7b-v1"),
        vendor_param("tokenizers-hf/llama3", "prune", name="llama3", is_nightly=True),
        vendor_param("tokenizers-hf/mistral7b-v1", "extend", name="mistral7b-v1", is_nightly=True),
    ],
)
def test_adapted(shared_data: Path, name: str, first: str) -> None:
    """2,000 tokens exchanged: the rows stay, and no special id moves."""
    base = vendor(shared_data / name)
    adapted = adapt_tokenizer(base, some_languages(shared_data), n_tokens=2_000, first=first)  # type: ignore[arg-type]
    assert adapted.tokenizer.row_count == base.row_count
    ids = np.array(sorted(adapted.tokenizer.model.vocab.values()))
    assert len(np.unique(ids)) == len(ids)
    check_against_base(base, adapted.tokenizer, sample(shared_data, base))
