"""What AutoTokenizer makes of a folder: the check, and the class that some models need.

Several model types make AutoTokenizer rebuild a pre-tokenizer of its own when a `config.json` lies
beside `tokenizer.json`, silently. `tokenizer_class: PreTrainedTokenizerFast` prevents that in all
but qwen2 and qwen3_5 (transformers 5), whose types stand in a list that overrides it. An `auto_map`
switches that list off; without `trust_remote_code` the file that it names is not run. Found by
reading and trying 4.57.6 and 5.23.0, not a documented promise: hence the check.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from vocabshift.bpe import tokenizer_json
from vocabshift.bpe.pretrained_folder import PROBES
from vocabshift.errors import InvalidTokenizerError

OVERRIDDEN_TYPES = frozenset(
    {
        *("qwen2", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen4_exp"),
        "hyperclovax_vision_v2",
    }
)
"""Model types whose class transformers prefers to the one that `tokenizer_config.json` names."""

_CLASS_FILE = "tokenization_vs.py"
_CLASS = """from transformers import PreTrainedTokenizerFast
class VSTokenizer(PreTrainedTokenizerFast):
    \"\"\"Loads tokenizer.json as it is.\"\"\"
"""


def write_auto_class(folder: str | Path, model_type: str) -> bool:
    """Write the three-line class and its `auto_map` where the model type needs them.

    `folder` holds a written `tokenizer_config.json`. Returns whether anything was written: for
    other types the class name in the config is enough.
    """
    if model_type not in OVERRIDDEN_TYPES:
        return False
    path = Path(folder)
    (path / _CLASS_FILE).write_text(_CLASS, encoding="utf-8")
    file = path / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["auto_map"] = {"AutoTokenizer": [None, f"{_CLASS_FILE[:-3]}.VSTokenizer"]}
    text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")
    return True


def check_auto(folder: str | Path, probes: Iterable[str] = PROBES) -> None:
    """Reopen a folder with AutoTokenizer and compare its ids with `tokenizer.json`'s, or raise.

    InvalidTokenizerError names the class that transformers took and the first text that differs.
    Nothing in the folder is run.
    """
    from tokenizers import Tokenizer as Backend

    path = Path(folder)
    expected = Backend.from_file(str(path / "tokenizer.json"))
    expected.no_truncation()
    expected.no_padding()
    auto = tokenizer_json.open_auto(path)
    for text in probes:
        for special in (False, True):
            want = expected.encode(text, add_special_tokens=special).ids
            got = auto.encode(text, add_special_tokens=special)
            if list(got) != want:
                raise InvalidTokenizerError(
                    f"{path}: AutoTokenizer loads it as {type(auto).__name__} with another "
                    f"segmentation: {text[:40]!r} gives {len(got)} tokens, not {len(want)}; "
                    'write "tokenizer_class": "PreTrainedTokenizerFast" into '
                    "tokenizer_config.json (qwen2 and qwen3_5 need the class of "
                    "vocabshift.bpe.reload.write_auto_class beside it)"
                )
