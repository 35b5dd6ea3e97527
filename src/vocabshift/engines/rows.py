"""The texts of Arrow record batches, as a corpus that is read once.

Owns which rows are text and of which language, and sets aside those that cannot be read: a job of
a thousand tasks need not stop at the first bad row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vocabshift import _core
from vocabshift.errors import CorpusError, printable
from vocabshift.text.corpus import Corpus
from vocabshift.text.documents import Documents, TextErrors, as_utf8, pack
from vocabshift.text.readers import TextsSource, check_errors
from vocabshift.text.records import missing_column, parse_record, text_of_record
from vocabshift.text.selection import Part
from vocabshift.text.spec import check_label, check_weight

BadRows = Literal["stop", "keep"]
"""What to do with a row that is no text: stop with an error, or set it aside and go on."""

Kept = Counter[tuple[str | None, str, bytes]]
"""Language, reason and bytes of rows that were set aside, with their number."""

_SHOWN_BYTES = 60
_HELD_BYTES = 4 << 20  # of rows set aside, before they are handed on
_ROW_BYTES = 300  # what a row takes beside its bytes, roughly


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Which columns are read, and what is done with bad rows."""

    text: str = "text"
    """Column of the text."""
    language: str | None = None
    """Column of the language; None: all text has that of `label`."""
    label: str | None = None
    """Language of text without a language column; None: it has none."""
    weight: float = 1.0
    """How often each document counts, in training; recorded, not multiplied."""
    json_lines: str | None = None
    """Column of JSON records, one a row, if `text` and `language` are fields of these."""
    errors: TextErrors = "strict"
    """Bytes that are not UTF-8: a bad row, or "replace": U+FFFD in their place."""
    bad_rows: BadRows = "stop"
    """Rows that are no text: "stop" with an error, or "keep" them apart and go on."""

    def __post_init__(self) -> None:
        check_errors(self.errors)
        # A float, as in every corpus: the fingerprint depends on how the weight is written.
        object.__setattr__(self, "weight", check_weight(self.weight, "weight"))
        if self.label is not None:
            check_label(self.label)
            if self.language is not None:
                raise ValueError(
                    f"the column {self.language!r} gives the language, and so does the label "
                    f"{self.label!r}; give one of them"
                )
        if self.bad_rows not in get_args(BadRows):
            raise ValueError(f"bad_rows is {self.bad_rows!r}; it must be 'stop' or 'keep'")

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        if self.json_lines is not None:
            return [self.json_lines]
        return [self.text] if self.language is None else [self.text, self.language]


