"""Steps of datatrove pipelines: counting words, and its own tokenizer steps with our encoder.

`EncodeDocuments`, `EncodeForMegatron` and `CountTokens` take the arguments of datatrove's
`DocumentTokenizer`, `MegatronDocumentTokenizer` and `TokensCounter`, write the same files and keep
the same statistics. Needs the extra `vocabshift[datatrove]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.engines.rows import BatchCorpus
from vocabshift.engines.words import CountPieces
from vocabshift.storage.outcome import outcome
from vocabshift.text.count_folder import write_counts
from vocabshift.text.patterns import Pattern
from vocabshift.tokenizer.any_tokenizer import Ids
from vocabshift.tokenizer.formats.encoder import Encoder

try:
    from datatrove.pipeline.base import PipelineStep
    from datatrove.pipeline.tokens.counter import TokensCounter
    from datatrove.pipeline.tokens.megatron_tokenizer import MegatronDocumentTokenizer
    from datatrove.pipeline.tokens.tokenizer import DocumentTokenizer, TokenizedFile
    from datatrove.utils.batching import batched
    from datatrove.utils.tokenization import PipelineStepWithTokenizer
except ImportError as error:
    raise ImportError(
        "vocabshift.engines.datatrove needs datatrove; install it with: "
        "pip install 'vocabshift[datatrove]'"
    ) from error

_DOCUMENTS = 1000  # of a record batch


class CountWords(PipelineStep):  # type: ignore[misc]
    """Counts the pre-tokens of its documents, by language; the last step of a pipeline.

    Each task writes a folder of counts, `OUTPUT/00000` and so on, which appears whole or not at
    all. `vocabshift count --join OUTPUT/*` adds them up: the result is that of `vocabshift count`
    on all the text, to the byte.
    """

    name = "🧮 Words"
    type = "🔢 - VOCABSHIFT"

    def __init__(
        self,
        output_folder: str | Path,
        *,
        pattern: str | Pattern = "o200k",
        normalizer: str | None = None,
        special_tokens: Iterable[str] = (),
        language: str | None = "language",
        memory_bytes: int = CountPieces.memory_bytes,
    ) -> None:
        """What is counted; ValueError for an unknown pattern or normalizer.

        output_folder: on a file system that all workers share. pattern, normalizer,
            special_tokens: as for `vocabshift count`. language: key of the language in a document's
            metadata; documents without it have none. None: no language at all.
        memory_bytes: budget of a task for its words; those beyond it go to disk.
        """
        super().__init__()
        self.output_folder = Path(output_folder)
        self.key = language
        self.count = CountPieces(
            pattern=pattern,
            normalizer=normalizer,
            special_tokens=tuple(special_tokens),
            memory_bytes=memory_bytes,
            language=None if language is None else "language",
        )

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Any:  # noqa: ARG002
        """Count all documents of a task; an older folder of the task is replaced."""
        self.output_folder.mkdir(parents=True, exist_ok=True)
        reader = self.count.reader(BatchCorpus(self._batches(data or ()), self.count))
        with outcome("count", self.output_folder / f"{rank:05d}", force=True) as output:
            counter = reader.count_words(
                memory_bytes=self.count.memory_bytes, spill_folder=output.folder
            )
            write_counts(counter, reader, output.folder)
        self.stat_update("documents", value=reader.n_documents, unit="task")
        self.stat_update("bytes", value=reader.n_bytes, unit="task")
        n_words = sum(map(counter.size, range(counter.group_count)))
        self.stat_update("words", value=n_words, unit="task")
        return ()

    def _batches(self, data: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for documents in batched(data, _DOCUMENTS):
            with self.track_time(unit="batch"):
                texts = [each.text for each in documents]
                columns = {"text": pa.array(texts, pa.large_string())}  # may be 2 GiB and more
                if self.key is not None:
                    labels = [each.metadata.get(self.key) for each in documents]
                    columns["language"] = pa.array(labels, pa.string())
                batch = pa.record_batch(columns)
            yield batch


class _WithEncoder:
    """What a `PipelineStepWithTokenizer` needs to encode with the core."""

    tokenizer_name_or_path: str | None

    @cached_property
    def tokenizer(self) -> _Tokenizer:
        """The tokenizer that datatrove would load, its post-processor included, compiled."""
        folder = Path(self.tokenizer_name_or_path or "")
        if (folder / "tokenizer.json").is_file():  # datatrove takes files and Hub names
            self.tokenizer_name_or_path = str(folder / "tokenizer.json")
        loaded: cached_property[Any] = PipelineStepWithTokenizer.tokenizer
        tokenizer = loaded.func(self)
        if tokenizer.truncation is not None or tokenizer.padding is not None:
            raise ValueError(
                f"{self.tokenizer_name_or_path} truncates or pads every text, which our encoder "
                'does not; set "truncation" and "padding" to null in a copy of the file'
            )
        return _Tokenizer(Encoder(tokenizer))


@dataclass(frozen=True, slots=True)
class _Encoding:
    ids: Ids


class _Tokenizer:
    """The methods of a `tokenizers.Tokenizer` that datatrove's steps call."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def get_vocab_size(self) -> int:
        """Every id is below."""
        return self.encoder.tokenizer.row_count

    def encode_batch(self, texts: list[str]) -> list[_Encoding]:
        """The ids of the texts, with those of the post-processor."""
        ids, offsets = self.encoder.encode_batch(texts, add_special_tokens=True)
        return [_Encoding(part) for part in np.split(ids, offsets[1:-1])]


class EncodeDocuments(_WithEncoder, DocumentTokenizer):  # type: ignore[misc]
    """datatrove's `DocumentTokenizer` with our encoder: the same arguments, files and counters.

    `tokenizer_name_or_path` may also be a folder. Loss masks (`save_loss_metadata`) are refused:
    they need the places of characters, which our encoder does not report.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.save_loss_metadata:
            raise ValueError("save_loss_metadata needs datatrove's own DocumentTokenizer")

    def write_unshuffled(self, data: Any, filename: str) -> Any:
        """Encode the documents into one file, batch by batch."""
        is_shuffled = self.shuffle_documents or self.shuffle_chunk_size
        file = TokenizedFile(
            (is_shuffled and self.local_working_dir) or self.output_folder,
            filename,
            save_index=self.save_index or is_shuffled,
            upload_block_size=self.upload_block_size,
            tokenizer_name_or_path=self.tokenizer_name_or_path,
            save_final_metadata=self.save_final_metadata,
            token_size=self.token_size,
        )
        for documents in batched(data, self.batch_size):
            with self.track_time(unit="batch"):
                ids, offsets = self.tokenizer.encoder.encode_batch(
                    [document.text for document in documents], add_special_tokens=True
                )
                stored = ids.astype(f"<u{self.token_size}")
                file.write_bytes(stored.tobytes(), doc_ends=offsets[1:].tolist())
                for n_tokens in np.diff(offsets).tolist():
                    self.stat_update("tokens", value=n_tokens)
        file.close()
        return file


class EncodeForMegatron(_WithEncoder, MegatronDocumentTokenizer):  # type: ignore[misc]
    """datatrove's `MegatronDocumentTokenizer` with our encoder: the same arguments and files."""


class CountTokens(_WithEncoder, TokensCounter):  # type: ignore[misc]
    """datatrove's `TokensCounter` with our encoder: sets `token_count` of each document."""
