"""The vocabulary of a GGUF file as a Tokenizer.

Owns what the `tokenizer.ggml.*` keys mean (github.com/ggml-org/ggml/blob/master/docs/gguf.md);
`gguf_header` reads them. Tensors are never touched.

Byte-level BPE ("gpt2") only *names* its pre-tokenizer in `tokenizer.ggml.pre`. The names are those
of llama.cpp (llama-vocab.cpp). Normalizer and merge skipping are those of the vendor's own
tokenizer.json where it is known, else llama.cpp's. "llama" and "gemma4" are SentencePiece-like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from vocabshift.errors import InvalidTokenizerError
from vocabshift.text import patterns, regexes
from vocabshift.text.llama_cpp import LLAMA_CPP
from vocabshift.text.splits import Split
from vocabshift.tokenizer import components
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.gguf_header import read_metadata
from vocabshift.tokenizer.formats.sentencepiece import Piece, PieceType, Settings, from_pieces
from vocabshift.tokenizer.model import BpeModel, Merge
from vocabshift.tokenizer.tokenizer import Tokenizer

_ROLES = {"unk": "unknown", "pad": "padding", "sep": "seperator"}  # GGUF's own spelling
ROLE_KEYS = {
    role: f"tokenizer.ggml.{_ROLES.get(role, role)}_token_id"
    for role in ("bos", "eos", "unk", "pad", "sep", "cls", "mask")
}
"""Role of a token -> the key that holds its id."""
_CUT_OUT = {PieceType.UNKNOWN, PieceType.CONTROL, PieceType.USER_DEFINED}


class _Pre(NamedTuple):
    """The meaning of a name in `tokenizer.ggml.pre`."""

    pattern: str | tuple[str, ...]  # a name, or the regexes of its steps
    ignore_merges: bool = False
    normalizer: str | None = None
    add_bos: bool = False  # where the file does not say


_DIGITS = (r"\p{N}", regexes.GPT2)  # each digit alone, before the pattern
_PRE = {
    name: pre
    for names, pre in {
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2": _Pre(
            "cl100k", ignore_merges=True, add_bos=True
        ),
        "dbrx smaug-bpe chatglm-bpe": _Pre("cl100k"),
        "glm4 glm5": _Pre("cl100k", ignore_merges=True),
        "gpt-2 phi-2 mpt olmo jais roberta-bpe gigachat a.x-4.0 mellum trillion exaone4": _Pre(
            "gpt2"
        ),
        "starcoder refact smollm codeshell exaone minerva-7b mellum2": _Pre(_DIGITS),
        "command-r": _Pre(_DIGITS, normalizer="NFC"),
        "qwen2 deepseek-r1-qwen": _Pre("qwen2", normalizer="NFC"),
        "stablelm2 megrez kormo hunyuan solar-open grok-2": _Pre("qwen2"),
        "qwen35": _Pre("qwen35", normalizer="NFC"),
        "gpt-4o kanana2 minimax-m2": _Pre("o200k"),
        "llama4": _Pre("o200k", ignore_merges=True),
        "tekken": _Pre("tekken", ignore_merges=True, add_bos=True),
        "deepseek-v3 hunyuan-dense joyai-llm": _Pre("deepseek"),
        "deepseek-llm": _Pre(regexes.DEEPSEEK_LLM),
        "deepseek-coder": _Pre(regexes.DEEPSEEK_CODER),
        "falcon": _Pre(regexes.FALCON),
        "superbpe": _Pre(regexes.SUPERBPE),
        "bloom gpt3-finnish poro-chat": _Pre(regexes.BLOOM),
        "viking": _Pre((*regexes.BLOOM, r"\p{N}")),
        "seed-coder": _Pre(regexes.SEED_CODER),
        "bailingmoe bailingmoe2 llada-moe": _Pre(regexes.BAILING),
        "tiny_aya cohere2moe": _Pre(regexes.TINY_AYA),
    }.items()
    for name in names.split()
}


def from_gguf(data: bytes, *, pattern: str | None = None, name: str = "tokenizer") -> Tokenizer:
    """The Tokenizer of a GGUF file; `pattern` (name or regex) is needed for unknown names."""
    keys = read_metadata(data, wanted=lambda key: key.startswith("tokenizer."))
    return from_metadata(keys, pattern=pattern, name=name)


def from_metadata(
    keys: Mapping[str, Any], *, pattern: str | None = None, name: str = "tokenizer"
) -> Tokenizer:
    """The Tokenizer of the metadata of a GGUF file; `pattern` as for `from_gguf`."""
    kind = keys.get("tokenizer.ggml.model")
    pieces = _pieces(keys)
    if kind == "gpt2":
        return _byte_level(keys, pieces, pattern, name)
    if kind in ("llama", "gemma4"):
        if pattern is not None:
            raise InvalidTokenizerError(
                "--pattern does not fit: this GGUF vocabulary is SentencePiece's and has none"
            )
        return _sentencepiece(keys, pieces, name)
    raise InvalidTokenizerError(
        f"the GGUF vocabulary is of kind {kind!r}; gpt2, llama and gemma4 (BPE) are read"
    )


def run_by_llama_cpp(tokenizer: Tokenizer) -> dict[str, Tokenizer]:
    """The tokenizer as llama.cpp runs it under each name of `text.llama_cpp`.

    Itself where nothing changes. The others share two models, with and without merge skipping, for
    a model is compiled once.
    """
    own = patterns.from_spec(tokenizer.pre_tokenizer), tokenizer.model.ignore_merges
    skips = tokenizer.model.ignore_merges
    models = {skips: tokenizer.model, not skips: tokenizer.model.unchecked(ignore_merges=not skips)}
    return {
        name: tokenizer
        if own == run
        else replace(
            tokenizer,
            model=models[run.ignore_merges],
            pre_tokenizer=patterns.to_spec(run.pattern),
        )
        for name, run in LLAMA_CPP.items()
    }


def _byte_level(
    keys: Mapping[str, Any], pieces: list[Piece], pattern: str | None, name: str
) -> Tokenizer:
    pre_name = keys.get("tokenizer.ggml.pre")
    pre = _pre(pre_name) if isinstance(pre_name, str) else None
    if pre is None and pattern is None:
        raise InvalidTokenizerError(
            f"the GGUF file names the pre-tokenizer {pre_name!r}, which is not known here; name "
            "its pattern with --pattern (pattern=), for example cl100k or gpt2"
        )
    pre = pre or _Pre("")
    try:
        steps = _steps(pattern or pre.pattern)
    except ValueError as error:
        raise InvalidTokenizerError(f"--pattern: {error}") from None
    merges = _merges(keys)
    if merges is None:
        raise InvalidTokenizerError("the GGUF vocabulary is BPE and has no merges")
    vocab = _vocab(pieces)
    roles = _roles(keys, pieces)
    bos = roles.get("bos") if keys.get("tokenizer.ggml.add_bos_token", pre.add_bos) else None
    eos = roles.get("eos") if keys.get("tokenizer.ggml.add_eos_token") else None
    return Tokenizer(
        BpeModel(vocab, tuple(merges), ignore_merges=pre.ignore_merges),
        normalizer={"type": pre.normalizer} if pre.normalizer else None,
        pre_tokenizer=patterns.to_spec(steps),
        post_processor=components.byte_level_processor(
            (bos, vocab[bos]) if bos else None, (eos, vocab[eos]) if eos else None
        ),
        decoder=components.BYTE_LEVEL_DECODER,
        added_tokens=tuple(
            AddedToken(piece.text, token_id, special=piece.type != PieceType.USER_DEFINED)
            for token_id, piece in enumerate(pieces)
            if piece.type in _CUT_OUT
        ),
        config={f"{role}_token": text for role, text in roles.items()},
        chat_template=_template(keys),
        name=name,
    )


def _pre(name: str) -> _Pre | None:
    """What the name means; where no vendor's tokenizer is known, what llama.cpp does."""
    as_run = LLAMA_CPP.get(name)
    steps = () if as_run is None else tuple(step.regex for step in as_run.pattern)
    own = None if as_run is None else _Pre(steps, as_run.ignore_merges)
    return _PRE.get(name, own)


