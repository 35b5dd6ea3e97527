"""Windows in batches: none too large, and as little padding as can be."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import transformers

from vocabshift.errors import VocabshiftWarning
from vocabshift.models.windows import (
    Window,
    batch_cost,
    batches_of,
    padded_batches,
    warn_of_chat_start,
)
from vocabshift.tokenizer.tokenizer import Tokenizer


@pytest.mark.parametrize("seed", range(30))
def test_batches_against_all_ways_to_cut(seed: int) -> None:
    """Each place once, within the limit, and no way to cut takes less work."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 40, int(generator.integers(1, 9))).tolist()
    n_tokens, cost = int(generator.integers(10, 120)), int(generator.integers(0, 60))
    batches = padded_batches(lengths, n_tokens, cost)
    assert sorted(range(len(lengths))) == sorted(place for batch in batches for place in batch)

    def work(groups: list[list[int]]) -> float:
        padded = [len(group) * max(group) for group in groups]
        fits = all(n <= n_tokens or len(g) == 1 for n, g in zip(padded, groups, strict=True))
        return sum(padded) + cost * len(groups) if fits else math.inf

    ordered = sorted(lengths, reverse=True)
    ways = []
    for cuts in product((False, True), repeat=len(ordered) - 1):
        groups = [[ordered[0]]]
        for length, is_cut in zip(ordered[1:], cuts, strict=True):
            if is_cut:
                groups.append([])
            groups[-1].append(length)
        ways.append(work(groups))
    assert min(ways) == work([[lengths[place] for place in batch] for batch in batches])
    assert [] == padded_batches([], n_tokens, cost)


def test_a_short_window_is_not_padded_to_a_long_one_on_a_cpu() -> None:
    """On a CPU padding costs as much as text; on a GPU a second batch costs more."""
    sizes = [300, 20, 290, 20]
    windows = [Window(i, np.full(n, i, dtype=np.int64), 0, 0) for i, n in enumerate(sizes)]
    on_cpu = [[window.ids.size for window in batch] for batch in batches_of(windows, 4096)]
    assert [[300, 290], [20, 20]] == on_cpu
    (together,) = batches_of(windows, 4096, "cuda")
    assert [300, 290, 20, 20] == [window.ids.size for window in together]
    assert batch_cost("cpu", 4096) < batch_cost("cuda", 4096) == 4096


def test_batches_do_not_depend_on_the_order_of_documents() -> None:
    """Windows of one length come in one order, too, so that their sums are rounded alike."""
    generator = np.random.default_rng(3)
    texts = [generator.integers(0, 9, n) for n in (5, 5, 5, 5, 7, 7, 9, 9)]

    def batched(order: list[int]) -> list[list[list[int]]]:
        windows = [Window(place, texts[i], 0, 0) for place, i in enumerate(order)]
        return [[window.ids.tolist() for window in batch] for batch in batches_of(windows, 15)]

    expected = batched([*range(8)])
    assert len(expected) > 3
    for _ in range(5):
        assert expected == batched(generator.permutation(8).tolist())


MESSAGES = "{% for message in messages %}"


@pytest.mark.parametrize(
    ("template", "warns"),
    [
        (MESSAGES + "{{'<s>' + message['role'] + message['content']}}{% endfor %}", True),
        (MESSAGES + "{{ '<s>' ~ message.role }}{% endfor %}", True),
        ("{{ '<s>system' }}" + MESSAGES + "{{ message.content }}{% endfor %}", True),
        ("{{ bos_token + messages[0]['role'] }}", True),
        ("{{'<s>' + role + '\\n'}}", True),
        ("{{ '<s>' + loop_messages[0]['role'] }}", True),
        ("{{ bos_token }}" + MESSAGES + "{{ message['role'] }}{% endfor %}", False),
        ("{{ '<s>' }}{% if messages[0]['role'] == 'system' %}{% endif %}", False),
        (MESSAGES + "{{ bos_token + '[INST] ' + message['content'] }}{% endfor %}", False),
        (MESSAGES + "{{ bos_token + '<|user|>' }}{% endfor %}", False),
        (MESSAGES + "{{ '<s><|' + message['role'] + '|>' }}{% endfor %}", False),
        ("{{ bos_token }}{#- system message -#}", False),
        ("<s>" + " " * 30 + "user", False),
        ("{{ '<s>A user' }}", False),
        (None, False),
    ],
)
def test_a_bos_that_begins_a_message(small: Tokenizer, template: str | None, warns: bool) -> None:
    [bos] = (token.id for token in small.added_tokens if token.content == "<s>")
    tokenizer = replace(small, chat_template=template)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for token_id in (bos, bos + 1, None):  # another token begins documents, or none does
            config = transformers.LlamaConfig(bos_token_id=token_id)
            warn_of_chat_start(SimpleNamespace(config=config), tokenizer)
    assert [each.category for each in caught] == [VocabshiftWarning] * warns
    assert all("begin with '<s>'" in str(each.message) for each in caught)
