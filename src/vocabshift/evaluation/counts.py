"""Per-line counts: text is tokenized once for each tokenizer, metrics are functions of this.

Owns what a line is (a document cut at its newlines, without "\\n" or "\\r\\n"; blank ones are
skipped) and what is counted of it. BOS and EOS are never added. Corpus weights play no part: each
line counts once. Knows nothing of ratios, names or reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vocabshift.bpe import byte_level
from vocabshift.errors import CorpusError

if TYPE_CHECKING:
    from vocabshift.bpe.encoder import Encoder
    from vocabshift.bpe.tokenizer import Tokenizer

Ints = npt.NDArray[np.int64]

ALL = "all"
"""Language of text that has no label."""

_BATCH_CHARACTERS = 1 << 20  # lines are tokenized in batches of about this size: constant memory


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Counts of one tokenizer on the lines of one language; each array is (n_lines,)."""

    n_tokens: Ints
    n_single_character_tokens: Ints  # tokens that stand for exactly one Unicode character
    n_bytes: Ints  # of UTF-8
    n_characters: Ints  # code points
    n_words: Ints  # whitespace-separated, at least 1

    @property
    def n_lines(self) -> int:
        """Lines that were counted."""
        return len(self.n_tokens)


def encode_lines(
    tokenizer: Tokenizer | Encoder, lines: Sequence[str], threads: int = 1
) -> tuple[npt.NDArray[np.int32], Ints]:
    """Token ids of all lines in one array, and (n_lines + 1,) offsets into it; no BOS or EOS.

    The one place of this workshop that chooses the engine. A Tokenizer is compiled in each call:
    to encode many batches, give an Encoder.
    """
    from vocabshift.bpe.encoder import Encoder

    encoder = tokenizer if isinstance(tokenizer, Encoder) else Encoder(tokenizer)
    return encoder.encode_batch(lines, threads=threads)


def count_texts(
    tokenizers: Sequence[Tokenizer], texts: Any, *, threads: int = 1
) -> dict[str, list[LineCounts]]:
    """Counts by language, in order of first appearance: one entry for each tokenizer.

    `texts` is a `Corpus`, {language: iterable of str}, or a list of str; it is read once. Raises
    CorpusError for a language without a line of text, TypeError for anything else.
    """
    from vocabshift.bpe.encoder import Encoder

    engines = [(Encoder(tokenizer), single_character_tokens(tokenizer)) for tokenizer in tokenizers]
    parts: dict[str, list[list[LineCounts]]] = {}
    for language, lines in _batches(texts):
        try:
            text = _text_counts(lines)
        except UnicodeEncodeError as error:
            raise CorpusError(
                f"a line of {language} holds half a surrogate pair, which is not text: {error}"
            ) from None
        parts.setdefault(language, []).append(
            [
                LineCounts(*_token_counts(encoder, single, lines, threads), *text)
                for encoder, single in engines
            ]
        )
    if not parts:
        raise CorpusError("the texts are empty: at least one line that is not blank is needed")
    return {
        language: [_concatenate(of_tokenizer) for of_tokenizer in zip(*batches, strict=True)]
        for language, batches in parts.items()
    }


def single_character_tokens(tokenizer: Tokenizer) -> npt.NDArray[np.bool_]:
    """Whether each id, (row_count,), stands for exactly one whole Unicode character.

    "▁" and "Ġ" count as the space that they are; a piece of a character is none.
    """
    flags = np.zeros(tokenizer.row_count, dtype=np.bool_)
    spelled_in_bytes = _is_spelled_in_bytes(tokenizer)
    for token, token_id in tokenizer.model.vocab.items():
        if spelled_in_bytes and byte_level.is_image(token):
            flags[token_id] = _is_one_character(byte_level.to_bytes(token))
        elif token.startswith("<0x") and token.endswith(">") and len(token) == len("<0x00>"):
            flags[token_id] = int(token[3:5], 16) < 0x80
        else:
            flags[token_id] = len(token) == 1
    for added in tokenizer.added_tokens:
        flags[added.id] = len(added.content) == 1
    return flags


