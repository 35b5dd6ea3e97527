"""The key of a transfer: by it shards of an interrupted run are known again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from vocabshift.models.shards import open_checkpoint
from vocabshift.surgery.stream import transfer_key


def test_every_difference_changes_the_key(tmp_path: Path) -> None:
    """Or a resumed transfer would take over shards of another model, method or tokenizer."""
    file = tmp_path / "model.safetensors"

    def key(*decisions: object) -> str:
        checkpoint = open_checkpoint(tmp_path)
        assert checkpoint is not None
        return transfer_key(checkpoint, *decisions)

    save_file({"a": np.zeros(4, np.float32)}, file)
    os.utime(file, ns=(10**18, 10**18))
    first = key(np.arange(3), "mean", 7)
    assert first == key(np.arange(3), "mean", 7)
    others = [
        key(np.arange(4), "mean", 7),
        key(np.arange(3), "fvt", 7),
        key(np.arange(3), "mean", 8),
    ]
    others.append(key(np.arange(3), "mean"))
    os.utime(file, ns=(10**18, 10**18 + 1))  # rewritten in place, as large as before
    others.append(key(np.arange(3), "mean", 7))
    save_file({"a": np.zeros(5, np.float32)}, file)
    os.utime(file, ns=(10**18, 10**18))
    others.append(key(np.arange(3), "mean", 7))
    assert len({first, *others}) == 1 + len(others)