def _steps(pattern: str | tuple[str, ...]) -> patterns.Pattern:
    if isinstance(pattern, tuple):
        return tuple(map(Split, pattern))
    return patterns.get_pattern(pattern)


def _sentencepiece(keys: Mapping[str, Any], pieces: list[Piece], name: str) -> Tokenizer:
    """Scores become merges unless the file has them (gemma4); nothing is normalized but " "."""
    ids = {role: keys[key] for role, key in ROLE_KEYS.items() if key in keys}
    _roles(keys, pieces)  # checks them
    settings = Settings(
        roles=ids,
        byte_fallback=any(piece.type == PieceType.BYTE for piece in pieces),
        add_dummy_prefix=bool(keys.get("tokenizer.ggml.add_space_prefix", True)),
        remove_extra_whitespaces=bool(keys.get("tokenizer.ggml.remove_extra_whitespaces", False)),
        add_bos=bool(keys.get("tokenizer.ggml.add_bos_token", True)),
        add_eos=bool(keys.get("tokenizer.ggml.add_eos_token", False)),
    )
    merges = _merges(keys)
    return from_pieces(pieces, settings, merges=merges, chat_template=_template(keys), name=name)


def _pieces(keys: Mapping[str, Any]) -> list[Piece]:
    tokens = keys.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not isinstance(tokens[0], str):
        raise InvalidTokenizerError("the GGUF file holds no vocabulary (tokenizer.ggml.tokens)")
    types = keys.get("tokenizer.ggml.token_type") or [int(PieceType.NORMAL)] * len(tokens)
    scores = keys.get("tokenizer.ggml.scores") or [0.0] * len(tokens)
    if not isinstance(types, list) or not isinstance(scores, list):
        raise InvalidTokenizerError("the token types or scores of the GGUF file are no lists")
    if not len(tokens) == len(types) == len(scores):
        raise InvalidTokenizerError(
            f"the GGUF file holds {len(tokens)} tokens, {len(types)} types, {len(scores)} scores"
        )
    pieces = [Piece(*entry) for entry in zip(tokens, scores, types, strict=True)]
    named = {keys.get(key) for key in ROLE_KEYS.values()}
    while len(pieces) - 1 not in named and _is_filler(pieces[-1], len(pieces) - 1):
        pieces.pop()
    return pieces


