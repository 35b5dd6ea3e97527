"""The adaptation study's own arithmetic: intervals over seeds and documents, text, probe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from vocabshift.evaluation.metrics.metric import estimate

Program = Callable[[str], ModuleType]

SIZES = np.array([30.0, 80.0, 55.0, 10.0, 120.0, 64.0] * 10)


@pytest.fixture
def intervals(program: Program) -> ModuleType:
    return program("adaptation_study/intervals.py")


def amounts(n_seeds: int, spread: float) -> np.ndarray:
    generator = np.random.default_rng(5)
    own = generator.normal(0, spread, (n_seeds, 1)) * SIZES
    return 2 * SIZES + own + generator.normal(0, 8, (n_seeds, len(SIZES)))


def test_one_seed_is_a_plain_bootstrap_over_documents(intervals: ModuleType) -> None:
    bits = amounts(1, 0)
    found = intervals.over_seeds_and_documents(bits, SIZES)
    plain = estimate([(bits[0], SIZES)])[0]
    assert plain.low is not None and plain.high is not None
    assert (found.value, found.low, found.high) == pytest.approx(
        (plain.value, plain.low, plain.high), rel=4e-3
    )


def test_draws_are_crossed(intervals: ModuleType) -> None:
    """Held against loops that draw seeds, and documents, and add the bits up."""
    bits = amounts(4, 0.2)
    generator = np.random.default_rng(9)
    drawn = []
    for _ in range(3000):
        seeds = generator.integers(0, 4, 4)
        documents = generator.integers(0, len(SIZES), len(SIZES))
        total = sum(bits[seed][documents].sum() for seed in seeds)
        drawn.append(total / (4 * SIZES[documents].sum()))
    found = intervals.over_seeds_and_documents(bits, SIZES)
    low, high = np.quantile(drawn, (0.025, 0.975))
    assert (found.low, found.high) == pytest.approx((low, high), rel=0.02)
    assert found.value == pytest.approx(bits.sum() / (4 * SIZES.sum()))


def test_a_difference_that_is_everywhere_the_same_is_certain(intervals: ModuleType) -> None:
    bits = amounts(3, 0.3)
    found = intervals.over_seeds_and_documents((bits + 0.1 * SIZES) - bits, SIZES)
    assert (found.value, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    assert found.is_clear
    none = intervals.over_seeds_and_documents(bits - bits, SIZES)
    assert not none.is_clear


def test_seeds_that_disagree_are_not_clear(intervals: ModuleType) -> None:
    shift = np.array([[0.5], [0.5], [-0.01]]) * SIZES
    assert not intervals.over_seeds_and_documents(shift, SIZES).is_clear


def test_pieces_of_code_are_whole_lines(program: Program) -> None:
    arms = program("adaptation_study/arms.py")
    text = "".join(f"line number {i}\n\n" for i in range(100)) + "the end"
    found = list(arms.pieces(text))
    assert "".join(found) == text
    assert all(piece.endswith("\n") and len(piece) >= 400 for piece in found[:-1])
    assert all(len(piece) < 450 for piece in found)


def test_every_arm_draws_the_same_text_and_nothing_that_is_held_out(
    program: Program, tmp_path: Path
) -> None:
    arms = program("adaptation_study/arms.py")
    assert len({arm.key for arm in arms.ARMS}) == len(arms.ARMS) == 11
    for kind in ("train", "eval/sib200-flores", "eval/code"):
        (tmp_path / kind).mkdir(parents=True)
    for language in ("en", "hi"):
        lines = [f"{language} sentence {i}\n" for i in range(300)]
        (tmp_path / "train" / f"{language}.txt").write_text("".join(lines[:200]))
        (tmp_path / "eval/sib200-flores" / f"{language}.txt").write_text("".join(lines[200:]))
    sizes = arms.adaptation_sizes(["en"], ["hi"], 1000)
    assert {"hi": 800, "en": 200} == sizes
    drawn = arms.drawn(tmp_path / "train", sizes, 7)
    assert 700 < sum(len(text) for text in drawn if text.startswith("hi")) <= 800
    assert drawn == arms.drawn(tmp_path / "train", sizes, 7)
    assert drawn != arms.drawn(tmp_path / "train", sizes, 8)
    scored = arms.held_out(tmp_path / "eval", ["en", "hi"], 10)
    assert [f"en sentence {i}" for i in range(200, 300, 10)] == scored["en"]
    assert [text[3:] for text in scored["en"]] == [text[3:] for text in scored["hi"]]


def test_features_are_means_over_tokens(program: Program, tmp_path: Path) -> None:
    """Batches, padding and windows change nothing: held against one text and window at a time."""
    torch = pytest.importorskip("torch")
    from transformers import LlamaConfig, LlamaModel

    probe = program("adaptation_study/probe.py")

    class Encoder:
        def encode_batch(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
            ids = np.array([ord(letter) - 96 for letter in "".join(texts)], dtype=np.int32)
            return ids, np.cumsum([0, *map(len, texts)])

    class Model:
        config = LlamaConfig(
            vocab_size=27,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=1,
            num_attention_heads=2,
            bos_token_id=0,
        )

    torch.manual_seed(3)
    holder: Any = Model()
    holder.model = LlamaModel(Model.config).eval()
    texts = ["abc", "a", "zyxwvutsrqponm"]
    found = probe.features(holder, Encoder(), texts, 6)
    for text, row in zip(texts, found, strict=True):
        ids = [ord(letter) - 96 for letter in text]
        states = []
        for at in range(0, len(ids), 5):
            window = torch.tensor([[0, *ids[at : at + 5]]])
            with torch.no_grad():
                out = holder.model(input_ids=window, output_hidden_states=True)
            states.append(torch.cat([out.hidden_states[0], out.last_hidden_state], -1)[0, 1:])
        assert row == pytest.approx(torch.cat(states).mean(dim=0).numpy(), rel=1e-4, abs=1e-5)


def test_rank_correlations_and_the_share_of_orders_that_are_as_far_from_zero(
    program: Program,
) -> None:
    """Held against scipy, ties among them; of four values, 2 of 24 orders are as extreme."""
    of = program("adaptation_study/tables.py").rank_correlation
    assert of([1, 2, 3, 4], [9.0, 7.0, 5.0, 4.0]) == "-1.00 (p 0.08)"
    assert of([1, 2, 3, 4], [5, 5, 5, 5]) == "–"
    stats = pytest.importorskip("scipy.stats")
    one, other = [3, 1, 4, 1, 5, 9, 2], [2, 7, 1, 8, 2, 8, 1]
    assert of(one, other).startswith(f"{stats.spearmanr(one, other).statistic:+.2f} (p ")


def test_loss_per_token_is_bits_of_a_token(program: Program) -> None:
    """Two arms: 1 bit per byte at 3 bytes a token, and 2 at 1; the first is right more often."""
    bits = [{"row": "nothing", "after": {"hi": [2]}}, {"row": "ist, fvt", "after": {"hi": [1]}}]
    own = {
        "bits-per-byte": bits,
        "tokenizers": [
            {"row": "base", "values": {"hi": 1}},
            {"row": "ist", "values": {"hi": 3}},
        ],
        "sib200": [
            {"row": "nothing", "values": {"hi": [0.25]}},
            {"row": "ist, fvt", "values": {"hi": [0.75]}},
        ],
    }
    study = {"topics": ["hi"], "seeds": 1, "machine": "a machine"}
    text = program("adaptation_study/tables.py")._losses(own, study)
    assert "| hi | 1.39 to 2.08 | +1.00 (p 1.00) | 1.000 to 2.000 | -1.00 (p 1.00) |" in text
