"""A tokenizer as the vocabulary of a GGUF file: the `tokenizer.*` keys, checked by ids.

Owns which of llama.cpp's tokenizers stands for ours: each that may fit is built as llama.cpp runs
it, and its ids are compared with ours. `gguf` reads such keys, `text.llama_cpp` has the patterns.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from vocabshift.errors import InvalidTokenizerError, NoPreTokenizerError
from vocabshift.text import patterns
from vocabshift.text.held_out import sample_texts
from vocabshift.text.llama_cpp import HASHED_TEXT, LLAMA_CPP, as_patch
from vocabshift.text.splits import Split
from vocabshift.tokenizer import components
from vocabshift.tokenizer.any_tokenizer import own_probes
from vocabshift.tokenizer.formats.gguf import ROLE_KEYS, run_by_llama_cpp
from vocabshift.tokenizer.formats.sentencepiece import Piece, PieceType, Settings, from_pieces
from vocabshift.tokenizer.pretrained_folder import PROBES
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer

_PRE = {"llama": "default", "gemma4": "gemma4"}
_AT_A_TIME = 64  # texts
_MOST_OWN = 4000  # of the tokenizer's tokens that are tried
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class GgufVocabulary:
    """What a GGUF file says of a tokenizer, and how that was checked."""

    keys: Mapping[str, Any]
    pre: str  # value of tokenizer.ggml.pre
    chkhsh: str  # by which llama.cpp's converter would know it
    n_texts: int  # compared; 0 where `pre` was given
    warnings: tuple[str, ...]


def converter_hash(tokenizer: Tokenizer) -> str:
    """The `chkhsh` that llama.cpp's converter computes of a tokenizer: 64 hex digits."""
    ids = tokenizer.backend.encode(HASHED_TEXT).ids
    return hashlib.sha256(str(ids).encode()).hexdigest()


def to_vocabulary(
    tokenizer: Tokenizer,
    n_rows: int,
    *,
    roles: Mapping[str, int] | None = None,
    ends: Sequence[int] = (),
    pre: str | None = None,
    texts: Iterable[str] = (),
) -> GgufVocabulary:
    """The keys of a tokenizer of a model with `n_rows` rows of embeddings.

    roles: {"bos": id, "pad": id} of the model, where the tokenizer names none. ends: ids that end a
        text or a turn, beside the tokenizer's own. pre: write this name of a pre-tokenizer,
        whatever the ids. texts: more to compare ids on than samples and tokens.

    NoPreTokenizerError where no tokenizer of llama.cpp gives the same ids; InvalidTokenizerError
    for a tokenizer that llama.cpp has no kind for, or with more ids than rows.
    """
    if tokenizer.row_count > n_rows:
        raise InvalidTokenizerError(
            f"the tokenizer has {tokenizer.row_count} ids and the model only {n_rows} rows; "
            "transfer the model to this tokenizer first"
        )
    keys, warnings = _shared(tokenizer, n_rows, roles or {}, ends)
    kind = _byte_level if is_byte_level(tokenizer) else _sentencepiece
    probes = [] if pre and kind is _byte_level else _probes(tokenizer, texts)
    found, own_keys = kind(tokenizer, probes, pre, warnings)
    if "tokenizer.ggml.scores" in own_keys:
        own_keys["tokenizer.ggml.scores"] += [0.0] * (n_rows - tokenizer.row_count)
    keys = {"tokenizer.ggml.pre": found} | keys | own_keys
    hashed = converter_hash(tokenizer)
    return GgufVocabulary(keys, found, hashed, len(probes), tuple(warnings))


def _shared(
    tokenizer: Tokenizer, n_rows: int, of_model: Mapping[str, int], ends: Sequence[int]
) -> tuple[dict[str, Any], list[str]]:
    """Tokens, types, roles and template; what llama.cpp cannot do of it."""
    texts, types = _tokens(tokenizer, n_rows)
    ids = dict(zip(texts, range(n_rows), strict=True))
    keys: dict[str, Any] = {"tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": types}
    own = {role: tokenizer.config.get(f"{role}_token") for role in ROLE_KEYS}
    roles = {role: i for role, i in of_model.items() if i < tokenizer.row_count}
    roles |= {role: ids[text] for role, text in own.items() if text in ids}
    around = tokenizer.backend.encode("a").ids
    inside = tokenizer.backend.encode("a", add_special_tokens=False).ids
    place = next((i for i in range(len(around)) if around[i : i + len(inside)] == inside), 0)
    before, after = around[:place], around[place + len(inside) :]
    if before:
        roles["bos"] = before[0]
    named = [roles["eos"]] if "eos" in roles else []
    others = [i for i in (*after[:1], *ends) if 0 <= i < tokenizer.row_count]
    found = list(dict.fromkeys([*named, *others]))
    roles |= dict(zip(("eos", "eot", "eom"), found, strict=False))
    warnings = []
    if len(found) > 3:
        warnings.append(f"llama.cpp has three ends of a text; not written are the ids {found[3:]}")
    if len(before) > 1 or len(after) > 1 or (after and after[0] != roles["eos"]):
        warnings.append("more than BOS and EOS is put around texts; llama.cpp puts only these")
    if "eos" not in roles:
        warnings.append("no EOS token is named, and llama.cpp will take another: name it")
    for role, token_id in roles.items():
        keys[ROLE_KEYS.get(role, f"tokenizer.ggml.{role}_token_id")] = token_id
    keys["tokenizer.ggml.add_bos_token"] = bool(before)
    keys["tokenizer.ggml.add_eos_token"] = bool(after)
    if tokenizer.chat_template is not None:
        keys["tokenizer.chat_template"] = tokenizer.chat_template
    greedy = [t.content for t in tokenizer.added_tokens if t.lstrip or t.rstrip or t.single_word]
    if greedy:
        warnings.append(f"llama.cpp knows no lstrip, rstrip, single_word, as {greedy[0]!r} has")
    return keys, warnings


