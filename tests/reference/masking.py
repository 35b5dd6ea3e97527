"""Masked language modelling one token at a time, in plain integers."""

from __future__ import annotations

from collections.abc import Sequence

ALL = 2**64 - 1


def mixed(value: int) -> int:
    """splitmix64 of an unsigned number."""
    value = (value + 0x9E3779B97F4A7C15) & ALL
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & ALL
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & ALL
    return value ^ (value >> 31)


def uniform(row_seed: int, place: int, draw: int) -> float:
    """One of three numbers of [0, 1) for a place."""
    key = mixed(row_seed & ALL)
    return (mixed((key + 3 * place + draw) & ALL) >> 11) / 2**53


def mask(
    row: Sequence[int],
    row_seed: int,
    mask_id: int,
    special: set[int],
    n_ids: int,
    share: float,
    most: int | None = None,
) -> tuple[list[int], list[int]]:
    """Inputs and targets of a row whose last token belongs to the next one."""
    chosen = [
        (drawn, place)
        for place, token_id in enumerate(row[:-1])
        if token_id != -1
        and token_id not in special
        and (drawn := uniform(row_seed, place, 0)) < share
    ]
    places = {place for _, place in sorted(chosen)[:most]}
    drawable = [token_id for token_id in range(n_ids) if token_id not in special]
    inputs, targets = [], []
    for place, token_id in enumerate(row[:-1]):
        inputs.append(max(token_id, 0))
        targets.append(-100)
        if place not in places:
            continue
        targets[-1] = token_id
        kind = uniform(row_seed, place, 1)
        if kind < 0.8:
            inputs[-1] = mask_id
        elif kind < 0.8 + 0.1:
            inputs[-1] = drawable[int(uniform(row_seed, place, 2) * len(drawable))]
    return inputs, targets
