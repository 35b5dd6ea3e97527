"""Rows of a batch are those that `tokenizers` makes of the same ids."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tokenizers import Encoding, Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing

from vocabshift import _core
from vocabshift.tokenizer.batch_encoding import template_of
from vocabshift.tokenizer.rows import Encoded, rows_of

WORDS = ["<s>", "</s>", *map(str, range(40))]


@pytest.fixture(scope="module")
def backend() -> Tokenizer:
    """A token for each number, and a template with segments."""
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<s>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = TemplateProcessing(
        single="<s> $A </s>", pair="$B:1 </s>:2 $A", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return backend


def encoded(sizes: tuple[int, ...]) -> Encoded:
    """Texts of so many tokens, of different ids."""
    bounds = [0, *itertools.accumulate(sizes)]
    return Encoded(np.arange(2, 2 + bounds[-1], dtype=np.int32), bounds)


def text(given: Encoded, i: int) -> str:
    return " ".join(WORDS[j] for j in given.ids[given.bounds[i] : given.bounds[i + 1]])


def seen(encodings: list[Encoding]) -> list[Any]:
    return [[e.ids, e.type_ids, e.special_tokens_mask, e.attention_mask] for e in encodings]


SIZES = [(9, 3, 0, 5), (4,), (0, 0)]
CUTS = [
    None,
    *(
        {"max_length": n, "stride": stride, "strategy": strategy, "direction": side}
        for n, stride in ((3, 0), (6, 0), (6, 2), (7, 3), (40, 0))
        for strategy in ("longest_first", "only_first", "only_second")
        for side in ("right", "left")
    ),
]
PADS = [
    None,
    {"length": None, "pad_to_multiple_of": None, "direction": "right"},
    {"length": None, "pad_to_multiple_of": 4, "direction": "left"},
    {"length": 8, "pad_to_multiple_of": None, "direction": "left"},
]


@pytest.mark.parametrize("overflow", [False, True])
@pytest.mark.parametrize("is_pair", [False, True])
@pytest.mark.parametrize("cut", CUTS, ids=str)
def test_rows(backend: Tokenizer, cut: Any, is_pair: bool, overflow: bool) -> None:
    """None only where `tokenizers` raises, or for the overflow of pairs."""
    for sizes, pad, special in itertools.product(SIZES, PADS, (True, False)):
        padding = pad and {**pad, "pad_id": 7, "pad_token": "5", "pad_type_id": 3}
        sides = [encoded(sizes), encoded(sizes[::-1])][: 1 + is_pair]
        texts = [tuple(text(side, i) for side in sides) for i in range(len(sizes))]
        template = template_of(backend, is_pair=is_pair, add_special_tokens=special)
        assert template is not None
        backend.no_truncation() if cut is None else backend.enable_truncation(**cut)
        backend.no_padding() if padding is None else backend.enable_padding(**padding)
        given = texts if is_pair else [one for (one,) in texts]
        rows = rows_of(sides, template, cut, padding, overflow=overflow)
        if rows is None:
            if not (overflow and is_pair):
                with pytest.raises(BaseException, match=r"(?i)truncation|`stride`"):
                    backend.encode_batch(given, add_special_tokens=special)
            continue
        found = backend.encode_batch(given, add_special_tokens=special)
        samples = [[e, *(e.overflowing if overflow else [])] for e in found]
        expected = seen([e for sample in samples for e in sample])
        masks = [rows.mask_lists(name) for name in ("type_id", "is_special", "is_attended")]
        assert expected == [list(row) for row in zip(rows.id_lists(), *masks, strict=True)]
        flat = [value for row in masks[0] for value in row]
        assert flat == rows.mask("type_id").tolist()
        assert [i for i, sample in enumerate(samples) for _ in sample] == rows.samples
        lengths = {len(row[0]) for row in expected}
        assert (rows.shape is None) == (len(lengths) > 1)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([], "begin at 0"),
        ([-1, 2], "begin at 0"),
        ([0, 3, 2], "not descend"),
        ([0, 5], "after the ids"),
        ([[0]], "dimension"),
    ],
)
def test_id_lists_check_their_bounds(bounds: list[int], message: str) -> None:
    ids = np.arange(4, dtype=np.int32)
    assert [[0, 1], [], [2]] == _core.id_lists(ids, np.array([0, 2, 2, 3]))
    with pytest.raises(ValueError, match=message):
        _core.id_lists(ids, np.array(bounds, dtype=np.int64))
