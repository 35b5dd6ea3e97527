"""The BatchEncoding of transformers, made of rows of ids; what it needs of `tokenizers`, lazily.

Owns reading a template from a `tokenizers.Tokenizer`, the settings that a call leaves in it, and
the encodings that are made only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from vocabshift.tokenizer.rows import Rows, Slot, Template

Settings = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, bool]
"""Truncation, padding and `encode_special_tokens` of a `tokenizers.Tokenizer`."""

_PROBES = ("a", "0", "\n", "क")  # some text that has tokens


def settings_of(backend: Any) -> Settings:
    """What the last call has left in the backend."""
    return backend.truncation, backend.padding, backend.encode_special_tokens


def settings_of_call(hf: Any, options: Mapping[str, Any]) -> Settings:
    """Set the backend as transformers does for a call, and leaves it afterwards."""
    hf.set_truncation_and_padding(
        padding_strategy=options.get("padding_strategy", "do_not_pad"),
        truncation_strategy=options.get("truncation_strategy", "do_not_truncate"),
        max_length=options.get("max_length"),
        stride=options.get("stride", 0),
        pad_to_multiple_of=options.get("pad_to_multiple_of"),
        padding_side=options.get("padding_side"),
    )
    split = options.get("split_special_tokens")
    hf._tokenizer.encode_special_tokens = hf.split_special_tokens if split is None else split
    return settings_of(hf._tokenizer)


@contextmanager
def set_as(backend: Any, settings: Settings) -> Iterator[None]:
    """The backend with other settings until the block ends."""
    before = settings_of(backend)
    _set(backend, settings)
    try:
        yield
    finally:
        _set(backend, before)


def _set(backend: Any, settings: Settings) -> None:
    truncation, padding, backend.encode_special_tokens = settings
    backend.no_truncation() if truncation is None else backend.enable_truncation(**truncation)
    backend.no_padding() if padding is None else backend.enable_padding(**padding)


def template_of(backend: Any, *, is_pair: bool, add_special_tokens: bool) -> Template | None:
    """Read from what the backend makes of a text; None where that is no list of slots."""
    with set_as(backend, (None, None, False)):
        for probe in _PROBES:
            n_text = len(backend.encode(probe, add_special_tokens=False).ids)
            if n_text:
                break
        pair = probe if is_pair else None
        found = backend.encode(probe, pair, add_special_tokens=add_special_tokens)
    slots: list[Slot] = []
    columns = (found.sequence_ids, found.type_ids, found.special_tokens_mask, found.ids)
    rows = zip(*columns, strict=True)
    for (text, type_id, mask), group in groupby(rows, key=lambda row: row[:3]):
        ids = np.array([row[3] for row in group], dtype=np.int32)
        if mask != (text is None) or (text is not None and len(ids) != n_text):
            return None
        slots.append(Slot(text, type_id, ids))
    template = Template(tuple(slots))
    texts = sorted(slot.text for slot in slots if slot.text is not None)
    expected = backend.num_special_tokens_to_add(is_pair) if add_special_tokens else 0
    return template if template.n_special == expected and texts == [0, 1][: 1 + is_pair] else None


Texts = tuple[list[str], list[int] | None]
"""Texts, and how many of them (words) each row has, where that is not one."""


def texts_of(batch: Sequence[Any], *, in_words: bool) -> list[Texts] | None:
    """The texts of a batch; of pairs, the first texts and the second.

    None for what is not str alone, or pairs alone: `tokenizers` says what is wrong with it.
    """
    kinds = set(map(type, batch))
    if not in_words and kinds == {str}:
        return [(list(batch), None)]
    if not kinds or not kinds <= {list, tuple}:
        return None
    if {type(text) for row in batch for text in row} - {str}:
        return None
    if in_words:
        return [([word for row in batch for word in row], list(map(len, batch)))]
    if set(map(len, batch)) != {2}:
        return None
    return [([row[side] for row in batch], None) for side in (0, 1)]


class LazyEncodings(Sequence[Any]):
    """The `tokenizers.Encoding` of each row, which `tokenizers` makes when it is asked for."""

    def __init__(
        self, backend: Any, batch: Sequence[Any], settings: Settings, rows: Rows, **options: bool
    ) -> None:
        """`settings`: the backend's at the call; `options`: the arguments of `encode_batch`."""
        truncation, padding, as_text = settings
        if padding is not None and padding["length"] is None:
            padding = {**padding, "length": rows.sizes[0]}  # as long as the longest row was
        self._backend, self._rows = backend, rows
        # The caller may change its lists.
        self._batch = [text if isinstance(text, str) else tuple(text) for text in batch]
        self._settings = (truncation, padding, as_text)
        self._options = options
        self._made: dict[int, Any] = {}  # by row

    def __len__(self) -> int:
        return len(self._rows.sizes)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        chosen = range(len(self))[at]  # IndexError, as of a list
        if isinstance(chosen, range):
            self._make(chosen)
            return [self._made[row] for row in chosen]
        self._make([chosen])
        return self._made[chosen]

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """For other processes: the encodings alone."""
        return list, (self[:],)

    def _make(self, wanted: Sequence[int]) -> None:
        missing = [row for row in wanted if row not in self._made]
        if not missing:
            return
        samples = sorted({self._rows.samples[row] for row in missing})
        with set_as(self._backend, self._settings):
            texts = [self._batch[sample] for sample in samples]
            found = self._backend.encode_batch(texts, **self._options)
        by_sample = dict(zip(samples, found, strict=True))
        for row in missing:
            window = self._rows.windows[row]
            encoding = by_sample[self._rows.samples[row]]
            encoding = encoding.overflowing[window - 1] if window else encoding
            if encoding.ids != [i for part in self._rows.parts[row] for i in part.ids.tolist()]:
                raise RuntimeError(
                    "the tokenizer was changed after this batch was encoded, so that its words "
                    "and characters can no longer be found; encode it again"
                )
            self._made[row] = encoding


