"""Names that families of chat models give to tokens of the same use.

Owns the list. Knows nothing of tokenizers: whose token takes whose row is decided in `surgery`.
"""

from __future__ import annotations

import re

_NAMES = {
    "turn start": (
        *("<|start_header_id|>", "<|header_start|>", "<|im_start|>", "<start_of_turn>"),
        *("<|START_OF_TURN_TOKEN|>", "<|start_of_role|>", "<|start|>"),
    ),
    "header end": ("<|end_header_id|>", "<|header_end|>", "<|end_of_role|>", "<|message|>"),
    "turn end": (
        *("<|eot_id|>", "<|eot|>", "<|im_end|>", "<end_of_turn>", "<|END_OF_TURN_TOKEN|>"),
        "<|end|>",
    ),
    "tool call": (
        "<|python_tag|>",
        "<|python_start|>",
        "<tool_call>",
        "[TOOL_CALLS]",
        "<|tool_call|>",
    ),
    "tool call end": ("<|python_end|>", "</tool_call>", "<|/tool_call|>"),
    "tool result": ("<tool_response>", "[TOOL_RESULTS]", "<|tool_response|>"),
    "tool result end": ("</tool_response>", "[/TOOL_RESULTS]"),
    "tools": ("<tools>", "[AVAILABLE_TOOLS]"),
    "tools end": ("</tools>", "[/AVAILABLE_TOOLS]"),
    "thought": ("<think>", "<|thinking_start|>", "[THINK]"),
    "thought end": ("</think>", "<|thinking_end|>", "[/THINK]"),
}
_USES = {name: use for use, names in _NAMES.items() for name in names}

_RESERVED = re.compile(
    r"<\|?(?:reserved(?:_special)?_token|reserved|unused|SPECIAL|extra|dummy)_?-?\d+\|?>|"
    r"\[unused\d+\]"
)
RESERVED = "reserved"


def use_of(token: str) -> str | None:
    """What a special token is for: a name shared by families, "reserved", or None."""
    if _RESERVED.fullmatch(token):
        return RESERVED
    return _USES.get(token)
