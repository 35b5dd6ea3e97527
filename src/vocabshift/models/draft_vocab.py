"""The files in which draft models of speculative decoding keep a smaller vocabulary.

- `hot_token_ids.pt`: the list of ids that SGLang reads (`--speculative-token-map`, FR-Spec). It
  calls `torch.load(file, weights_only=True)`, so the file is a pickle.
- `vocab_mapping.pt`: {"d2t", "t2d"}, as SpecForge reads it (`vocab_mapping_path`), likewise.
- `vocab_mapping.safetensors`: the same two tensors. An EAGLE-3 checkpoint holds them beside its
  weights, from where SGLang and vLLM read `d2t`.

`d2t` (n_draft,) int64 holds offsets: the target's id of draft id i is i + d2t[i], ascending. `t2d`
(n_rows,) bool says which ids of the target have one. Sources: sgl-project/sglang
(speculative/spec_utils.py, models/llama_eagle3.py), sgl-project/SpecForge (data/preprocessing.py).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TOKEN_MAP = "hot_token_ids.pt"
MAPPING_PICKLE = "vocab_mapping.pt"
MAPPING = "vocab_mapping.safetensors"


def write_draft_vocab(folder: Path, ids: NDArray[np.int64], n_rows: int) -> None:
    """Write the three files for the target's ids `ids` (n_draft,), ascending, all below `n_rows`.

    ImportError without torch and safetensors, with what to install.
    """
    try:
        import torch
        from safetensors.torch import save
    except ImportError as error:
        raise ImportError(
            "draft vocabularies need torch and safetensors; install them with: "
            "pip install 'vocabshift[hf]'"
        ) from error
    d2t = torch.from_numpy(ids - np.arange(len(ids), dtype=np.int64))
    t2d = torch.zeros(n_rows, dtype=torch.bool)
    t2d[torch.from_numpy(ids)] = True
    torch.save(ids.tolist(), folder / TOKEN_MAP)
    torch.save({"d2t": d2t, "t2d": t2d}, folder / MAPPING_PICKLE)
    # Not its save_file: that writes files that nobody else may read.
    (folder / MAPPING).write_bytes(save({"d2t": d2t, "t2d": t2d}))
