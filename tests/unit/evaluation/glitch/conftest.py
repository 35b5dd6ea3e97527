"""A small tokenizer, and model folders of any rows for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import small_models
from vocabshift.tokenizer.tokenizer import Tokenizer


@pytest.fixture
def tokenizer() -> Tokenizer:
    return small_models.tiny_tokenizer()


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[..., Path]:
    return partial(small_models.write_rows, tmp_path)