def _tokens(tokenizer: Tokenizer, n_rows: int) -> tuple[list[str], list[int]]:
    """Text and type of every row; one without a token is named [PADn], as llama.cpp does it."""
    texts = [f"[PAD{row}]" for row in range(n_rows)]
    types = [int(PieceType.UNUSED)] * n_rows
    is_piece = not is_byte_level(tokenizer)
    for text, token_id in tokenizer.vocab.items():
        is_byte = is_piece and tokenizer.model.byte_fallback and _BYTE.fullmatch(text)
        texts[token_id] = text
        types[token_id] = int(PieceType.BYTE if is_byte else PieceType.NORMAL)
    for token in tokenizer.added_tokens:
        kind = PieceType.CONTROL if token.special else PieceType.USER_DEFINED
        if is_piece and token.content == tokenizer.unk_token:
            kind = PieceType.UNKNOWN
        texts[token.id], types[token.id] = token.content, int(kind)
    if len(set(texts)) != n_rows:
        raise InvalidTokenizerError("a token has the name [PADn] of an id that has no token")
    return texts, types


def _probes(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """Texts to compare ids on: many scripts, its tokens, those that merges do not make, `texts`."""
    alone = [tokenizer.vocab[text] for text in tokenizer.unreachable()[:_MOST_OWN]]
    own = [tokenizer.token_bytes.get(token_id, b"").decode(errors="ignore") for token_id in alone]
    words = own_probes(tokenizer, n_tokens=_MOST_OWN)
    probes = [*PROBES, HASHED_TEXT, *sample_texts(), *words, *own, *texts]
    if _is_nfc(tokenizer):
        probes = [unicodedata.normalize("NFC", probe) for probe in probes]
    return [probe for probe in probes if probe]


def _is_nfc(tokenizer: Tokenizer) -> bool:
    return (tokenizer.normalizer or {}).get("type") == "NFC"


def _byte_level(
    tokenizer: Tokenizer, probes: Sequence[str], pre: str | None, warnings: list[str]
) -> tuple[str, dict[str, Any]]:
    if not tokenizer.model.merges:
        raise InvalidTokenizerError("the tokenizer has no merges, and a GGUF file needs some")
    keys = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.merges": [" ".join(merge) for merge in tokenizer.model.merges],
    }
    if _is_nfc(tokenizer):
        warnings.append("llama.cpp does not normalize: give it text in NFC")
    if pre is not None:
        warnings.append(f"no ids were compared: the pre-tokenizer {pre!r} was given")
        return pre, keys
    own = patterns.from_spec(tokenizer.pre_tokenizer)
    skips = tokenizer.model.ignore_merges
    runs = run_by_llama_cpp(replace(tokenizer, normalizer=None))
    ours = _ids(tokenizer, probes)
    nearest: tuple[int, str, str] | None = None  # texts with other ids, of what, the first of them
    for name in sorted(
        runs,
        key=lambda each: (LLAMA_CPP[each].pattern != own, LLAMA_CPP[each].ignore_merges != skips),
    ):
        different = _different(ours, runs[name], probes, at_most=nearest[0] if nearest else None)
        if not different:
            if LLAMA_CPP[name].pattern != own:
                warnings.append(
                    f"the pre-tokenizer is not written as llama.cpp's {name!r} is; ids are "
                    f"equal on {len(probes)} texts (compare yours with --text)"
                )
            return name, keys
        if nearest is None or len(different) < nearest[0]:
            nearest = len(different), name, different[0]
    assert nearest is not None
    raise _no_pre(tokenizer, own, nearest, len(probes))


def _ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[bytes]:
    """The ids of each text, as bytes: special tokens in it are only text."""
    ids, offsets = tokenizer.encode_batch(texts, parse_special=False)
    return [ids[start:end].tobytes() for start, end in pairwise(offsets.tolist())]


