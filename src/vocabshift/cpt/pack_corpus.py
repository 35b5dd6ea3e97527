"""Packs a corpus into token ids on disk, for `vocabshift encode`.

Owns where a shard ends, the token after every document, the folder, and how a killed run resumes:
every shard is a checkpoint, and the next run with the same arguments skips the documents in it. A
document is never split. Documents keep the order of the corpus, so neither the number of threads
nor an interruption changes a byte.
"""

from __future__ import annotations

import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift import __version__
from vocabshift.cpt.packed_ids import FILE, VERSION
from vocabshift.cpt.packed_shards import (
    FORMATS,
    Format,
    GrowingShard,
    StoredIds,
    dtype_for,
    file_names,
)
from vocabshift.progress import Progress
from vocabshift.storage.checkpoints import Checkpoints, Saved
from vocabshift.storage.outcome import config_hash, outcome
from vocabshift.storage.output import CHECKPOINTS
from vocabshift.text.corpus import Corpus
from vocabshift.text.documents import Documents
from vocabshift.text.readers import input_key
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint

SHARD_TOKENS = 50_000_000
"""100 MB of uint16, 200 MB of uint32."""


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """How a corpus is packed."""

    eos: str | None = None
    """Token after every document; None: none."""
    format: Format = "numpy"
    """"numpy": .npy files to map; "arrow": a column input_ids, for datasets (needs [data]);
    "megatron": .bin and .idx for Megatron and NeMo; "nanotron": .ds files, for datatrove too."""
    shard_tokens: int = SHARD_TOKENS
    """Tokens; a shard ends with the document that reaches this length."""
    parse_special: bool = True
    """Whether special-token strings in the text become special tokens, as in `tokenizers`."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}; known are {', '.join(FORMATS)}")
        if self.shard_tokens < 1:
            raise ValueError(f"shard_tokens is {self.shard_tokens}; at least 1 is needed")


def pack_corpus(
    tokenizer: Tokenizer,
    corpus: Corpus,
    out: str | Path,
    options: PackOptions | None = None,
    *,
    threads: int = 1,
    force: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Encode `corpus` into the folder `out`, and return the contents of its `packed.json`.

    `tokenizer`: a loaded one, of BPE; `options`: separators, size of shards and the like, see
    `PackOptions`; `threads` for encoding: the files do not depend on it. `progress` is called with
    the phase "encode", bytes done, and all bytes where they are known. FileExistsError where `out`
    exists, without `force`.

    With `resume`, a killed or failed run resumes after its last finished shard, if arguments and
    files are the same; `no_key_reason` says which corpora cannot be resumed. ValueError for weights
    (each document is packed once) and for an EOS that is not a token.
    """
    options = options or PackOptions()
    if any(part.weight != 1 for part in corpus.parts):
        raise ValueError("every document is packed once; leave out the @WEIGHT of the corpus")
    header = _header(tokenizer, options)
    source = input_key(corpus)
    can_resume = source is not None
    facts = {**header, "package": __version__, "input": source or uuid.uuid4().hex}
    with outcome(
        "encode", out, inputs=[corpus], force=force, keep_checkpoints=can_resume, resume=resume
    ) as output:
        partial = output.folder
        checkpoints = Checkpoints(partial / CHECKPOINTS, config_hash(facts))
        packer = Packer(tokenizer, options, threads)
        shards = list(_shards(corpus, checkpoints, packer, progress))
        for number, shard in enumerate(shards):
            for name in file_names(number, options.format):
                _put(shard.path / name, partial / name)
        header |= _totals(shards)
        document = json.dumps(header, ensure_ascii=False, indent=1)
        (partial / FILE).write_text(document + "\n", encoding="utf-8")
        checkpoints.drop()
    return header


def _header(tokenizer: Tokenizer, options: PackOptions) -> dict[str, Any]:
    """The part of `packed.json` that does not depend on the text."""
    eos = None
    if options.eos is not None:
        eos_id = tokenizer.token_id(options.eos)
        if eos_id is None:
            raise ValueError(
                f"{options.eos!r} is no token of {tokenizer.name}; name one with --eos, or none"
            )
        eos = {"token": options.eos, "id": eos_id}
    return {
        "version": VERSION,
        "format": options.format,
        "dtype": dtype_for(tokenizer.row_count, options.format).name,
        "tokenizer": {
            "name": tokenizer.name,
            "fingerprint": fingerprint(tokenizer),
            "n_ids": tokenizer.row_count,
        },
        "eos": eos,
        "parse_special": options.parse_special,
        "shard_tokens": options.shard_tokens,
    }


