"""A real model with its own tokenizer: every `--border` gives lm-eval's values, up to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("lm_eval")

import torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

from vocabshift.evaluation.harness import run as harness

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.xdist_group("lm-eval")]

QUESTIONS = [
    ("The capital of France is", (" Paris", " London", " a city in France")),
    ("Question: What is 2 + 2?\nA. 3\nB. 4\nAnswer:", (" A", " B")),
    ("def double(n):\n", ("    return 2 * n\n", "\treturn n + n\n")),
    ("Water boils at 100 ", ("degrees", "metres")),
    ("नमस्ते, आप कैसे", (" हैं?", " है")),
    ("", ("The cat sat.", "Sat cat the.")),
]
ASKED = [(context, answer) for context, answers in QUESTIONS for answer in answers]


def answers_of(lm: Any) -> tuple[list[tuple[float, bool]], list[str]]:
    """Values of the answers, and what is generated after two of the contexts."""
    scored = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(ASKED)]
    options = {"until": ["\n"], "max_gen_toks": 4, "do_sample": False}
    prompts = [
        Instance("generate_until", {}, (context, options), i)
        for i, (context, _) in enumerate(QUESTIONS[:2])
    ]
    return lm.loglikelihood(scored, disable_tqdm=True), lm.generate_until(prompts)


def test_the_real_model_keeps_lm_evals_values(smollm2: Path) -> None:
    """In batches of four; none of its tokens spans a border. `lm-eval` keeps every digit."""
    ours = harness._language_model(smollm2, 4, "float32", "cpu", "heal", trust_remote_code=False)
    with harness._accelerate_as_it_was():
        theirs = HFLM(
            pretrained=ours.model, tokenizer=ours.tokenizer, backend="causal", batch_size=4
        )
    with torch.inference_mode():
        expected = answers_of(theirs)
        for border in ("heal", "split", "lm-eval"):
            ours.border = border
            found = answers_of(ours)
            assert expected == found or border != "lm-eval"
            for (theirs_is, is_best), (ours_is, is_ours) in zip(expected[0], found[0], strict=True):
                assert theirs_is == pytest.approx(ours_is, abs=1e-3)
                assert is_best == is_ours
            assert expected[1] == found[1]
    assert 0 == ours.counts.touched
    assert ours.counts.requests == 3 * (len(ASKED) + 2)
