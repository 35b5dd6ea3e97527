"""Run in a process (and with a transformers) of its own: load model folders, use them, say how.

python tests/reload_models.py FOLDER…      prints one JSON object, folder name -> facts
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

PROBE = "the other दिन बिल्ली 12\n another day"


def facts(folder: Path) -> dict[str, Any]:
    """What this transformers makes of the folder."""
    config = transformers.AutoConfig.from_pretrained(folder)
    cls = getattr(transformers, config.architectures[0])
    model, loading = cls.from_pretrained(folder, output_loading_info=True)
    model.eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(PROBE, return_tensors="pt")
    inputs = {key: batch[key] for key in ("input_ids", "attention_mask")}
    head = model.get_output_embeddings()
    embeddings = model.get_input_embeddings()
    found = {
        "ids": inputs["input_ids"][0].tolist(),
        "missing": sorted(loading["missing_keys"]),
        "rows": embeddings.weight.shape[0],
        "head_rows": None if head is None else head.weight.shape[0],
        "tied": head is not None and head.weight.data_ptr() == embeddings.weight.data_ptr(),
        "vocab_size": config.get_text_config().vocab_size,
    }
    with torch.no_grad():
        if model.can_generate():
            new = model.generate(**inputs, max_new_tokens=4, min_new_tokens=2, do_sample=False)
            found["generated"] = new[0].tolist()
            found["eos"] = model.generation_config.eos_token_id
            if not config.is_encoder_decoder:
                out = model(**inputs).logits
                found["logits"] = out[0, -1].double().tolist()
        else:
            found["logits"] = model(**inputs).logits.flatten()[-400:].double().tolist()
    return found


def main() -> None:
    """All folders; an error of one stands in its place."""
    found = {}
    for name in sys.argv[1:]:
        try:
            found[Path(name).name] = facts(Path(name))
        except Exception as error:
            found[Path(name).name] = {"error": f"{type(error).__name__}: {error}"[:400]}
    sys.stdout.write(json.dumps({"version": transformers.__version__, "models": found}) + "\n")


if __name__ == "__main__":
    main()