def _is_filler(piece: Piece, token_id: int) -> bool:
    """Whether a converter put the token there, because the model has more rows than tokens."""
    return token_id > 0 and piece.type == PieceType.UNUSED and piece.text == f"[PAD{token_id}]"


def _vocab(pieces: list[Piece]) -> dict[str, int]:
    vocab = {piece.text: token_id for token_id, piece in enumerate(pieces)}
    if len(vocab) != len(pieces):
        raise InvalidTokenizerError(
            f"{len(pieces) - len(vocab)} of the {len(pieces)} GGUF tokens are repeated"
        )
    return vocab


def _merges(keys: Mapping[str, Any]) -> list[Merge] | None:
    lines = keys.get("tokenizer.ggml.merges")
    if lines is None:
        return None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise InvalidTokenizerError("the merges of the GGUF file are no strings")
    merges = []
    for rank, line in enumerate(lines):
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise InvalidTokenizerError(f"merge {rank} of the GGUF file is {line!r}")
        merges.append((left, right))
    return merges


def _roles(keys: Mapping[str, Any], pieces: list[Piece]) -> dict[str, str]:
    roles = {}
    for role, key in ROLE_KEYS.items():
        token_id = keys.get(key)
        if token_id is None:
            continue
        if type(token_id) is not int or not 0 <= token_id < len(pieces):
            raise InvalidTokenizerError(f"{key} of the GGUF file is {token_id!r}, no token's id")
        roles[role] = pieces[token_id].text
    return roles


def _template(keys: Mapping[str, Any]) -> str | None:
    template = keys.get("tokenizer.chat_template")
    return template if isinstance(template, str) else None