class BatchCorpus(Corpus):
    """The texts of record batches. Null and empty texts are no documents, as everywhere.

    keep: takes the rows set aside, a few megabytes at a time. None: they are dropped, as by the
        passes after the words, with which they were kept.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        options: RowOptions,
        keep: Callable[[Kept], None] | None = None,
    ) -> None:
        super().__init__([Part(TextsSource("record batches", ()))])
        self._batches = batches
        self._options = options
        self._keep = keep
        self.nulls: Counter[str | None] = Counter()  # by language
        self._bad: Kept = Counter()
        self._bad_bytes = 0

    def batches(self, *, threads: int = 1) -> Iterator[Documents]:  # noqa: ARG002 - as a Corpus
        """The documents batch by batch, by language; no error if there are none."""
        for batch in self._batches:
            for name in self._options.columns:
                if name not in batch.schema.names:
                    present = ", ".join(batch.schema.names)
                    raise CorpusError(f"a record batch has no column {name!r}; present: {present}")
            found = self._of_json(batch) if self._options.json_lines else self._of_columns(batch)
            for documents in found:
                has_text = documents.starts < documents.ends
                if has_text.any():
                    yield replace(documents.where(has_text), weight=self._options.weight)
        self._hand_on()

    def _hand_on(self) -> None:
        if self._bad and self._keep is not None:
            self._keep(self._bad)
        self._bad, self._bad_bytes = Counter(), 0

    def _set_aside(self, language: str | None, reason: str, row: bytes) -> None:
        # JSON can name fields by what UTF-8 cannot hold; and a zero byte ends a kept reason.
        reason = printable(reason)
        if self._options.bad_rows == "stop":
            shown = ascii(row[:_SHOWN_BYTES].decode("utf-8", "replace"))
            more = f" and {len(row) - _SHOWN_BYTES:,} bytes more" * (len(row) > _SHOWN_BYTES)
            raise CorpusError(
                f"a row is no text: {reason}: {shown}{more}; repair it, or keep bad rows apart "
                "(--bad-rows keep)"
            )
        self._bad[language, reason, row] += 1
        self._bad_bytes += len(row) + _ROW_BYTES
        if self._bad_bytes >= _HELD_BYTES:
            self._hand_on()

    def _of_columns(self, batch: Any) -> Iterator[Documents]:
        texts, nulls = _texts(batch.column(self._options.text), self._options.text)
        for label, is_own in _rows_by_language(batch, self._options):
            own = texts.where(is_own)
            language = self._checked_label(label)
            if language == label:
                if n_nulls := int(nulls[is_own].sum()):
                    self.nulls[label] += n_nulls
                yield from self._checked(own, label)
                continue
            for start, end in zip(own.starts.tolist(), own.ends.tolist(), strict=True):
                self._set_aside(None, f"the language is {label!r}", bytes(own.data[start:end]))

    def _checked_label(self, label: Any) -> str | None:
        """The label, or None if it cannot be one."""
        try:
            return None if label is None else check_label(label)
        except (TypeError, ValueError):
            return None

    def _checked(self, documents: Documents, language: str | None) -> Iterator[Documents]:
        """The documents, all UTF-8: those that are not are repaired or set aside."""
        is_bad = _not_utf8(documents)
        repaired = []
        for at in np.flatnonzero(is_bad).tolist():
            row = bytes(documents.data[documents.starts[at] : documents.ends[at]])
            if self._options.errors == "replace":
                repaired.append(bytes(as_utf8(row, "row", "replace")))
            else:
                invalid = _core.first_invalid_utf8(row)
                self._set_aside(language, f"not UTF-8 at byte {invalid}", row)
        good = documents if not is_bad.any() else documents.where(~is_bad)
        yield Documents(good.data, good.starts, good.ends, language)
        for block in pack(repaired, "rows"):
            yield Documents(block.data, block.starts, block.ends, language)

    def _of_json(self, batch: Any) -> Iterator[Documents]:
        name = str(self._options.json_lines)
        lines, _ = _texts(batch.column(name), name)
        texts: dict[str | None, list[bytes]] = {}
        for documents in self._checked(lines, self._options.label):
            for line in documents.texts():
                if line and not line.isspace():
                    self._add_record(line, texts)
        for language, own in texts.items():
            for block in pack(own, "records"):
                yield Documents(block.data, block.starts, block.ends, language)

    def _add_record(self, line: str, texts: dict[str | None, list[bytes]]) -> None:
        options = self._options
        language = options.label
        try:
            record = parse_record(line, "record")
            if options.language is not None and isinstance(record, dict):
                if options.language not in record:
                    raise missing_column(options.language, record, "record")
                label = record[options.language]
                language = None if label is None else check_label(label)
            text = text_of_record(record, options.text, "record")
        except (TypeError, ValueError) as error:
            self._set_aside(language, str(error), line.encode())
            return
        if text:
            texts.setdefault(language, []).append(text)
        elif record is None or (isinstance(record, dict) and record[options.text] is None):
            self.nulls[language] += 1


def _texts(array: Any, name: str) -> tuple[Documents, NDArray[np.bool_]]:
    """All rows of an Arrow array, not yet checked, and (n,) which are null: these are empty."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = str(array.type)
    if kind in ("string_view", "binary_view"):
        array = array.cast("large_" + kind.removesuffix("_view"))
    elif kind == "null":  # an engine that guesses types met no text in this batch
        array = array.cast("string")
    elif kind not in ("string", "large_string", "binary", "large_binary"):
        raise CorpusError(f"column {name!r} is an Arrow {kind}; name a column of strings")
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    _, offsets, data = array.buffers()
    width = np.int64 if str(array.type).startswith("large") else np.int32
    every = np.zeros(1, width) if offsets is None else np.frombuffer(offsets, width)
    places = every[array.offset : array.offset + len(array) + 1].astype(np.int64)
    ends: NDArray[np.int64] = np.where(nulls, places[:-1], places[1:])
    view = memoryview(b"" if data is None else data)
    return Documents(view, places[:-1], ends, source=name), nulls


def _rows_by_language(batch: Any, options: RowOptions) -> Iterator[tuple[Any, NDArray[np.bool_]]]:
    """Each label of a batch in the order of appearance, with (n,) the rows that have it."""
    if options.language is None:
        yield options.label, np.ones(len(batch), dtype=np.bool_)
        return
    encoded = batch.column(options.language)
    if not hasattr(encoded, "dictionary"):
        encoded = encoded.dictionary_encode()
    codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    for code in dict.fromkeys(codes.tolist()):
        yield (None if code < 0 else _label(encoded.dictionary[code])), codes == code


def _label(scalar: Any) -> Any:
    """The value of an Arrow scalar; bytes for a string that is not UTF-8."""
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return bytes(scalar.as_buffer())


def _not_utf8(documents: Documents) -> NDArray[np.bool_]:
    """(n,) which documents are not UTF-8; as fast as one pass where all are."""
    starts, ends = documents.starts, documents.ends
    is_bad = np.zeros(len(starts), dtype=np.bool_)
    if not len(starts):
        return is_bad
    data = documents.data[int(starts.min()) : int(ends.max())]
    if _core.first_invalid_utf8(data) < 0:
        full = np.frombuffer(documents.data, dtype=np.uint8)
        # Between two documents may lie bytes of another language, so both ends are looked at.
        places = np.concatenate([starts, ends])[np.tile(starts < ends, 2)]
        places = places[places < ends.max()]
        if not ((full[places] & 0xC0) == 0x80).any():  # none begins or ends in a character
            return is_bad
    for at, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        is_bad[at] = _core.first_invalid_utf8(documents.data[start:end]) >= 0
    return is_bad