def _is_spelled_in_bytes(tokenizer: Tokenizer) -> bool:
    """Whether tokens are byte images, also where the vocabulary lacks some of the 256 bytes."""
    decoder = tokenizer.decoder or {}
    steps = decoder.get("decoders", [decoder])
    return tokenizer.model.is_byte_level or any(step.get("type") == "ByteLevel" for step in steps)


def _is_one_character(data: bytes) -> bool:
    if len(data) > 4:
        return False
    try:
        return len(data.decode("utf-8")) == 1
    except UnicodeDecodeError:
        return False


def _text_counts(lines: Sequence[str]) -> tuple[Ints, Ints, Ints]:
    """Bytes, characters and words of each line, each (n_lines,)."""
    n_bytes = np.array([len(line.encode()) for line in lines], dtype=np.int64)
    n_characters = np.array([len(line) for line in lines], dtype=np.int64)
    n_words = np.array([len(line.split()) for line in lines], dtype=np.int64)
    return n_bytes, n_characters, n_words


def _token_counts(
    encoder: Encoder, single: npt.NDArray[np.bool_], lines: Sequence[str], threads: int
) -> tuple[Ints, Ints]:
    """Tokens and single-character tokens of each line, each (n_lines,)."""
    ids, offsets = encode_lines(encoder, lines, threads)
    running = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(single[ids], out=running[1:])
    return np.diff(offsets).astype(np.int64), np.diff(running[offsets])


def _concatenate(batches: Sequence[LineCounts]) -> LineCounts:
    names = LineCounts.__slots__
    return LineCounts(
        *(np.concatenate([getattr(part, name) for part in batches]) for name in names)
    )


def _batches(texts: Any) -> Iterator[tuple[str, list[str]]]:
    """Lines in batches of one language each; what was read is not kept."""
    waiting: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    seen: dict[str, bool] = {}
    for language, text in _labelled(texts):
        if text is None:
            seen.setdefault(language, False)
            continue
        for line in _lines(language, text):
            seen[language] = True
            waiting.setdefault(language, []).append(line)
            sizes[language] = sizes.get(language, 0) + len(line)
            if sizes[language] >= _BATCH_CHARACTERS:
                yield language, waiting.pop(language)
                sizes[language] = 0
    empty = [language for language, has_text in seen.items() if not has_text]
    if empty:
        raise CorpusError(f"no line of text for {', '.join(empty)}; leave it out or give it text")
    yield from waiting.items()


def _labelled(texts: Any) -> Iterator[tuple[str, str | None]]:
    """(language, text) pairs of the texts; a pair without text announces a language."""
    if isinstance(texts, list | tuple):
        texts = {None: texts}
    if isinstance(texts, Mapping):
        for label, of_language in texts.items():
            language = ALL if label is None else str(label)
            if isinstance(of_language, str | bytes) or not isinstance(of_language, Iterable):
                raise TypeError(
                    f"the texts of {language!r} are {type(of_language).__name__}; "
                    "give an iterable of str, such as a list of lines"
                )
            yield language, None
            for text in of_language:
                yield language, text
    elif hasattr(texts, "texts"):
        for label in texts.languages:
            yield (ALL if label is None else label), None
        for label, text in texts.texts():
            yield (ALL if label is None else label), text
    else:
        raise TypeError(
            f"texts is {type(texts).__name__}; give a Corpus or {{language: iterable of str}}"
        )


def _lines(language: str, text: Any) -> Iterator[str]:
    """Lines of a document that are not blank, without their ending."""
    if not isinstance(text, str):
        raise TypeError(f"a text of {language!r} is {type(text).__name__}; str is needed")
    for line in text.split("\n"):
        if line.strip():
            yield line.removesuffix("\r")