def _shards(
    corpus: Corpus, checkpoints: Checkpoints, packer: Packer, progress: Progress | None
) -> Iterator[Saved]:
    """The finished shards: first those found on disk, then the new ones."""
    n_done = number = 0
    while (found := checkpoints.load(_phase(number))) is not None:
        n_done += sum(counts["n_documents"] for _, counts in found.info["languages"])
        yield found
        number += 1
    for documents in _without_first(_reported(corpus, progress), n_done):
        for shard in packer.add(documents):
            yield _keep(checkpoints, shard, number, packer)
            number += 1
    if packer.shard.n_tokens or packer.shard.lengths:
        yield _keep(checkpoints, packer.shard, number, packer)


def _keep(checkpoints: Checkpoints, shard: GrowingShard, number: int, packer: Packer) -> Saved:
    saved = checkpoints.save(
        _phase(number),
        lambda folder: shard.write(folder, number, packer.options.format, packer.name),
        shard.info,
    )
    assert saved is not None  # there is a folder, and a key
    return saved


def _reported(corpus: Corpus, progress: Progress | None) -> Iterator[Documents]:
    """The blocks of the corpus; each is reported once the next is wanted."""
    done, total = 0, corpus.n_bytes_hint
    for documents in corpus.batches():
        yield documents
        done += documents.n_bytes
        if progress is not None:
            progress("encode", done, total)


def _without_first(blocks: Iterator[Documents], n_documents: int) -> Iterator[Documents]:
    """The blocks without the first `n_documents` documents."""
    for block in blocks:
        if n_documents < len(block):
            yield replace(block, starts=block.starts[n_documents:], ends=block.ends[n_documents:])
        n_documents = max(n_documents - len(block), 0)


def _totals(shards: list[Saved]) -> dict[str, Any]:
    """Counts of the whole, by language and by shard."""
    languages: dict[str | None, Counter[str]] = {}
    rows = []
    for shard in shards:
        row: Counter[str] = Counter()
        for label, counts in shard.info["languages"]:
            languages.setdefault(label, Counter()).update(counts)
            row.update(counts)
        rows.append({**row, "crc32": dict(shard.checksums)})
    total: Counter[str] = Counter()
    for counts in languages.values():
        total.update(counts)
    return {
        **total,
        "languages": [{"language": label, **counts} for label, counts in languages.items()],
        "shards": rows,
    }


def _put(source: Path, target: Path) -> None:
    """Put a file of a checkpoint under its final name in the output.

    A hard link if the file system has them, so the checkpoint stays complete until all are linked.
    """
    try:
        os.link(source, target)
    except OSError:
        source.rename(target)


def _phase(number: int) -> str:
    return f"shard-{number:05}"


class Packer:
    """Encodes blocks of documents and cuts their ids into shards."""

    def __init__(self, tokenizer: Tokenizer, options: PackOptions, threads: int) -> None:
        self.shard = GrowingShard()
        self.options = options
        self.name = tokenizer.name
        self._threads = threads
        self._encoder = Encoder(tokenizer)
        self._eos = None if options.eos is None else tokenizer.token_id(options.eos)
        self._dtype = dtype_for(tokenizer.row_count, options.format)

    def add(self, documents: Documents) -> Iterator[GrowingShard]:
        """Encode the documents; yield every shard that they complete."""
        ids, offsets = self._encode(documents)
        lengths, byte_lengths = np.diff(offsets), documents.ends - documents.starts
        at = 0
        while at < len(lengths):
            # The shard ends with the first document that fills it.
            full = offsets[at] + self.options.shard_tokens - self.shard.n_tokens
            end = min(int(np.searchsorted(offsets[at + 1 :], full)) + at + 1, len(lengths))
            self.shard.add(
                ids[offsets[at] : offsets[end]],
                lengths[at:end],
                byte_lengths[at:end],
                documents.language,
            )
            at = end
            if self.shard.n_tokens >= self.options.shard_tokens:
                yield self.shard
                self.shard = GrowingShard()

    def _encode(self, documents: Documents) -> tuple[StoredIds, NDArray[np.int64]]:
        """Ids of a block with the EOS after every document, and offsets (n_documents + 1,)."""
        ids, offsets = self._encoder.encode_documents(
            documents.data,
            documents.starts,
            documents.ends,
            threads=self._threads,
            parse_special=self.options.parse_special,
        )
        if self._eos is None:
            return ids.astype(self._dtype), offsets
        offsets = offsets + np.arange(len(offsets))
        joined = np.full(offsets[-1], self._eos, dtype=self._dtype)
        is_text = np.ones(len(joined), dtype=bool)
        is_text[offsets[1:] - 1] = False
        joined[is_text] = ids
        return joined, offsets
