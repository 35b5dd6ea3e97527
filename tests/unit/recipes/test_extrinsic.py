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
    means = {"joint": 150.0, "cluster": 140.0, "joint-unigram": 145.0, "cluster-unigram": 135.0}
    nats = {
        name: generator.normal(mean, 20.0, (n_seeds, len(LANGUAGES), N_SENTENCES))
        for name, mean in means.items()
    }
    for name, values in nats.items():
        for kind in ("decoder", "encoder"):
            for seed in range(n_seeds):
                rows = [
                    [label, f"{i:02}", 100, values[seed, j, i], bool(values[seed, j, i] < 145)]
                    for j, label in enumerate(LANGUAGES)
                    for i in range(N_SENTENCES)
                ]
                record = {
                    "sentences": rows[::-1],  # whatever their order
                    "retrieved": {
                        "ta": (values[seed, 1] < 150).tolist(),
                        "de": [True, *[False] * 3],
                    },
                    "retrieved untrained": {"ta": (values[seed, 1] < 140).tolist()},
                }
                text = json.dumps(record)
                (folder / f"{name}-{kind}-{seed}.json").write_text(text, encoding="utf-8")
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


def test_retrieval_is_over_the_languages_of_the_study(program: Program, tmp_path: Path) -> None:
    """German, which the paper's Table 21 lacks, is in no mean."""
    nats = write_runs(tmp_path)
    load = program("indic_study/extrinsic_tables.py").load
    after = load(tmp_path, "joint", "encoder", "sentences found, %")
    before = load(tmp_path, "joint", "encoder", "sentences found before training, %")
    assert after.languages == before.languages == ("ta",)
    assert after.by_seed.tolist() == pytest.approx(100 * (nats["joint"][:, 1] < 150).mean(axis=1))
    assert before.by_seed.tolist() == pytest.approx(100 * (nats["joint"][:, 1] < 140).mean(axis=1))


def test_tables_hold_them(program: Program, tmp_path: Path) -> None:
    nats = write_runs(tmp_path, n_seeds=1)
    module = program("indic_study/extrinsic_tables.py")
    rows = module.rows_of(tmp_path)
    changes, by_language = module.tables(rows)["extrinsic"].split("<details>")
    hindi = nats["cluster"][0, 0].mean() / 100 / math.log(2)
    right = 100 * (nats["joint"][0, 1] < 145).mean()
    cells = {line.split(" | ")[0]: line.split(" | ")[1:] for line in by_language.splitlines()}
    head = cells["| "]
    assert f"{hindi:.3f}" == cells["| hi"][head.index("decoder, bits per byte: cluster, BPE")]
    assert f"{right:.1f}" == cells["| ta"][head.index("encoder, topics right, %: joint, BPE")]
    change = nats["cluster-unigram"].mean() - nats["joint-unigram"].mean()
    line = next(
        line
        for line in changes.splitlines()
        if "bits per byte: joint, Unigram → cluster, Unigram" in line
    ).split(" | ")
    assert f"{change / 100 / math.log(2):.4f}" == line[5]
    assert "–" == line[6]  # one seed has no interval
    both = [100 * (nats[name][0] < 145).mean() for name in ("joint", "cluster")]
    cells = [f"{value:.1f}" for value in both] + [f"{both[1] - both[0]:+.1f}"]
    tasks = module.tables(rows)["indic_study-6"]
    assert f"| ours: topics, encoder, BPE | 2 | {' | '.join(cells)} |" in tasks
    assert "| paper: IndicXNLI, fine-tuned | 11 | 64.4 | 65.6 | +1.3 |" in tasks
    assert "| de | 25.00 | 25.00 |" in module.tables(rows)["retrieval-others"]
    of_paper = [row["row"] for row in rows if row["table"] == "indic_study-21"]
    assert {"joint, Unigram", "cluster, Unigram", "joint, Unigram, untrained"} <= set(of_paper)


def test_the_nearest_sentence_of_the_reference_is_found(program: Program) -> None:
    """Against plain cosines, one pair at a time; rows of different lengths, in any order."""
    import torch

    module = program("indic_study/retrieval.py")
    generator = np.random.default_rng(3)
    table = torch.tensor(generator.normal(size=(50, 8)), dtype=torch.float32)
    texts = {
        language: [generator.integers(0, 50, n).tolist() for n in generator.integers(1, 9, 150)]
        for language in ("hi", "ta")
    }
    texts["ta"][:60] = [row[::-1] for row in texts["hi"][:60]]  # the same tokens: the same mean

    def pool(rows: list[list[int]]) -> torch.Tensor:
        return torch.stack([table[row].mean(dim=0) for row in rows])

    def cosine(one: list[int], other: list[int]) -> float:
        a, b = (table[row].mean(dim=0).double() for row in (one, other))
        return float(a @ b / a.norm() / b.norm())

    found = module.retrieved(pool, texts, "hi")
    assert list(found) == ["ta"]
    expected = [
        max(range(150), key=lambda j: round(cosine(row, texts["hi"][j]), 6)) == i
        for i, row in enumerate(texts["ta"])
    ]
    assert found["ta"] == expected
    assert sum(expected) >= 55


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
