"""How llama.cpp cuts text: the pre-tokenizers that `tokenizer.ggml.pre` may name, as it runs them.

llama.cpp runs no regex of a file: it knows byte-level pre-tokenizers by name, and what it runs is
not always what the models do that a name was made for. Before it runs a regex, it replaces each
character beyond ASCII by its major class. So "gpt-4o" and "tekken" know no capitals there, and cut
words at marks.

Owns the table of names, and the lines that teach llama.cpp another pattern. Source: llama-vocab.cpp
and unicode.cpp of github.com/ggml-org/llama.cpp, November 2026. Every entry gave the ids of
llama-cpp-python 0.3.36 on some 1,500 texts in 24 languages and code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from vocabshift.text import regexes
from vocabshift.text.patterns import Pattern, get_pattern
from vocabshift.text.regexes import CONTRACTION, PREFIX
from vocabshift.text.splits import Split

DEPLOYABLE = "deployable"
"""In place of a pattern's name: the best that llama.cpp has (`checks.deployable`)."""

_CONTRACTION = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
"""As llama.cpp writes it: its regexes always mind the case."""

_UNKNOWN = {
    r"\(\?<": "lookbehind",
    r"\(\?[a-z]+:": "flags",
    r"\(\?>|[+*?}]\+": "possessive and atomic groups",
    r"&&|\[[^]]*\[": "classes within classes",
    r"\\P\{": r"\P{…}",
    r"\\p\{(?![LNMPS]\})": r"\p{…} of a kind finer than L, N, M, P and S",
    r"[^\x00-\x7f]|\\[ux]": "characters beyond ASCII",
}
"""What a regex of llama.cpp cannot have (std::regex, on text of which all characters beyond ASCII
are replaced by their major class), by how it is recognized."""


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


def _without_spaces(steps: tuple[str, ...]) -> Pattern:
    """The steps with no spaces beyond ASCII in their ranges: llama.cpp makes them tabs first."""
    return _steps(*(re.sub(r"(\[[^]\\]{8,})\]", r"\1&&[^\\s]]", step) for step in steps))


_DEEPSEEK_WORDS = regexes.DEEPSEEK[2]
_RIGHT_TRIPLES = rf"\P{{N}}*{regexes.DIGIT_TRIPLES}"
"""The first three digits of a run, or fewer, stay with the text before it (`…_custom_afmoe`)."""
_WORD_ENDS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASCADE = "|".join(rf"\s{{{2**power}}}(?!\S)" for power in range(9, 1, -1))
_AFMOE_ASIAN = (
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
    "\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
    "\u1100-\u11ff]+"
)

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
    "deepseek-llm": LlamaCppPattern(_without_spaces(regexes.DEEPSEEK_LLM)),
    "deepseek-coder": LlamaCppPattern(_without_spaces(regexes.DEEPSEEK_CODER)),
    "falcon": LlamaCppPattern(_steps(*regexes.FALCON)),
    "seed-coder": LlamaCppPattern(_steps(*regexes.SEED_CODER)),
    "bailingmoe": LlamaCppPattern(_steps(*regexes.BAILING)),
    "bloom": LlamaCppPattern(_steps(*regexes.BLOOM)),
    "viking": LlamaCppPattern(_steps(*regexes.BLOOM, r"\p{N}")),
    "superbpe": LlamaCppPattern(_steps(*regexes.SUPERBPE)),
    "exaone-moe": LlamaCppPattern(_steps(_EXAONE_MOE)),
    "dbrx": LlamaCppPattern(get_pattern("cl100k")),
    "tiny_aya": LlamaCppPattern(
        _steps(_RIGHT_TRIPLES, rf"{PREFIX}[\p{{L}}\p{{M}}]+{_SHORTENED}|" + _rest(r"\p{N}{1,3}"))
    ),
    "afmoe": LlamaCppPattern(_steps(_RIGHT_TRIPLES, _AFMOE_ASIAN, _DEEPSEEK_WORDS)),
    "ufakzeka": LlamaCppPattern(_steps(rf"{PREFIX}\p{{L}}+|\p{{N}}{_WORD_ENDS}")),
    "laguna": LlamaCppPattern(_steps(r"[^\n]+|[\n]+", regexes.QWEN2)),
    "minicpm5": LlamaCppPattern(
        _steps(r"\p{N}{1,3}", rf"{CONTRACTION}|{PREFIX}\p{{L}}+|\p{{N}}+{_WORD_ENDS}"),
        ignore_merges=True,
    ),
    "spark2_5": LlamaCppPattern(
        _steps(
            r"\p{N}{1,3}",
            regexes.DEEPSEEK[1],
            _DEEPSEEK_WORDS.replace("[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+", "[\\p{P}\\p{S}]+|[\r\n]"),
            r"\p{N}",
        )
    ),
    "jais-2": LlamaCppPattern(
        _steps(
            rf"{CONTRACTION}|{PREFIX}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|"
            rf"\s*[\r\n]+|{_CASCADE}|\s{{1,2}}(?!\S)|\s{{1}}"
        )
    ),
}
"""`tokenizer.ggml.pre` -> what it means in llama.cpp, byte-level patterns only.

Second names of one pattern are left out, and "kimi-k2", "chameleon", "whitespace", "default"."""

