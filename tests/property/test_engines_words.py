"""Counts of any partitioning of the text, added up in any order, are those of the local command."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import documents, examples
from vocabshift.engines.sums import FIGURES, PackSums, Sums
from vocabshift.engines.words import CountPieces
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import write_counts
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import get_pattern

corpora = st.lists(documents(max_documents=5), min_size=1, max_size=3).filter(
    lambda languages: all("".join(texts) for texts in languages)
)


def added_up(batches: list[pa.RecordBatch], part: int) -> pa.RecordBatch:
    """What an engine does with the batches of all tasks."""
    sums: Counter[tuple[str | None, bytes]] = Counter()
    for batch in batches:
        for row in batch.to_pylist():
            sums[row["language"], row["word"]] += row["count"]
    rows = [*sums.items()]
    random.Random(3).shuffle(rows)
    return pa.record_batch(
        {
            "part": pa.array([part] * len(rows), pa.int32()),
            "language": pa.array([language for (language, _), _ in rows], pa.string()),
            "word": pa.array([word for (_, word), _ in rows], pa.binary()),
            "count": pa.array([count for _, count in rows], pa.int64()),
        }
    )


@examples(25)
@given(
    texts=corpora,
    seed=st.integers(0, 99),
    n_tasks=st.integers(1, 4),
    memory_bytes=st.sampled_from((0, 1)),
    pattern=st.sampled_from(("o200k", "deepseek", "[^ ]+| +")),
    normalizer=st.sampled_from((None, "nfc")),
    by_column=st.booleans(),
)
def test_any_partitioning_gives_the_bytes_of_the_local_command(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[list[str]],
    seed: int,
    n_tasks: int,
    memory_bytes: int,
    pattern: str,
    normalizer: str | None,
    by_column: bool,
) -> None:
    draw, special = random.Random(seed), ("<|e|>", "e")
    labels = [f"l{i}" for i in range(len(texts))]
    weights = [1.0] * len(texts) if by_column else [1.0, 2.5, 1.0][: len(texts)]
    corpus = Corpus.from_texts(
        dict(zip(labels, texts, strict=True)), weights=dict(zip(labels, weights, strict=True))
    )
    reader = CorpusReader(corpus, get_pattern(pattern), normalizer, special, by_language=True)
    local, made = (tmp_path_factory.mktemp(name) for name in ("local", "made"))
    write_counts(reader.count_words(), reader, local)

    rows = [(label, text) for label, own in zip(labels, texts, strict=True) for text in own]
    parts = [rows] if by_column else [[r for r in rows if r[0] == label] for label in labels]
    counted, counts = [], []
    for number, part in enumerate(parts):
        count = CountPieces(
            pattern,
            normalizer,
            special,
            language="lang" if by_column else None,
            label=None if by_column else labels[number],
            weight=weights[number],
            memory_bytes=memory_bytes,
        )
        counts.append(count)
        draw.shuffle(part)
        tasks: list[list[pa.RecordBatch]] = [[] for _ in range(n_tasks)]
        for label, text in part:
            batch = pa.record_batch({"text": [text], "lang": [label]})
            draw.choice(tasks).append(batch)
        counted.append(added_up([out for task in tasks for out in count(task)], number))
    packed = [row for batch in PackSums()(counted) for row in batch.to_pylist()]
    draw.shuffle(packed)
    sums = Sums(
        counts[0].reader(corpus),
        weights=weights,
        names=labels,
        memory_bytes=memory_bytes,
        folder=made,
    )
    for row in sorted(packed, key=lambda row: row["kind"] != FIGURES):
        sums.add(row)
    sums.write()
    assert {file.name: file.read_bytes() for file in local.iterdir()} == {
        file.name: file.read_bytes() for file in made.iterdir()
    }