def _different(
    ours: Sequence[bytes], theirs: Tokenizer, probes: Sequence[str], *, at_most: int | None = None
) -> list[str]:
    """The texts that get other ids; the search ends where these are more than `at_most`."""
    found: list[str] = []
    for start in range(0, len(probes), _AT_A_TIME):
        own = ours[start : start + _AT_A_TIME]
        some = probes[start : start + _AT_A_TIME]
        others = _ids(theirs, some)
        found += [probe for probe, a, b in zip(some, own, others, strict=True) if a != b]
        if at_most is not None and len(found) > at_most:
            break
    return found


def _no_pre(
    tokenizer: Tokenizer, own: patterns.Pattern | None, nearest: tuple[int, str, str], n_texts: int
) -> NoPreTokenizerError:
    n_different, name, text = nearest
    hashed = converter_hash(tokenizer)
    message = (
        "no pre-tokenizer of llama.cpp gives this tokenizer's ids: the nearest, "
        f"{name!r}, gives others for {n_different} of {n_texts} texts, such as {text[:60]!r}. "
        f"Its hash is chkhsh {hashed}. Extend or train with a pattern that llama.cpp has, or teach "
        "llama.cpp this one, and write the file with --pre NAME"
    )
    skips = tokenizer.model.ignore_merges
    patch = "" if own is None else as_patch(own, tokenizer.name, hashed, ignore_merges=skips)
    return NoPreTokenizerError(message, patch)


def _sentencepiece(
    tokenizer: Tokenizer, probes: Sequence[str], pre: str | None, warnings: list[str]
) -> tuple[str, dict[str, Any]]:
    """By scores ("llama"), or by merges with lines cut apart ("gemma4")."""
    lacking = sum(f"<0x{byte:02X}>" not in tokenizer.vocab for byte in range(256))
    if lacking or not tokenizer.model.byte_fallback:
        raise InvalidTokenizerError(
            "llama.cpp needs a byte-level vocabulary, or SentencePiece's with byte fallback and "
            f"all 256 byte pieces, of which {lacking} are missing"
        )
    scores, ours = _scores(tokenizer), _ids(tokenizer, probes)
    fits: list[tuple[int, str, bool, list[str]]] = []
    for kind, has_prefix in (("llama", True), ("llama", False), ("gemma4", False)):
        if pre not in (None, _PRE[kind]):
            continue
        theirs = (
            _by_lines(tokenizer) if kind == "gemma4" else _by_scores(tokenizer, scores, has_prefix)
        )
        different = _different(ours, theirs, probes)
        fits.append((len(different), kind, has_prefix, different[:1]))
        if not different:
            break
    if not fits:
        raise InvalidTokenizerError(
            f"--pre is {pre!r}; of a SentencePiece vocabulary it is default or gemma4"
        )
    n_different, kind, has_prefix, first = min(fits)
    if n_different and pre is None:
        how = f"{kind}, {'a' if has_prefix else 'no'} space before texts"
        raise _no_pre(tokenizer, None, (n_different, how, first[0]), len(probes))
    if n_different:
        warnings.append(f"{n_different} of {len(probes)} texts get other ids, such as {first[0]!r}")
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": kind,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.add_space_prefix": has_prefix,
    }
    if kind == "gemma4":
        keys["tokenizer.ggml.merges"] = [" ".join(merge) for merge in tokenizer.model.merges]
        warnings.append("llama.cpp puts a BOS token before each text of this kind")
    return _PRE[kind], keys


def _scores(tokenizer: Tokenizer) -> list[float]:
    """llama.cpp joins the two neighbours whose token scores best: minus the rank of its merge."""
    found = [-float(len(tokenizer.model.merges))] * tokenizer.row_count
    for rank, (left, right) in enumerate(tokenizer.model.merges):
        token_id = tokenizer.vocab[left + right]
        found[token_id] = max(found[token_id], -float(rank))
    return found


def _by_scores(tokenizer: Tokenizer, scores: Sequence[float], has_prefix: bool) -> Tokenizer:
    texts, types = _tokens(tokenizer, tokenizer.row_count)
    pieces = [Piece(*entry) for entry in zip(texts, scores, types, strict=True)]
    unknown = {} if tokenizer.unk_token is None else {"unk": tokenizer.vocab[tokenizer.unk_token]}
    settings = Settings(unknown, True, has_prefix, remove_extra_whitespaces=False, add_bos=False)
    return from_pieces(pieces, settings)


def _by_lines(tokenizer: Tokenizer) -> Tokenizer:
    [lines, _] = patterns.to_spec((Split(r"[^\n]+|\n+"),))["pretokenizers"]
    spaces = components.space_to_metaspace(add_prefix=False)
    return replace(tokenizer, normalizer=spaces, pre_tokenizer=lines)