def batch_encoding(
    hf: Any,
    rows: Rows,
    encodings: LazyEncodings,
    options: Mapping[str, Any],
    *,
    is_batch: bool,
    is_pair: bool,
) -> Any:
    """The keys that the `options` of a call to the tokenizer `hf` ask for, in its order."""
    from transformers.tokenization_utils_base import BatchEncoding

    asked = options.get("return_tensors")
    kind = str(getattr(asked, "value", asked))
    # Of rows of several lengths, and of none, transformers makes tensors in its way, or an error.
    shape = rows.shape if kind in ("np", "pt") and any(rows.sizes) else None

    def values(flat: Any, lists: Any) -> Any:
        if shape is None:
            return lists()
        array: NDArray[np.int64] = flat().astype(np.int64, copy=False).reshape(shape)
        return array if kind == "np" else list(array)  # of which transformers makes a tensor

    def mask(name: str) -> Any:
        return values(lambda: rows.mask(name), lambda: rows.mask_lists(name))

    def wants(name: str) -> bool:
        given = options.get(f"return_{name}")
        return name in hf.model_input_names if given is None else bool(given)

    overflow = options.get("return_overflowing_tokens")
    data = {"input_ids": values(rows.ids, rows.id_lists)}
    if wants("token_type_ids"):
        data["token_type_ids"] = mask("type_id")
    if wants("attention_mask"):
        data["attention_mask"] = mask("is_attended")
    if options.get("return_special_tokens_mask"):
        data["special_tokens_mask"] = mask("is_special")
    if options.get("return_length"):
        data["length"] = rows.sizes.copy()
    if overflow:
        data["overflow_to_sample_mapping"] = rows.samples.copy()
    if options.get("max_length") is None:
        for size in rows.sizes:
            if size > hf.model_max_length:
                verbose = options.get("verbose", True)
                hf._eventual_warn_about_too_long_sequence(range(size), None, verbose)
    if not is_batch and asked is None and not overflow:
        data = {key: rows[0] if isinstance(rows[0], list) else rows for key, rows in data.items()}
    return BatchEncoding(data, encodings, tensor_type=asked, n_sequences=1 + is_pair)
