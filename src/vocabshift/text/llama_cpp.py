"""What llama.cpp runs under the names of `tokenizer.ggml.pre`, as patterns of Split steps.

llama.cpp runs no regex of a file: it knows byte-level pre-tokenizers by name, and what it runs is
not always what the vendor runs. There letters outside ASCII have no case, and `gpt-4o` and `tekken`
cut words at marks. Left out are names whose boundaries are computed by code (afmoe, kimi-k2,
tiny_aya) and second names of the same pattern.

Source: llama-vocab.cpp and unicode.cpp of github.com/ggml-org/llama.cpp. Every entry gave the
ids of llama-cpp-python 0.3.36 on 1,460 texts in 24 languages and code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vocabshift.text import regexes
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.regexes import CONTRACTION, PREFIX
from vocabshift.text.splits import Split


class LlamaCppPattern(NamedTuple):
    """What llama.cpp runs for one `tokenizer.ggml.pre`."""

    pattern: Pattern
    ignore_merges: bool = False  # whether a pre-token that is a token is taken whole


def _cased(upper: str, lower: str, contraction: str) -> str:
    return rf"{PREFIX}{upper}*{lower}+{contraction}|{PREFIX}{upper}+{lower}*{contraction}|"


def _rest(digits: str) -> str:
    return rf"{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


_SHORTENED = rf"(?:{CONTRACTION})?"
_LETTERS = (r"[^\P{L}a-z]", r"[^\P{L}A-Z]")  # only ASCII letters have a case
_MARKED = (r"(?:[^\P{L}a-z]|\p{M})", r"(?:[^\P{L}A-Z]|\p{M})")
_YOUTU = (  # Hangul; punctuation and brackets of CJK; Bopomofo; Chinese characters and kana
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
    "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
)
_YOUTU_WORDS = rf"{PREFIX}[\p{{L}}\p{{M}}]+{_SHORTENED}|" + _rest(r"\p{N}")
_EXAONE_MOE = (
    rf"{CONTRACTION}|{PREFIX}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)


def _steps(*steps: str) -> Pattern:
    return tuple(map(Split, steps))


LLAMA_CPP: Mapping[str, LlamaCppPattern] = {
    "gpt-2": LlamaCppPattern(get_pattern("gpt2")),
    "smollm": LlamaCppPattern(_steps(r"\p{N}", regexes.GPT2)),
    "llama-bpe": LlamaCppPattern(get_pattern("cl100k"), ignore_merges=True),
    "qwen2": LlamaCppPattern(get_pattern("qwen2")),
    "qwen35": LlamaCppPattern(get_pattern("qwen35")),
    "gpt-4o": LlamaCppPattern(_steps(_cased(*_LETTERS, _SHORTENED) + _rest(r"\p{N}{1,3}"))),
    "tekken": LlamaCppPattern(_steps(_cased(*_LETTERS, "") + _rest(r"\p{N}")), ignore_merges=True),
    "granite-embed-multi-97m": LlamaCppPattern(
        _steps(_cased(*_MARKED, _SHORTENED) + _rest(r"\p{N}{1,3}")), ignore_merges=True
    ),
    "youtu": LlamaCppPattern(_steps(_YOUTU, _YOUTU_WORDS), ignore_merges=True),
    "deepseek-v3": LlamaCppPattern(get_pattern("deepseek")),
    "deepseek-llm": LlamaCppPattern(_steps(*regexes.DEEPSEEK_LLM)),
    "deepseek-coder": LlamaCppPattern(_steps(*regexes.DEEPSEEK_CODER)),
    "falcon": LlamaCppPattern(_steps(*regexes.FALCON)),
    "seed-coder": LlamaCppPattern(_steps(*regexes.SEED_CODER)),
    "bailingmoe": LlamaCppPattern(_steps(*regexes.BAILING)),
    "bloom": LlamaCppPattern(_steps(*regexes.BLOOM)),
    "viking": LlamaCppPattern(_steps(*regexes.BLOOM, r"\p{N}")),
    "superbpe": LlamaCppPattern(_steps(*regexes.SUPERBPE)),
    "exaone-moe": LlamaCppPattern(_steps(_EXAONE_MOE)),
}
"""`tokenizer.ggml.pre` -> what it means in llama.cpp, byte-level patterns only."""

KEEP_MARKS = ("qwen35", "granite-embed-multi-97m", "youtu", "deepseek-v3")
"""The word patterns among them that keep marks in words."""
