"""Facts that rank files lack: pattern, special tokens and merge rule of the known vocabularies.

A vocabulary is recognised by the SHA-256 of its ranks in tiktoken's own spelling (a line per
token: base64, a space, the rank), sorted by rank. Owns these facts and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MergeRule = Literal["every_split", "one_split"]


@dataclass(frozen=True)
class KnownRanks:
    """A published rank file."""

    name: str
    pattern: str  # a name of text.patterns
    special_tokens: Mapping[str, int]  # content -> id
    plain: frozenset[str] = frozenset()  # added tokens that are not special: kept when decoding
    roles: Mapping[str, str] = field(default_factory=dict)  # "bos_token" -> content, ...
    merge_rule: MergeRule = "every_split"
    normalizer: str | None = None


def recognise(ranks: Mapping[bytes, int]) -> KnownRanks | None:
    """The known vocabulary with exactly these ranks, or None."""
    return _KNOWN.get(ranks_hash(ranks))


def ranks_hash(ranks: Mapping[bytes, int]) -> str:
    """SHA-256 (hex) of the ranks, whatever the order and line ends of the file they came in."""
    digest = hashlib.sha256()
    for token in sorted(ranks, key=ranks.__getitem__):
        digest.update(b"%s %d\n" % (base64.b64encode(token), ranks[token]))
    return digest.hexdigest()


def _numbered(first_id: int, *runs: str | tuple[str, int, int]) -> dict[str, int]:
    """Consecutive ids for names; (family, first, count) is a run "<|family_N|>"."""
    names: list[str] = []
    for run in runs:
        if isinstance(run, str):
            names.append(f"<|{run}|>")
        else:
            family, first, count = run
            names += [f"<|{family}_{number}|>" for number in range(first, first + count)]
    return {name: first_id + offset for offset, name in enumerate(names)}


_LLAMA3 = KnownRanks(
    "llama3",
    "cl100k",
    _numbered(
        128_000,
        *("begin_of_text", "end_of_text", ("reserved_special_token", 0, 2)),
        *("finetune_right_pad_id", ("reserved_special_token", 2, 1)),
        *("start_header_id", "end_header_id", "eom_id", "eot_id", "python_tag"),
        ("reserved_special_token", 3, 245),
    ),
    roles={"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
)
_LLAMA4 = KnownRanks(
    "llama4",
    "o200k",
    _numbered(
        200_000,
        *("begin_of_text", "end_of_text", "fim_prefix", "fim_middle", "fim_suffix"),
        *("header_start", "header_end", "eom", "eot", "step"),
        *(("text_post_train_reserved_special_token", 0, 6), "python_start", "python_end"),
        *("finetune_right_pad", ("text_post_train_reserved_special_token", 8, 61)),
        *("image_start", "image_end", ("vision_reserved_special_token", 0, 2)),
        *("tile_x_separator", "tile_y_separator", ("vision_reserved_special_token", 2, 4)),
        *("image", ("vision_reserved_special_token", 6, 1), "patch"),
        *(("vision_reserved_special_token", 7, 1041), ("reasoning_reserved_special_token", 0, 8)),
        *("reasoning_thinking_start", "reasoning_thinking_end"),
        ("reserved_special_token", 0, 904),
    ),
    roles={
        "bos_token": "<|begin_of_text|>",
        "eos_token": "<|eot|>",
        "pad_token": "<|finetune_right_pad|>",
    },
)
_QWEN_PLAIN = {"<tool_call>": 151_657, "</tool_call>": 151_658} | _numbered(
    151_659, "fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "repo_name", "file_sep"
)
_QWEN = KnownRanks(
    "qwen",
    "qwen2",
    _numbered(
        151_643,
        *("endoftext", "im_start", "im_end", "object_ref_start", "object_ref_end", "box_start"),
        *("box_end", "quad_start", "quad_end", "vision_start", "vision_end", "vision_pad"),
        *("image_pad", "video_pad"),
    )
    | _QWEN_PLAIN,
    plain=frozenset(_QWEN_PLAIN),
    roles={"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    merge_rule="one_split",
    normalizer="NFC",
)
_END = "<|endoftext|>"
_O200K = KnownRanks(
    "o200k", "o200k", {_END: 199_999, "<|endofprompt|>": 200_018}, roles={"eos_token": _END}
)
_CL100K = KnownRanks(
    "cl100k",
    "cl100k",
    _numbered(100_257, "endoftext", "fim_prefix", "fim_middle", "fim_suffix")
    | {"<|endofprompt|>": 100_276},
    roles={"eos_token": _END},
)
_P50K = KnownRanks("p50k", "gpt2", {_END: 50_256}, roles={"eos_token": _END})
_R50K = KnownRanks("r50k", "gpt2", {_END: 50_256}, roles={"eos_token": _END})

_KNOWN = {
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": _LLAMA3,
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": _LLAMA4,
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": _QWEN,
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": _O200K,
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": _CL100K,
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": _P50K,
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": _R50K,
}
