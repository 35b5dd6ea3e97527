"""Llama-3's rope scaling, found in the factors that GGUF files hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vocabshift.models.gguf_config import llama3_scaling


def factors_of(
    factor: float, low: float, high: float, theta: float, dim: int, context: int
) -> list[float]:
    """What each frequency is divided by, as transformers' `_compute_llama3_parameters` has it."""
    found = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * theta ** (i / dim)
        smooth = (context / wavelength - low) / (high - low)
        if wavelength < context / high:
            found.append(1.0)
        elif wavelength > context / low:
            found.append(factor)
        else:
            found.append(1 / ((1 - smooth) / factor + smooth))
    return [float(np.float32(value)) for value in found]


@pytest.mark.parametrize(
    ("factor", "low", "high", "theta", "dim"),
    [
        (8.0, 1.0, 4.0, 5e5, 128),  # Llama 3.1
        (32.0, 1.0, 4.0, 5e5, 64),  # Llama 3.2
        (16.0, 2.0, 6.0, 1e5, 96),
        (4.0, 1.0, 8.0, 1e4, 128),
    ],
)
def test_settings_are_found(factor: float, low: float, high: float, theta: float, dim: int) -> None:
    found = llama3_scaling(factors_of(factor, low, high, theta, dim, 8192), theta, dim, 8192)
    assert "llama3" == found["rope_type"]
    assert factor == found["factor"]
    assert 8192 == found["original_max_position_embeddings"]
    assert low == pytest.approx(found["low_freq_factor"], rel=1e-2)
    assert high == pytest.approx(found["high_freq_factor"], rel=1e-2)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([1.0, 2.0, 1.0, 8.0], "are not those of Llama-3's rope scaling over 8192 positions"),
        ([8.0, 1.0, 1.0, 1.0], "are not those"),
        ([1.0, float("nan"), 8.0, 8.0], "no factors"),
        ([0.0, 0.0, 0.0, 0.0], "no factors"),
    ],
)
def test_other_factors_are_refused(factors: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        llama3_scaling(factors, 5e5, 8, 8192)
