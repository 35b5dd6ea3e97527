"""Documents -> shards of token ids, in memory.

Owns where a shard ends and the token behind every document. A document is never divided, and
where a shard ends depends on the documents alone, not on the blocks in which they come. Knows
nothing of folders and checkpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.packed_shards import FORMATS, Format, Ids, dtype_for, write_shard
from vocabshift.text.documents import Documents
from vocabshift.tokenizer.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer

SHARD_TOKENS = 50_000_000
"""100 MB of uint16, 200 MB of uint32."""

Lengths = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """How a corpus is packed."""

    eos: str | None = None
    """Token behind every document; None: nothing stands between them."""
    format: Format = "numpy"
    """"numpy": .npy files to map; "arrow": a column input_ids, for datasets (needs [data])."""
    shard_tokens: int = SHARD_TOKENS
    """A shard ends with the document that makes it this long."""
    parse_special: bool = True
    """Whether special-token strings in the text are special tokens, as `tokenizers` has it."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}; known are {', '.join(FORMATS)}")
        if self.shard_tokens < 1:
            raise ValueError(f"shard_tokens is {self.shard_tokens}; at least 1 is needed")


class GrowingShard:
    """A shard in memory, up to its end."""

    def __init__(self) -> None:
        self.ids: list[Ids] = []
        self.lengths: list[Lengths] = []  # tokens of each document
        self.byte_lengths: list[Lengths] = []
        self.languages: dict[str | None, Counter[str]] = {}
        self.n_tokens = 0

    def add(self, ids: Ids, lengths: Lengths, byte_lengths: Lengths, language: str | None) -> None:
        """Take in some documents of one language."""
        self.ids.append(ids)
        self.lengths.append(lengths)
        self.byte_lengths.append(byte_lengths)
        self.n_tokens += len(ids)
        self.languages.setdefault(language, Counter()).update(
            n_documents=len(lengths), n_tokens=len(ids), n_bytes=int(byte_lengths.sum())
        )

    def write(self, folder: Path, number: int, form: Format) -> None:
        """Write the files of the shard into `folder`, which is made."""
        folder.mkdir()
        offsets, byte_offsets = _offsets(self.lengths), _offsets(self.byte_lengths)
        write_shard(folder, number, form, self.ids, offsets=offsets, byte_offsets=byte_offsets)

    @property
    def info(self) -> dict[str, Any]:
        """What a checkpoint of it remembers."""
        return {"languages": [[label, dict(counts)] for label, counts in self.languages.items()]}


class Packer:
    """Encodes blocks of documents and cuts their ids into shards."""

    def __init__(self, tokenizer: Tokenizer, options: PackOptions, threads: int) -> None:
        self.shard = GrowingShard()
        self._options = options
        self._threads = threads
        self._encoder = Encoder(tokenizer)
        self._eos = None if options.eos is None else token_id(tokenizer, options.eos)
        self._dtype = dtype_for(tokenizer.row_count)

    def add(self, documents: Documents) -> Iterator[GrowingShard]:
        """Encode the documents; give every shard that they bring to its end."""
        ids, offsets = self._encode(documents)
        lengths, byte_lengths = np.diff(offsets), documents.ends - documents.starts
        at = 0
        while at < len(lengths):
            # The shard ends with the first document that fills it.
            full = offsets[at] + self._options.shard_tokens - self.shard.n_tokens
            end = min(int(np.searchsorted(offsets[at + 1 :], full)) + at + 1, len(lengths))
            self.shard.add(
                ids[offsets[at] : offsets[end]],
                lengths[at:end],
                byte_lengths[at:end],
                documents.language,
            )
            at = end
            if self.shard.n_tokens >= self._options.shard_tokens:
                yield self.shard
                self.shard = GrowingShard()

    def _encode(self, documents: Documents) -> tuple[Ids, NDArray[np.int64]]:
        """Ids of a block with the EOS behind every document, and offsets (n_documents + 1,)."""
        ids, offsets = self._encoder.encode_documents(
            documents.data,
            documents.starts,
            documents.ends,
            threads=self._threads,
            parse_special=self._options.parse_special,
        )
        if self._eos is None:
            return ids.astype(self._dtype), offsets
        offsets = offsets + np.arange(len(offsets))
        joined = np.full(offsets[-1], self._eos, dtype=self._dtype)
        is_text = np.ones(len(joined), dtype=bool)
        is_text[offsets[1:] - 1] = False
        joined[is_text] = ids
        return joined, offsets


def token_id(tokenizer: Tokenizer, text: str) -> int | None:
    """Id of an added token or a token of the vocabulary; None where there is none."""
    added = {token.content: token.id for token in tokenizer.added_tokens}
    return added.get(text, tokenizer.model.vocab.get(text))


def _offsets(lengths: list[Lengths]) -> NDArray[np.int64]:
    offsets = np.zeros(sum(map(len, lengths)) + 1, dtype=np.int64)
    np.cumsum(np.concatenate(lengths), out=offsets[1:])
    return offsets
