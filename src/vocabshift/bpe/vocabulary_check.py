"""What stands out in a vocabulary: parts of characters, superwords, sentence ends inside, twins,
and what added tokens put out of reach.

Owns what each of these is, told from a token's bytes. Knows nothing of merges or of real text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from vocabshift.bpe.plain_tokenizer import PlainTokenizer
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.bpe.tokenizer_reader import added_splitter
from vocabshift.text.sentences import SentencePolicy

_CLOSING = r"[\"'”’»›)\]}）」』】]"


def is_partial(data: bytes) -> bool:
    """Whether the bytes are not whole UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def is_superword(data: bytes) -> bool:
    """Whether there is text on both sides of a space."""
    return b" " in data.strip()


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


def duplicates(
    tokenizer: Tokenizer | PlainTokenizer,
    names: Mapping[int, str],
    table: Mapping[int, bytes],
    byte_pieces: set[str],
) -> tuple[str, ...]:
    """Tokens that have the same bytes as another, by id; added tokens that are not special too.

    Text can only yield one of them. `names` and `table` are the model's tokens and all bytes by id;
    `byte_pieces` are left out: "<0x41>" and "A" are meant to be the same.
    """
    names = {**names, **{token.id: token.content for token in tokenizer.added_tokens}}
    spelled = {
        token_id: data
        for token_id, data in sorted(table.items())
        if names[token_id] not in byte_pieces
    }
    times = Counter(spelled.values())
    return tuple(names[token_id] for token_id, data in spelled.items() if times[data] > 1)


def shadowed_by_added(
    tokenizer: Tokenizer | PlainTokenizer, tokens: Mapping[str, bytes]
) -> tuple[str, ...]:
    """Tokens in whose text an added token stands: it is cut out first, and no text yields them.

    Special tokens count: their strings are cut out of text unless it is encoded with
    `parse_special=False`. Those that only match as single words leave other places to the model.
    """
    added = [token for token in tokenizer.added_tokens if not token.single_word]
    if not added:
        return ()
    splitter = added_splitter(replace(tokenizer, added_tokens=tuple(added)))

    def is_cut(data: bytes) -> bool:
        parts = splitter.split_added(data.decode(), True)
        return any(token_id is not None for _, token_id in parts)

    return tuple(token for token, data in tokens.items() if not is_partial(data) and is_cut(data))