KEEP_MARKS = (
    *("qwen35", "granite-embed-multi-97m", "youtu", "deepseek-v3"),
    *("tiny_aya", "afmoe", "spark2_5"),
)
"""The word patterns among them that keep marks in words."""

HASHED_TEXT = (
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n🚀 (normal) 😶\u200d🌫️ (multiple emojis "
    "concatenated) ✅ 🦙🦙 3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3 "
    "កាន់តែពិសេសអាច😁 ?我想在apple工作1314151天～ ------======= нещо на Български ''''''```````"
    '""""......!!!!!!?????? '
    "I've been 'told he's there, 'RE you sure? 'M not sure I'll make it, 'D you like some tea? "
    "We'Ve a'lL"
)
"""llama.cpp's converter knows a tokenizer by the hash of its ids of this text (`chktxt` in
conversion/base.py)."""


def as_patch(pattern: Pattern, name: str, chkhsh: str, *, ignore_merges: bool = False) -> str:
    """The lines that teach a pattern to llama.cpp and its converter, ready to be pasted.

    name: what the pre-tokenizer is to be called. chkhsh: the converter's hash. Says which steps
    llama.cpp's regexes cannot run: these need a function in its unicode.cpp.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "mine"
    constant = "LLAMA_VOCAB_PRE_TYPE_" + slug.replace("-", "_").upper()
    lines = [
        "conversion/base.py, in get_vocab_base_pre, unless this hash stands there already, as that "
        "of a tokenizer which an extension began with (then write the file with --pre alone):",
        f'        if chkhsh == "{chkhsh}":',
        f"            # ref: {name}",
        f'            res = "{slug}"',
        "src/llama-vocab.h, in enum llama_vocab_pre_type, with the next free number for N:",
        f"    {constant} = N,",
        "src/llama-vocab.cpp, in llm_tokenizer_bpe:",
        f"            case {constant}:",
        "                regex_exprs = {",
        *(f"                    {_cpp_string(split.regex)}," for split in pattern),
        "                };",
        "                break;",
        "src/llama-vocab.cpp, in llama_vocab::impl::load, before the last else:",
        "            } else if (",
        f'                tokenizer_pre == "{slug}") {{',
        f"                pre_type = {constant};",
        "                clean_spaces = false;",
        *(["                ignore_merges = true;"] if ignore_merges else []),
    ]
    for number, split in enumerate(pattern, 1):
        regex = split.regex.replace(CONTRACTION, _CONTRACTION)
        lacking = [what for form, what in _UNKNOWN.items() if re.search(form, regex)]
        if split.behavior != "Isolated" or split.invert:
            lacking.append(f"behavior {split.behavior}{', inverted' if split.invert else ''}")
        if lacking:
            lines.append(
                f"Regex {number} has what llama.cpp's regexes lack ({'; '.join(lacking)}): write "
                "it as a function in src/unicode.cpp (unicode_regex_split_custom)."
            )
    return "\n".join(lines)


def _cpp_string(regex: str) -> str:
    text = regex.replace(CONTRACTION, _CONTRACTION).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r", "\\r").replace("\n", "\\n") + '"'
