"""Unusual tokens of a vocabulary, and how much of it the text of each language uses.

Owns the tests on a token's bytes (part of a character, sentence end inside, duplicate, shadowed by
an added token); merge residue, by counts of text; the use by language, in which each document
counts once; and the tokens that no text can have trained: the reference tokens that we add before
a training (`with_unused`), bytes that UTF-8 never has, and tokens that vendors call unused or
reserved.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.text.corpus import Corpus
from vocabshift.text.languages import UNLABELLED
from vocabshift.text.writing import SentencePolicy
from vocabshift.tokenizer.added_tokens import RESERVED, AddedToken, use_of
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, tokens_by_id
from vocabshift.tokenizer.corpus_reader import added_splitter
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.missing_bytes import NEVER_IN_UTF8
from vocabshift.tokenizer.splits import NONE, split_tokens
from vocabshift.tokenizer.token_bytes import is_byte_level, is_superword, token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer

_CLOSING = r"[\"'”’»›)\]}）」』】]"


def is_partial(data: bytes) -> bool:
    """Whether the bytes are not whole UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def _is_several(data: bytes) -> bool:
    """Whether the bytes are two characters or more, all of them whole."""
    return not is_partial(data) and len(data.decode()) > 1


USED_UP = 10
"""Merge residue goes into longer tokens at least so many times as often as it stays itself."""

SELDOM = 0.1
"""And it stays at most so many times as often as a token of this vocabulary does on average."""


def merge_residue(tokenizer: Tokenizer, counts: NDArray[np.int64]) -> tuple[str, ...]:
    """Tokens that merges use up: text makes them on the way to longer ones, and hardly keeps any.

    `counts`: (rows,) of final tokens. Residue is held by the longer tokens of the text at least
    `USED_UP` times, and that much more often than the text has it alone, which is `SELDOM`. Bytes,
    parts of characters and single characters are none: they spell what has no token. Most used
    up first. Source: the intermediate merge residues of LiteToken; the thresholds are ours.
    """
    splits = split_tokens(tokenizer)
    used_up = splits.made_counts(counts) - counts
    seldom = SELDOM * counts.sum() / tokenizer.vocab_size
    is_residue = (counts <= seldom) & (used_up >= USED_UP * np.maximum(counts, 1))
    found = np.flatnonzero(is_residue & (splits.left != NONE))
    token_of, data = tokens_by_id(tokenizer), token_bytes(tokenizer)
    by_use = found[np.argsort(-used_up[found], kind="stable")].tolist()
    return tuple(token_of[i] for i in by_use if _is_several(data[i]))


def terminal_spanning(tokens: Mapping[str, bytes]) -> tuple[str, ...]:
    """Tokens with a terminal, then closing marks and whitespace, then a further character.

    An ASCII period is a terminal only where whitespace follows it (decimals, URLs, code).
    """
    terminals = SentencePolicy().terminals
    spanning = re.compile(
        rf"(?:[{terminals}]{_CLOSING}*\s*|\.{_CLOSING}*\s+)(?!{_CLOSING})[^\s{terminals}.]"
    )
    # Subtle: a token may end inside a character. Where that can only be one more terminal of the
    # same run, nothing is spanned.
    begun = {t.encode()[:length] for t in terminals for length in range(1, len(t.encode()))}

    def text_of(data: bytes) -> str:
        whole = data.decode(errors="ignore").encode()
        return data.decode(errors="replace") if data[len(whole) :] not in begun else whole.decode()

    return tuple(token for token, data in tokens.items() if spanning.search(text_of(data)))


def duplicates(tokenizer: AnyTokenizer) -> tuple[str, ...]:
    """Tokens that have the same bytes as another, by id; added tokens that are not special too.

    Text can only yield one of them. Byte tokens are left out: "<0x41>" and "A" are meant to be the
    same.
    """
    byte_pieces = set(tokenizer.byte_pieces())
    names = tokens_by_id(tokenizer)
    spelled = {
        token_id: data
        for token_id, data in sorted(tokenizer.token_bytes.items())
        if names[token_id] not in byte_pieces
    }
    times = Counter(spelled.values())
    return tuple(names[token_id] for token_id, data in spelled.items() if times[data] > 1)


def shadowed_by_added(tokenizer: AnyTokenizer, tokens: Mapping[str, bytes]) -> tuple[str, ...]:
    """Tokens that contain an added token's text: it is matched first, so no text yields them.

    Special tokens count: their strings are matched in text unless it is encoded with
    `parse_special=False`. Added tokens that match only as single words shadow nothing else.
    """
    added = [token for token in tokenizer.added_tokens if not token.single_word]
    if not added:
        return ()
    splitter = added_splitter(added)

    def is_cut(data: bytes) -> bool:
        parts = splitter.split_added(data.decode(), True)
        return any(token_id is not None for _, token_id in parts)

    return tuple(token for token, data in tokens.items() if not is_partial(data) and is_cut(data))


@dataclass(frozen=True, slots=True)
class LanguageUse:
    """What the text of one language uses; special tokens in the text are counted."""

    language: str | None  # label of the corpus
    n_bytes: int  # of UTF-8
    tokens: int
    distinct_tokens: int
    own_tokens: int  # of these, tokens that no other language uses
    superword_share: float  # of the tokens of the text, those with text on both sides of a space


