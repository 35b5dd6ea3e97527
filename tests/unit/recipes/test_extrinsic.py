"""The extrinsic test: its intervals against scipy's own, and batches that hold every sentence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

Program = Callable[[str], ModuleType]

N_SENTENCES = 40
LANGUAGES = ("hi", "ta")


def write_runs(folder: Path, n_seeds: int = 3) -> dict[str, np.ndarray]:
    """Random records; nats of (seed, language, sentence) by vocabulary, all of 100 bytes."""
    generator = np.random.default_rng(0)
    nats = {
        name: generator.normal(mean, 20.0, (n_seeds, len(LANGUAGES), N_SENTENCES))
        for name, mean in (("joint", 150.0), ("cluster", 140.0))
    }
    for name, values in nats.items():
        for kind in ("decoder", "encoder"):
            for seed in range(n_seeds):
                rows = [
                    [label, f"{i:02}", 100, values[seed, j, i], bool(values[seed, j, i] < 145)]
                    for j, label in enumerate(LANGUAGES)
                    for i in range(N_SENTENCES)
                ]
                record = json.dumps({"sentences": rows[::-1]})  # whatever their order
                (folder / f"{name}-{kind}-{seed}.json").write_text(record, encoding="utf-8")
    return nats


def test_values_and_intervals(program: Program, tmp_path: Path) -> None:
    nats = write_runs(tmp_path)
    module = program("indic_study/extrinsic_tables.py")
    load = module.load
    joint, cluster = (load(tmp_path, n, "decoder", "bits per byte") for n in ("joint", "cluster"))
    by_seed = {name: values.mean(axis=(1, 2)) / 100 / math.log(2) for name, values in nats.items()}
    assert joint.by_seed == pytest.approx(by_seed["joint"])

    difference = by_seed["cluster"] - by_seed["joint"]
    half = stats.t.ppf(0.975, 2) * stats.sem(difference)
    expected = (difference.mean() - half, difference.mean() + half)
    assert module.over_seeds(joint, cluster) == pytest.approx(expected)

    # All sentences have the same bytes: then it is the bootstrap of a mean.
    change = (nats["cluster"] - nats["joint"]).mean(axis=(0, 1)) / 100 / math.log(2)
    found = stats.bootstrap((change,), np.mean, method="percentile", rng=np.random.default_rng(1))
    low, high = module.over_sentences(joint, cluster)
    assert low == pytest.approx(found.confidence_interval.low, abs=0.01)
    assert high == pytest.approx(found.confidence_interval.high, abs=0.01)


def test_tables_hold_them(program: Program, tmp_path: Path) -> None:
    nats = write_runs(tmp_path, n_seeds=1)
    text = program("indic_study/extrinsic_tables.py").tables(tmp_path, ("joint", "cluster"))
    hindi = nats["cluster"][0, 0].mean() / 100 / math.log(2)
    right = 100 * (nats["joint"][0, 1] < 145).mean()
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in text.splitlines()}
    assert f"{hindi:.3f}" == rows["hi"][2]
    assert f"{right:.1f}" == rows["ta"][3]
    assert "–" == rows["encoder, topics right, %"][4]  # one seed has no interval


def test_sentences_must_be_the_same_in_all_languages(program: Program, tmp_path: Path) -> None:
    write_runs(tmp_path)
    file = tmp_path / "joint-decoder-1.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    record["sentences"][3][1] = "other"
    file.write_text(json.dumps(record), encoding="utf-8")
    module = program("indic_study/extrinsic_tables.py")
    with pytest.raises(ValueError, match="of joint are not the same"):
        module.load(tmp_path, "joint", "decoder", "accuracy")
    with pytest.raises(ValueError, match="no run of other, encoder"):
        module.load(tmp_path, "other", "encoder", "accuracy")


def test_a_batch_holds_sentences_of_like_length(program: Program) -> None:
    lengths = np.random.default_rng(0).integers(1, 90, 100).tolist()
    module = program("indic_study/extrinsic.py")
    found = list(module.batches(lengths, np.random.default_rng(1)))
    assert list(range(100)) == sorted(i for batch in found for i in batch)
    spans = sorted((min(lengths[i] for i in b), max(lengths[i] for i in b)) for b in found)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
