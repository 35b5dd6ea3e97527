"""SIB-200: which of seven topics is a sentence about? A linear probe of a model's hidden states.

A sentence is the mean of its tokens' embeddings beside the mean of their last hidden states, read
in windows of the length that the model was trained with; a logistic regression learns from
SIB-200's train split, its strength is chosen on dev, and test is what is told. Nothing of the
model is trained here.
"""

from __future__ import annotations

import csv
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

SPLITS = ("train", "dev", "test")
_STRENGTHS = (0.01, 0.1, 1.0)  # inverse, as scikit-learn has it
_BATCH = 32  # windows read together

Rows = list[tuple[str, str]]


def read(folder: Path) -> dict[str, Rows]:
    """(category, text) of each split of one language."""
    splits = {}
    for name in SPLITS:
        with (folder / f"{name}.tsv").open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            splits[name] = [(row["category"], row["text"]) for row in table]
    return splits


def features(model: Any, encoder: Any, texts: list[str], length: int) -> np.ndarray:
    """(n_texts, 2 x hidden): mean embedding, mean last hidden state."""
    import torch

    bos = model.config.bos_token_id
    ids, offsets = encoder.encode_batch(texts)
    windows = [
        (text, [bos, *ids[at : min(at + length - 1, end)].tolist()])
        for text, (start, end) in enumerate(pairwise(offsets))
        for at in range(start, end, length - 1)
    ]
    windows.sort(key=lambda window: len(window[1]))
    sums = np.zeros((len(texts), 2 * model.config.hidden_size))
    with torch.inference_mode():
        for first in range(0, len(windows), _BATCH):
            batch = windows[first : first + _BATCH]
            width = len(batch[-1][1])
            # Padding stands on the right, where a causal model cannot see it.
            rows = torch.tensor([window + [bos] * (width - len(window)) for _, window in batch])
            found = model.model(input_ids=rows, use_cache=False, output_hidden_states=True)
            states = torch.cat([found.hidden_states[0], found.last_hidden_state], dim=-1)
            for (text, window), vectors in zip(batch, states, strict=True):
                sums[text] += vectors[1 : len(window)].double().sum(dim=0).numpy()
    return sums / np.diff(offsets)[:, None]


def correct(model: Any, encoder: Any, splits: dict[str, Rows], length: int) -> list[int]:
    """For every sentence of test, 1 where the probe is right."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    vectors = {
        name: features(model, encoder, [text for _, text in rows], length)
        for name, rows in splits.items()
    }
    labels = {name: np.array([label for label, _ in rows]) for name, rows in splits.items()}
    best, chosen = -1.0, None
    for strength in _STRENGTHS:
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=200))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # weak regularization need not converge
            probe.fit(vectors["train"], labels["train"])
        accuracy = probe.score(vectors["dev"], labels["dev"])
        if accuracy > best:
            best, chosen = accuracy, probe
    assert chosen is not None
    return [int(hit) for hit in chosen.predict(vectors["test"]) == labels["test"]]


def majority(splits: dict[str, Rows]) -> float:
    """Accuracy of always naming the most frequent topic of train."""
    labels = [label for label, _ in splits["train"]]
    top = max(sorted(set(labels)), key=labels.count)
    return sum(label == top for label, _ in splits["test"]) / len(splits["test"])
