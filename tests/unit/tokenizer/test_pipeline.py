"""Which parts of a pipeline the core runs, and which `tokenizers`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from small_models import sentencepiece_tokenizer
from vocabshift.tokenizer import components


@pytest.mark.parametrize("pattern", [{"String": " "}, {"Regex": r"[^\n]+|\n+"}])
def test_spaces_are_replaced_before_another_pre_tokenizer(
    pattern: dict[str, Any], tmp_path: Path
) -> None:
    """Gemma's tokenizers have the first, after a normalizer that leaves no space to split at."""
    split = {"type": "Split", "pattern": pattern, "behavior": "MergedWithPrevious", "invert": False}
    tokenizer = replace(
        sentencepiece_tokenizer(tmp_path),
        normalizer=components.space_to_metaspace(add_prefix=False),
        pre_tokenizer=split,
    )
    for text in ("the cat sat", "a  12\n b"):
        expected = tokenizer.backend.encode(text, add_special_tokens=False).ids
        assert expected == tokenizer.encode_batch([text])[0].tolist()
