"""Every kind of post-processor has its ids found and replaced."""

from __future__ import annotations

from typing import Any

import pytest

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.components import (
    BYTE_LEVEL_DECODER,
    bos_template,
    byte_level_processor,
    ids_of,
    with_ids,
)

BERT = {"type": "BertProcessing", "sep": ["[SEP]", 5], "cls": ["[CLS]", 4]}
ROBERTA = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True}


@pytest.mark.parametrize(
    ("spec", "ids"),
    [
        (None, set()),
        (BYTE_LEVEL_DECODER, set()),
        (BERT, {4, 5}),
        (ROBERTA, {0, 2}),
        (bos_template("<s>", 1, ("</s>", 2)), {1, 2}),
        (byte_level_processor(("<s>", 7)), {7}),
        (byte_level_processor(None), set()),
    ],
)
def test_ids_are_found_and_replaced(spec: Any, ids: set[int]) -> None:
    assert ids_of(spec) == ids
    moved = with_ids(spec, {token_id: token_id + 100 for token_id in ids})
    assert ids_of(moved) == {token_id + 100 for token_id in ids}
    assert with_ids(moved, {token_id + 100: token_id for token_id in ids}) == spec


def test_texts_and_other_keys_stay() -> None:
    assert with_ids(ROBERTA, {0: 8, 2: 9}) == {**ROBERTA, "sep": ["</s>", 9], "cls": ["<s>", 8]}


def test_an_id_without_a_token_is_refused() -> None:
    with pytest.raises(InvalidTokenizerError, match="the id 5 into every text"):
        with_ids(BERT, {4: 4})
