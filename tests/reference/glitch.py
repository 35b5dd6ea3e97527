"""Indicators of under-training, slow and obvious: one row at a time, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

Rows = Any


def cosine_distance(row: Rows, to: Rows) -> float:
    """1 - cosine; 0 for a row of zeros."""
    if not np.any(row):
        return 0.0
    return float(1 - np.dot(row, to) / (np.linalg.norm(row) * np.linalg.norm(to)))


def centred(matrix: Rows) -> Rows:
    """Without the mean of all rows."""
    return matrix - matrix.mean(axis=0)


def without_component(matrix: Rows) -> Rows:
    """Without its first principal component, by a whole singular value decomposition."""
    component = np.linalg.svd(centred(matrix), full_matrices=False)[2][0]
    return np.array([row - np.dot(row, component) * component for row in matrix])


def distances(matrix: Rows, reference: list[int]) -> dict[str, list[float]]:
    """The four indicators of every row against the mean of the reference rows."""
    matrix = np.asarray(matrix, dtype=np.float64)
    ways = {"cosine": matrix, "centred": centred(matrix)}
    ways["without-component"] = without_component(matrix)
    found = {}
    for name, rows in ways.items():
        mean = rows[reference].mean(axis=0)
        found[name] = [cosine_distance(row, mean) for row in rows]
    mean = matrix[reference].mean(axis=0)
    found["distance"] = [float(np.linalg.norm(row - mean)) for row in matrix]
    return found


def among_themselves(matrix: Rows, reference: list[int]) -> list[float]:
    """Cosine distance of each reference row to the mean of the others."""
    matrix = np.asarray(matrix, dtype=np.float64)
    return [
        cosine_distance(matrix[i], matrix[[j for j in reference if j != i]].mean(axis=0))
        for i in reference
    ]


def curve(values: list[float], late: set[int], k: int) -> int:
    """How many of the k lowest are late; ties by id."""
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    return sum(i in late for i in order[:k])
