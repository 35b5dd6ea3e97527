"""How llama.cpp cuts text: the pre-tokenizers that `tokenizer.ggml.pre` may name, as it runs them.

Owns the table of names. The source is llama.cpp's code (llama-vocab.cpp and unicode.cpp, of
November 2026), not what the models that a name was made for do: before llama.cpp runs a regex, it
replaces each character beyond ASCII by its major class, so that "gpt-4o" and "tekken" know no
capitals there, and cut words at marks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from vocabshift.text import regexes
from vocabshift.text.patterns import Pattern, Split
from vocabshift.text.regexes import CONTRACTION, PREFIX

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


@dataclass(frozen=True, slots=True)
class LlamaCppPre:
    """What llama.cpp does where a file names this pre-tokenizer."""

    name: str  # the one that is written; others mean the same
    steps: tuple[str, ...]  # regexes, each cutting what the one before left
    ignore_merges: bool = False  # a whole pre-token in the vocabulary is one token

    @property
    def pattern(self) -> Pattern:
        """The steps as a pattern of ours."""
        return tuple(map(Split, self.steps))


_ENDS = regexes.NOT_LETTERS
_DIGITS_ALONE_ENDS = _ENDS.replace(r"\p{N}{1,3}", r"\p{N}")
_RIGHT_TRIPLES = rf"\P{{N}}*{regexes.DIGIT_TRIPLES}"
"""The first three digits of a run, or fewer, stay with the text before it (`…_custom_afmoe`)."""
_WORD_ENDS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASCADE = "|".join(rf"\s{{{2**power}}}(?!\S)" for power in range(9, 1, -1))


def _cased(letters: str, contraction: str) -> str:
    """Words of `letters`, whose capitals are those of ASCII alone."""
    small, capital = rf"[{letters}&&[^A-Z]]", rf"[{letters}&&[^a-z]]"
    return rf"{PREFIX}{capital}*{small}+{contraction}|{PREFIX}{capital}+{small}*{contraction}"


def _marked(contraction: str) -> str:
    """Words of letters and marks; capitals are letters like others."""
    return rf"{PREFIX}[\p{{L}}\p{{M}}]+{contraction}"


def _without_spaces(steps: tuple[str, ...]) -> tuple[str, ...]:
    """The steps with no spaces beyond ASCII in their ranges: llama.cpp makes them tabs first."""
    return tuple(re.sub(r"(\[[^]\\]{8,})\]", r"\1&&[^\\s]]", step) for step in steps)


_DEEPSEEK_WORDS = regexes.DEEPSEEK[2]
_YOUTU = (
    "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c"
    "\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
)
_AFMOE_ASIAN = (
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf"
    "\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af"
    "\u1100-\u11ff]+"
)

LLAMA_CPP: tuple[LlamaCppPre, ...] = (
    LlamaCppPre("gpt-2", (regexes.GPT2,)),
    LlamaCppPre("llama-bpe", (regexes.CL100K,), ignore_merges=True),
    LlamaCppPre("dbrx", (regexes.CL100K,)),
    LlamaCppPre("qwen2", (regexes.QWEN2,)),
    LlamaCppPre("qwen35", (regexes.QWEN35,)),
    LlamaCppPre("smollm", (r"\p{N}", regexes.GPT2)),
    LlamaCppPre("gpt-4o", ("|".join((_cased(r"\p{L}", CONTRACTION + "?"), _ENDS)),)),
    LlamaCppPre("tekken", ("|".join((_cased(r"\p{L}", ""), _DIGITS_ALONE_ENDS)),), True),
    LlamaCppPre("deepseek-llm", _without_spaces(regexes.DEEPSEEK_LLM)),
    LlamaCppPre("deepseek-coder", _without_spaces(regexes.DEEPSEEK_CODER)),
    LlamaCppPre("deepseek-v3", regexes.DEEPSEEK),
    LlamaCppPre("falcon", regexes.FALCON),
    LlamaCppPre("superbpe", (r"\p{N}+", r"(?=([0-9]{3})+(?![0-9]))")),
    LlamaCppPre("bloom", regexes.BLOOM),
    LlamaCppPre("viking", (*regexes.BLOOM, r"\p{N}")),
    LlamaCppPre("seed-coder", regexes.SEED_CODER),
    LlamaCppPre("bailingmoe", regexes.BAILING),
    LlamaCppPre("tiny_aya", (_RIGHT_TRIPLES, "|".join((_marked(CONTRACTION + "?"), _ENDS)))),
    LlamaCppPre(
        "granite-embed-multi-97m",
        ("|".join((_cased(r"\p{L}\p{M}", CONTRACTION + "?"), _ENDS)),),
        ignore_merges=True,
    ),
    LlamaCppPre(
        "youtu",
        (_YOUTU, "|".join((_marked(CONTRACTION + "?"), _DIGITS_ALONE_ENDS))),
        ignore_merges=True,
    ),
    LlamaCppPre("afmoe", (_RIGHT_TRIPLES, _AFMOE_ASIAN, _DEEPSEEK_WORDS)),
    LlamaCppPre("ufakzeka", (rf"{PREFIX}\p{{L}}+|\p{{N}}{_WORD_ENDS}",)),
    LlamaCppPre("laguna", (r"[^\n]+|[\n]+", regexes.QWEN2)),
    LlamaCppPre(
        "exaone-moe",
        (
            rf"{CONTRACTION}|{PREFIX}(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}|"
            r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        ),
    ),
    LlamaCppPre(
        "minicpm5",
        (r"\p{N}{1,3}", rf"{CONTRACTION}|{PREFIX}\p{{L}}+|\p{{N}}+{_WORD_ENDS}"),
        ignore_merges=True,
    ),
    LlamaCppPre(
        "spark2_5",
        (
            r"\p{N}{1,3}",
            regexes.DEEPSEEK[1],
            _DEEPSEEK_WORDS.replace("[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+", "[\\p{P}\\p{S}]+|[\r\n]"),
            r"\p{N}",
        ),
    ),
    LlamaCppPre(
        "jais-2",
        (
            rf"{CONTRACTION}|{PREFIX}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|"
            rf"\s*[\r\n]+|{_CASCADE}|\s{{1,2}}(?!\S)|\s{{1}}",
        ),
    ),
)
"""Each way to cut, by the oldest of its names, the most usual first. Left out are "kimi-k2",
"chameleon", "whitespace" and "default", and those of tokenizers that are not byte-level."""

BY_NAME: Mapping[str, LlamaCppPre] = {pre.name: pre for pre in LLAMA_CPP}

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
        "conversion/base.py, in get_vocab_base_pre:",
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
                f"Step {number} has what llama.cpp's regexes lack ({'; '.join(lacking)}): write it "
                "as a function in src/unicode.cpp (unicode_regex_split_custom)."
            )
    return "\n".join(lines)


def _cpp_string(regex: str) -> str:
    text = regex.replace(CONTRACTION, _CONTRACTION).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r", "\\r").replace("\n", "\\n") + '"'