@dataclass(frozen=True, slots=True)
class VocabularyUse:
    """Use by language, in the order of the corpus."""

    vocab_size: int
    unused: int  # tokens of the model that do not occur in the text at all
    languages: tuple[LanguageUse, ...]

    @property
    def language_bytes(self) -> dict[str | None, int]:
        """Bytes of text by label, as `vocabulary_report` takes them."""
        return {row.language: row.n_bytes for row in self.languages}

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "languages": [asdict(row) for row in self.languages]}


def vocabulary_use(tokenizer: Any, corpus: Corpus, *, threads: int = 1) -> VocabularyUse:
    """Encode all of `corpus` with a tokenizer (or what `check` takes) and count; one pass.

    The result does not depend on `threads`.
    """
    encoder = Encoder(tokenizer)
    value = encoder.tokenizer
    counts: dict[str | None, NDArray[np.int64]] = {}
    n_bytes: dict[str | None, int] = {}
    for documents in corpus.batches():
        label = documents.language
        ids, _ = encoder.encode_batch(list(documents.texts()), threads=threads)
        found = np.bincount(ids, minlength=value.row_count)
        counts[label] = counts[label] + found if label in counts else found
        n_bytes[label] = n_bytes.get(label, 0) + documents.n_bytes

    superwords = [i for i, data in value.token_bytes.items() if is_superword(data)]
    users = np.sum([of_language > 0 for of_language in counts.values()], axis=0)
    rows = [
        LanguageUse(
            label,
            n_bytes[label],
            int(of_language.sum()),
            int(np.count_nonzero(of_language)),
            int(np.count_nonzero((of_language > 0) & (users == 1))),
            float(of_language[superwords].sum() / max(int(of_language.sum()), 1)),
        )
        for label, of_language in counts.items()
    ]
    ids_of_model = np.fromiter(value.model.vocab.values(), np.int64, value.vocab_size)
    return VocabularyUse(
        value.vocab_size, int(np.count_nonzero(users[ids_of_model] == 0)), tuple(rows)
    )


def bytes_per_token(tokenizer: Any, corpus: Corpus, *, threads: int = 1) -> dict[str, float]:
    """Bytes of raw text for each token, by label of the corpus; one pass."""
    encoder = Encoder(tokenizer)
    n_bytes: dict[str, int] = {}
    n_tokens: dict[str, int] = {}
    for documents in corpus.batches():
        ids, _ = encoder.encode_documents(
            documents.data, documents.starts, documents.ends, threads=threads
        )
        label = documents.language or UNLABELLED
        n_bytes[label] = n_bytes.get(label, 0) + documents.n_bytes
        n_tokens[label] = n_tokens.get(label, 0) + len(ids)
    return {label: round(n / max(n_tokens[label], 1), 4) for label, n in n_bytes.items()}


MOST = 10_000
"""Reference tokens that may be asked for; ten are enough for a mean, a hundred for a threshold."""

# Subtle: not a name that `use_of` takes for a vendor's reserved token: a transfer would copy
# that token's row.
_OURS = "<|vocabshift_unused_{}|>"
_OURS_AGAIN = re.compile(r"<\|vocabshift_unused_\d+\|>")
_VENDORS = re.compile(r"<\|?\w*(?:unused|reserved)\w*\|?>|\[unused\d+\]", re.IGNORECASE)


def unused_names(n: int, taken: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Names of `n` reference tokens that are not `taken`; ValueError for an impossible number."""
    if not 0 <= n <= MOST:
        raise ValueError(f"{n} unused tokens are asked for; give 0 to {MOST:,}")
    names: list[str] = []
    number = 0
    while len(names) < n:
        if (name := _OURS.format(number)) not in taken:
            names.append(name)
        number += 1
    return tuple(names)


def with_unused(tokenizer: Tokenizer, n: int) -> Tokenizer:
    """The tokenizer with `n` more special tokens that no text has; their ids come last."""
    taken = frozenset(token.content for token in tokenizer.added_tokens)
    first = tokenizer.row_count
    added = tuple(
        AddedToken(name, first + place) for place, name in enumerate(unused_names(n, taken))
    )
    return replace(tokenizer, added_tokens=tokenizer.added_tokens + added)


def our_unused(tokenizer: Tokenizer) -> list[int]:
    """Ids of the reference tokens that `with_unused` (`--reserve-dummies`) added."""
    return sorted(t.id for t in tokenizer.added_tokens if _OURS_AGAIN.fullmatch(t.content))


def never_in_text(tokenizer: Tokenizer) -> list[int]:
    """Ids of tokens that are one byte that UTF-8 never has."""
    if is_byte_level(tokenizer):
        spelled = token_bytes(tokenizer)
        return sorted(
            i
            for i, data in spelled.items()
            if len(data) == 1 and data[0] >= 0xC0 and data[0] in NEVER_IN_UTF8
        )
    vocab = tokenizer.model.vocab
    names = (f"<0x{byte:02X}>" for byte in sorted(NEVER_IN_UTF8))
    return sorted(vocab[name] for name in names if name in vocab)


def called_unused(tokenizer: Tokenizer) -> list[int]:
    """Ids of tokens whose name says that they are unused or reserved, ours left out."""
    named = dict(tokenizer.model.vocab)
    named |= {token.content: token.id for token in tokenizer.added_tokens}
    return sorted(
        i
        for token, i in named.items()
        if not _OURS_AGAIN.fullmatch(token)
        and (_VENDORS.fullmatch(token) or use_of(token) == RESERVED)
    )
