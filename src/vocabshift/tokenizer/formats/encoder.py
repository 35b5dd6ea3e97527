"""Encoder: text -> ids and back, fast, with the ids that `tokenizers` gives.

Owns the public interface: single texts, batches, Arrow, templates, special tokens read as text.
`pipeline` runs the tokenizer's components. It is among the formats because it takes whatever `load`
can open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import regex_bound
from vocabshift.tokenizer.any_tokenizer import (
    Buffer,
    Ids,
    Offsets,
    decode_flat,
    join_batches,
    surround,
)
from vocabshift.tokenizer.formats.load import as_tokenizer, load_tokenizer
from vocabshift.tokenizer.pipeline import Engine, Pipeline, check_threads
from vocabshift.tokenizer.tokenizer import Tokenizer


class Encoder:
    """A tokenizer compiled for encoding.

    Thread-safe; one encoder serves one call at a time and uses `threads` within a batch.
    """

    def __init__(self, tokenizer: Any) -> None:
        """Compile `tokenizer`: a `Tokenizer`, a Hugging Face fast tokenizer, or a path."""
        self.tokenizer: Tokenizer = as_tokenizer(tokenizer)
        self._with_special = Pipeline(self.tokenizer, parse_special=True)
        self._without_special: Pipeline | None = None
        self._template: tuple[Ids, Ids] | None = None

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Encoder:
        """Load a tokenizer from a folder, file or Hub name and compile it."""
        return cls(load_tokenizer(source))

    def __reduce__(self) -> tuple[type[Encoder], tuple[Tokenizer]]:
        """For other processes, and for the cache of `datasets`: the tokenizer alone."""
        return type(self), (self.tokenizer,)

    @property
    def engine(self) -> Engine:
        """What runs: the core alone, the core after parts of `tokenizers`, or `tokenizers`."""
        return self._with_special.engine

    @property
    def compiled(self) -> _core.Encoder | None:
        """The model in the core; None where `tokenizers` runs everything."""
        return self._with_special.model

    def encode(
        self, text: str, *, add_special_tokens: bool = False, parse_special: bool = True
    ) -> Ids:
        """Ids of a text, shape (n_tokens,), int32.

        `add_special_tokens` puts the template's tokens (BOS, EOS) around it. Special-token
        strings in the text are recognised as `tokenizers` does; `parse_special=False` reads them
        as text.
        """
        pipeline = self._with_special if parse_special else self._pipeline(False)
        ids = pipeline.encode(text)
        if not add_special_tokens:
            return ids
        before, after = self._template_ids()
        return np.concatenate([before, ids, after])

    def encode_batch(
        self,
        texts: Iterable[str] | Any,
        *,
        threads: int = 1,
        add_special_tokens: bool = False,
        parse_special: bool = True,
    ) -> tuple[Ids, Offsets]:
        """Flat ids (int32) of many texts and offsets (n_texts + 1,), int64.

        Text i is ids[offsets[i]:offsets[i + 1]]. The result does not depend on `threads`.
        `texts`: str, or a pyarrow Array or ChunkedArray of strings, of whose bytes no str is made.
        Back to Arrow without a copy of the ids: `pa.LargeListArray.from_arrays(offsets, ids)`.
        """
        if isinstance(texts, str):
            raise TypeError("texts is a str; give a list of str, or call encode for one text")
        check_threads(threads)
        pipeline = self._pipeline(parse_special)
        if type(texts).__module__.partition(".")[0] == "pyarrow":
            from vocabshift.text.records import string_blocks

            blocks = string_blocks(texts)
            encoded = join_batches([pipeline.encode_documents(*b, threads) for b in blocks])
        else:
            listed = texts if isinstance(texts, list) else list(texts)
            encoded = pipeline.encode_batch(listed, threads)
        return surround(*encoded, *self._template_ids()) if add_special_tokens else encoded

    def encode_documents(
        self,
        data: Buffer,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        threads: int = 1,
        parse_special: bool = True,
    ) -> tuple[Ids, Offsets]:
        """The same for UTF-8 bytes: document i is data[starts[i]:ends[i]].

        No Python object is made for a document: the fastest way in. `data` may be memory-mapped.
        ValueError for a document that is outside `data` or is not UTF-8.
        """
        return self._pipeline(parse_special).encode_documents(data, starts, ends, threads)

    def decode(
        self, ids: Sequence[int] | NDArray[Any], *, skip_special_tokens: bool = False
    ) -> str:
        """Return the text of ids, as `tokenizers` decodes it.

        Bytes that are not whole UTF-8 become U+FFFD; an id without a token yields no text.
        """
        with regex_bound():
            return str(
                self.tokenizer.backend.decode(
                    np.asarray(ids).tolist(), skip_special_tokens=skip_special_tokens
                )
            )

    def decode_batch(self, ids: Ids, offsets: Offsets) -> list[str]:
        """Texts of flat ids and offsets, as `encode_batch` returns them."""
        return decode_flat(self.tokenizer.backend, ids, offsets)

    def id_to_token(self, token_id: int) -> str:
        """The token of an id as `tokenizer.json` spells it; KeyError for an id without a token."""
        in_range = 0 <= token_id < self.tokenizer.row_count
        token = self.tokenizer.backend.id_to_token(int(token_id)) if in_range else None
        if token is None:
            raise KeyError(f"no token has the id {token_id}")
        return str(token)

    def _pipeline(self, parse_special: bool) -> Pipeline:
        if parse_special:
            return self._with_special
        if self._without_special is None:
            self._without_special = self._with_special.without_special()
        return self._without_special

    def _template_ids(self) -> tuple[Ids, Ids]:
        """Ids that the post-processor puts before and after a text."""
        if self._template is None:
            encoding = self.tokenizer.backend.encode("a", add_special_tokens=True)
            mask = encoding.special_tokens_mask
            text_at = mask.index(0)
            text_end = len(mask) - mask[::-1].index(0)
            self._template = (
                np.array(encoding.ids[:text_at], dtype=np.int32),
                np.array(encoding.ids[text_end:], dtype=np.int32),
            )
        return self._template
