"""EncodeTexts: text columns of Arrow batches become columns of token ids.

Knows nothing of any engine: what runs it passes record batches (Spark's `mapInArrow`) or tables
(Ray's `map_batches`). Needs the extra `vocabshift[data]`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vocabshift.tokenizer.any_tokenizer import Ids, surround
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

IDS = "input_ids"

_MOST = 2**31 - 1  # tokens of a column, whose offsets have 32 bits
_KEPT = 4  # encoders of a process


class EncodeTexts:
    """Replaces text columns by columns of token ids, with the ids that `tokenizers` gives.

    Called with a `pyarrow.Table` or `RecordBatch`, it returns one; called with an iterator of
    record batches, it returns an iterator of as many. Other columns pass through, and the columns
    of ids (lists of int32: flat ids and offsets) follow them. A null has null as its ids. Texts are
    whole: `truncation` and `padding` of `tokenizer.json` are ignored.

    It can be pickled. The tokenizer is compiled when the first batch comes, once in a process.
    """

    def __init__(
        self,
        tokenizer: TokenizerLike,
        columns: str | Sequence[str] | Mapping[str, str] = "text",
        *,
        eos: str | None = None,
        add_special_tokens: bool = False,
        parse_special: bool = True,
        keep_text: bool = False,
        threads: int = 1,
    ) -> None:
        """What is encoded, and how.

        tokenizer: a path that every worker can read, or a Hub name; or a loaded one, which travels
            with the callable.
        columns: the text column, whose ids become `input_ids`; several, whose ids become
            `NAME_ids`; or a mapping from text columns to columns of ids.
        eos: token after every document; None: none. add_special_tokens: whether the template's
            tokens (BOS, EOS) surround every document. parse_special: whether special-token strings
            in the text become special tokens. keep_text: whether the text columns stay.
        threads: for each batch.

        TypeError for what is no tokenizer; ValueError for columns that clash. A batch raises
        ValueError for a missing column and an EOS that is no token, TypeError for a column that is
        no text.
        """
        if isinstance(columns, str):
            columns = {columns: IDS}
        elif not isinstance(columns, Mapping):
            columns = {name: f"{name}_ids" for name in columns}
        self.columns = dict(columns)
        if not self.columns or len(set(self.columns.values())) < len(self.columns):
            raise ValueError(f"columns is {self.columns}; each text needs a column of its own")
        # As bytes, an object costs nothing to unpickle where its encoder is there already.
        is_named = isinstance(tokenizer, str | Path)
        self._source = str(tokenizer) if is_named else pickle.dumps(as_tokenizer(tokenizer))
        self.eos = eos
        self.add_special_tokens = add_special_tokens
        self.parse_special = parse_special
        self.keep_text = keep_text
        self.threads = threads
        self._loaded: tuple[Encoder, Ids] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_loaded": None}

    def __call__(self, batches: Any) -> Any:
        """A table or record batch with ids, or an iterator of record batches."""
        import pyarrow as pa

        if isinstance(batches, pa.RecordBatch):
            return self._encode(batches)
        if isinstance(batches, pa.Table):
            encoded = map(self._encode, batches.to_batches())
            return pa.Table.from_batches(encoded, self.schema(batches.schema))
        return self._stream(batches)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of what is returned for batches of `schema`, which Spark asks for."""
        import pyarrow as pa

        for name in self.columns:
            if name not in schema.names:
                present = ", ".join(schema.names)
                raise ValueError(f"no column {name!r} to encode; present: {present or 'none'}")
        kept = [field for field in schema if self.keep_text or field.name not in self.columns]
        for name in self.columns.values():
            if name in {field.name for field in kept}:
                raise ValueError(
                    f"there is a column {name!r} already; name another one for the ids: "
                    "columns={'text': 'ids'}"
                )
        ids = [pa.field(name, pa.list_(pa.int32())) for name in self.columns.values()]
        return pa.schema([*kept, *ids], metadata=schema.metadata)

    def _stream(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield self._encode(batch)

    def _encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        schema = self.schema(batch.schema)
        kept = [batch.column(name) for name in schema.names[: len(schema) - len(self.columns)]]
        ids = [self._ids(batch.column(name)) for name in self.columns]
        return pa.RecordBatch.from_arrays([*kept, *ids], schema=schema)

    def _ids(self, texts: pa.Array) -> pa.ListArray:
        import pyarrow as pa

        encoder, eos = self._encoder()
        # Views cannot be filtered; engines that guess types call a batch without text "null".
        if texts.type in (pa.string_view(), pa.null()):
            texts = texts.cast(pa.large_string())
        flat, offsets = encoder.encode_batch(
            texts.drop_null(),
            threads=self.threads,
            add_special_tokens=self.add_special_tokens,
            parse_special=self.parse_special,
        )
        if len(eos):
            flat, offsets = surround(flat, offsets, eos[:0], eos)
        if len(flat) > _MOST:
            raise ValueError(f"a batch of {len(flat)} tokens; at most {_MOST}: pass smaller ones")
        # Built from buffers: pa.array would import pandas.
        lengths = np.zeros(len(texts), dtype=np.int32)
        is_null = np.zeros(len(texts), dtype=bool)
        if texts.null_count:
            is_null = texts.is_null().to_numpy(zero_copy_only=False)
        lengths[~is_null] = np.diff(offsets)
        ends = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))
        values = pa.Array.from_buffers(pa.int32(), len(flat), [None, pa.py_buffer(flat)])
        bits = np.packbits(~is_null, bitorder="little") if is_null.any() else None
        return pa.ListArray.from_buffers(
            pa.list_(pa.int32()),
            len(texts),
            [None if bits is None else pa.py_buffer(bits), pa.py_buffer(ends)],
            children=[values],
        )

    def _encoder(self) -> tuple[Encoder, Ids]:
        """The encoder of this process, and the ids that stand after a document."""
        if self._loaded is None:
            encoder = _compiled(self._source, _version(self._source))
            eos = np.zeros(0, dtype=np.int32)
            if self.eos is not None:
                eos_id = encoder.tokenizer.token_id(self.eos)
                if eos_id is None:
                    raise ValueError(f"eos is {self.eos!r}, no token of {encoder.tokenizer.name}")
                eos = np.array([eos_id], dtype=np.int32)
            self._loaded = encoder, eos
        return self._loaded


@lru_cache(_KEPT)
def _compiled(source: str | bytes, _version: object) -> Encoder:
    return Encoder(pickle.loads(source) if isinstance(source, bytes) else source)


def _version(source: str | bytes) -> object:
    """What changes when a tokenizer is replaced under its name: workers may live for long."""
    if isinstance(source, bytes) or not Path(source).exists():
        return None
    path = Path(source)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return tuple((file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files)
