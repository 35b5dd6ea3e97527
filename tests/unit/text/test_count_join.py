"""Counts from several places as one folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import FILE, CountFolder, write_counts
from vocabshift.text.count_join import CountJoin
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED

ENGLISH = ["the mill by the river", "the river <|end|> the mill", "x" * 40]
HINDI = ["नदी लंबी है", "नदी <|end|>"]
OTHER = ["", "no label"]


def count(folder: Path, texts: Any, pattern: str = "o200k", **settings: Any) -> Path:
    settings = {"normalizer": "nfc", "special_tokens": ("<|end|>",), **settings}
    weights = settings.pop("weights", {"hi": 2.0} if "hi" in texts else None)
    corpus = Corpus.from_texts(texts, weights=weights)
    reader = CorpusReader(corpus, NAMED[pattern], by_language=True, **settings)
    folder.mkdir()
    write_counts(reader.count_words(), reader, folder)
    return folder


def join(folder: Path, parts: list[Path], memory_bytes: int = 0, **settings: Any) -> Path:
    reader = CountJoin.open(parts, **settings)
    folder.mkdir()
    counter = reader.count_words(threads=2, memory_bytes=memory_bytes, spill_folder=folder)
    write_counts(counter, reader, folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def words(folder: Path) -> dict[str | None, dict[bytes, int]]:
    counts = CountFolder.open(folder)
    found: dict[str | None, dict[bytes, int]] = {}
    for number, group in enumerate(counts.groups):
        of = found.setdefault(group.language, {})
        for data, ends, numbers in counts.read(number):
            starts = [0, *ends.tolist()]
            for start, end, times in zip(starts, ends.tolist(), numbers.tolist(), strict=False):
                of[data[start:end]] = times
    return found


@pytest.mark.parametrize("memory_bytes", [0, 1])
def test_parts_add_up_to_the_whole(tmp_path: Path, memory_bytes: int) -> None:
    """To the byte: words, statistics and fingerprint; however the parts are nested."""
    whole = count(tmp_path / "whole", {"en": ENGLISH, "hi": HINDI})
    parts = [
        count(tmp_path / "a", {"en": ENGLISH[:1]}),
        count(tmp_path / "b", {"en": ENGLISH[1:], "hi": HINDI[:1]}),
        count(tmp_path / "c", {"hi": HINDI[1:]}),
    ]
    assert files(whole) == files(join(tmp_path / "flat", parts, memory_bytes))
    inner = join(tmp_path / "inner", parts[1:])
    assert files(whole) == files(join(tmp_path / "nested", [parts[0], inner], memory_bytes))


def test_a_fingerprint_is_of_words_labels_and_weights(tmp_path: Path) -> None:
    """And not of the order of documents."""
    prints = [
        CountFolder.open(count(tmp_path / str(number), texts)).fingerprint
        for number, texts in enumerate(
            [{"en": ["a b", "c"]}, {"en": ["c", "a b"]}, {"fr": ["a b", "c"]}, {"en": ["a b", "d"]}]
        )
    ]
    assert prints[0] == prints[1]
    assert 3 == len(set(prints))
    heavy = count(tmp_path / "heavy", {"en": ["a b", "c"]}, weights={"en": 2.0})
    twice = count(tmp_path / "twice", {"en": ["a b", "c", "c"]})
    for other in (heavy, twice):
        assert prints[0] != CountFolder.open(other).fingerprint


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pattern": "gpt2"}, "b was counted with the pattern gpt2, and o200k is asked for"),
        ({"normalizer": "nfkc"}, "b was counted with the normalizer nfkc, and nfc"),
        ({"special_tokens": ()}, r"special tokens \[\], and \['<\|end\|>'\]"),
    ],
)
def test_parts_that_were_cut_in_another_way(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    parts = [
        count(tmp_path / "a", {"en": ENGLISH}),
        count(tmp_path / "b", {"en": HINDI}, **settings),
    ]
    with pytest.raises(CorpusError, match=message):
        CountJoin.open(parts)


def test_the_same_part_twice(tmp_path: Path) -> None:
    part = count(tmp_path / "a", {"en": ENGLISH})
    with pytest.raises(CorpusError, match="a is given twice"):
        CountJoin.open([part, tmp_path / "." / "a"])


def test_a_damaged_part(tmp_path: Path) -> None:
    """It is found while it is read; nothing is read twice."""
    part = count(tmp_path / "a", {"en": ENGLISH})
    document = json.loads((part / FILE).read_text("utf-8"))
    document["groups"][0]["occurrences"] += 1
    (part / FILE).write_text(json.dumps(document), "utf-8")
    with pytest.raises(CorpusError, match="count the corpus again"):
        CountJoin.open([part]).count_words()
    (part / FILE).write_text(json.dumps(document | {"corpus_fingerprint": "none"}), "utf-8")
    with pytest.raises(CorpusError, match=r"counts.json is damaged \(invalid literal.*'none'"):
        CountJoin.open([part]).count_words()


ROWS = [("b", 2, "hi"), ("a", 1, "en"), ("b", 3, "hi"), ("zero", 0, "en"), ("c", 4, None)]
WORDS = {None: {b"c": 4}, "en": {b"a": 1}, "hi": {b"b": 5}}


def table(rows: list[tuple[Any, ...]] = ROWS, word: Any = None, count: Any = None) -> pa.Table:
    return pa.table(
        {
            "word": pa.array([row[0] for row in rows], pa.string()).cast(word or pa.string()),
            "count": pa.array([row[1] for row in rows], count or pa.int64()),
            "language": pa.array([row[2] for row in rows], pa.string()),
        }
    )


@pytest.mark.parametrize(
    ("word", "count"),
    [
        (pa.string(), pa.int64()),
        (pa.binary(), pa.uint64()),
        (pa.large_binary(), pa.int8()),
        (pa.dictionary(pa.int32(), pa.string()), pa.uint32()),
    ],
)
def test_tables_of_other_programs(tmp_path: Path, word: Any, count: Any) -> None:
    """Unsorted rows, several of a word, labels; the same folder however they are divided."""
    pq.write_table(table(word=word, count=count), tmp_path / "words.parquet")
    one = join(tmp_path / "one", [tmp_path / "words.parquet"], pattern=NAMED["gpt2"])
    assert WORDS == words(one)
    CountFolder.open(one).require(NAMED["gpt2"], None, ())
    assert [None, "en", "hi"] == [group.language for group in CountFolder.open(one).groups]
    pq.write_table(
        table([("c", 4, None), ("b", 5, "hi"), ("a", 1, "en")]), tmp_path / "sums.parquet"
    )
    sums = join(tmp_path / "sums", [tmp_path / "sums.parquet"], pattern=NAMED["gpt2"])
    assert files(one) == files(sums)
    split = tmp_path / "split"
    for name, rows in (
        ("part-1.parquet", [*ROWS[2:], ("a", 1, "en")]),
        ("deeper/part-0.parquet", ROWS[:1]),
        ("_temporary/part-0.parquet", ROWS),  # unfinished work of Spark
    ):
        (split / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table(rows), split / name)
    assert files(one) == files(join(tmp_path / "other", [split], pattern=NAMED["gpt2"]))


@pytest.mark.parametrize("encoding", [None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
@pytest.mark.parametrize("most_bytes", [1, 700])
def test_rows_that_are_read_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str | None, most_bytes: int
) -> None:
    """Words of all lengths in pages and groups of a few rows: what was written is read."""
    rows = [(f"{'x' * (n % 61)}{n % 13}", n, ("hi", "en", None)[n % 3]) for n in range(1, 800)]
    expected: dict[str | None, dict[bytes, int]] = {}
    for word, number, language in rows:
        of = expected.setdefault(language, {})
        of[word.encode()] = of.get(word.encode(), 0) + number
    pq.write_table(
        table(rows),
        tmp_path / "words.parquet",
        use_dictionary=["word", "language"] if encoding is None else False,
        column_encoding=encoding and {"word": encoding, "language": encoding},
        row_group_size=300,
        data_page_size=500,
        write_batch_size=20,
    )
    monkeypatch.setattr("vocabshift.text.parquet._BATCH_BYTES", most_bytes)
    assert expected == words(
        join(tmp_path / "a", [tmp_path / "words.parquet"], pattern=NAMED["gpt2"])
    )


BOMB = """
import sys
from pathlib import Path
import pyarrow
from vocabshift.text.count_shards import ForeignShard
n_bytes, blocks = 0, ForeignShard(Path(sys.argv[1])).read()
while n_bytes < 120 << 20:
    n_bytes += len(next(blocks)[1][0])
print(pyarrow.default_memory_pool().max_memory() >> 20)
"""


@pytest.mark.parametrize("column", ["word", "language"])
@pytest.mark.parametrize("encoding", [None, "PLAIN", "DELTA_BYTE_ARRAY"])
def test_small_tables_of_huge_rows(tmp_path: Path, column: str, encoding: str | None) -> None:
    """A string of 1 MB in every row: at most 64 MB of them at once, and some copies of these."""
    n_rows = 250 if encoding else 65_536
    same = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), ["a" * (1 << 20)])
    other = pa.DictionaryArray.from_arrays(same.indices, ["b" * (1 << 19)])
    strings = {"word": other, "language": other, column: same}
    if encoding:
        strings = {name: values.cast("large_string") for name, values in strings.items()}
    pq.write_table(
        pa.table({**strings, "count": [1] * n_rows}),
        tmp_path / "bomb.parquet",
        compression="zstd",
        store_schema=False,
        write_batch_size=16,
        use_dictionary=["word", "language"] if encoding is None else False,
        column_encoding=encoding and {"word": encoding, "language": encoding},
    )
    assert (tmp_path / "bomb.parquet").stat().st_size < 100_000
    run = [sys.executable, "-c", BOMB, str(tmp_path / "bomb.parquet")]
    found = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert int(found) < 250


def test_languages_in_paths(tmp_path: Path) -> None:
    """As Spark writes them with `partitionBy("language")`."""
    for name, rows in (("hi", ROWS[:1] + ROWS[2:3]), ("en", ROWS[1:2])):
        (tmp_path / "in" / f"language={name}").mkdir(parents=True)
        plain = table(rows).drop_columns("language")
        pq.write_table(plain, tmp_path / "in" / f"language={name}" / "part.parquet")
    null = tmp_path / "in" / "language=__HIVE_DEFAULT_PARTITION__"
    null.mkdir()
    pq.write_table(table(ROWS[4:]).drop_columns("language"), null / "part.parquet")
    assert WORDS == words(join(tmp_path / "out", [tmp_path / "in"], pattern=NAMED["gpt2"]))
    pq.write_table(table(ROWS[1:2]), tmp_path / "in" / "language=hi" / "other.parquet")
    with pytest.raises(
        CorpusError, match=r"other\.parquet has rows of 'en', and its folder says hi"
    ):
        join(tmp_path / "no", [tmp_path / "in"], pattern=NAMED["gpt2"])


def test_counts_beyond_what_is_signed(tmp_path: Path) -> None:
    """They are counts; only text that would need as many bytes cannot be trained on."""
    pq.write_table(table([("a", 2**63, "en")], count=pa.uint64()), tmp_path / "words.parquet")
    out = join(tmp_path / "out", [tmp_path / "words.parquet"], pattern=NAMED["gpt2"])
    assert {"en": {b"a": 2**63}} == words(out)
    reader = CountJoin.open([out])
    reader.count_words()
    reader.sampling_alpha = None
    with pytest.raises(ValueError, match=r"words have 9,223,372,036,854,775,808 bytes, .* too"):
        reader.fixed_point_weights()


def test_tables_beside_folders(tmp_path: Path) -> None:
    """They were cut as the folders say."""
    part = count(tmp_path / "a", {"en": ["a b"]})
    pq.write_table(table(), tmp_path / "words.parquet")
    out = join(tmp_path / "out", [part, tmp_path / "words.parquet"])
    assert {"en": {b"a": 2, b" b": 1}, None: {b"c": 4}, "hi": {b"b": 5}} == words(out)
    CountFolder.open(out).require(NAMED["o200k"], "nfc", ("<|end|>",))
    groups = [
        (group.language, group.documents, group.bytes) for group in CountFolder.open(out).groups
    ]
    assert [("en", 1, 4), (None, 0, 4), ("hi", 0, 5)] == groups


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns("count"), r"needed are word \(binary or string\), count"),
        (lambda t: t.set_column(0, "word", pa.array(range(5))), "needed are word"),
        (lambda t: t.set_column(1, "count", pa.array([0.5] * 5)), "needed are word"),
        (lambda t: t.set_column(2, "language", pa.array(range(5))), "needed are word"),
        (lambda t: t.set_column(1, "count", pa.array([1, None, 1, 1, 1])), "holds nulls"),
        (lambda t: t.set_column(1, "count", pa.array([1, -1, 1, 1, 1])), "is damaged"),
        (lambda t: t.set_column(0, "word", pa.array(["", *"abcd"])), "holds an empty word"),
        (lambda t: t.set_column(0, "word", pa.array([b"\xff"] * 5)), "not UTF-8"),
        (lambda t: t.set_column(2, "language", pa.array([" "] * 5)), "a language that is blank"),
        (lambda t: t.slice(0, 0), "no word that occurs"),
        (lambda t: t.set_column(1, "count", pa.array([0] * 5)), "no word that occurs"),
    ],
)
def test_tables_that_are_no_counts(tmp_path: Path, change: Any, message: str) -> None:
    pq.write_table(change(table()), tmp_path / "words.parquet")
    with pytest.raises(CorpusError, match=rf"words\.parquet.*{message}"):
        CountJoin.open([tmp_path / "words.parquet"], NAMED["gpt2"]).count_words()


@pytest.mark.parametrize("labelled", [True, False])
def test_what_tasks_of_an_engine_counted(tmp_path: Path, labelled: bool) -> None:
    """Any engine writes what CountPieces returns; its statistics make it equal to the byte."""
    from vocabshift.engines import CountPieces

    label = {"language": "language"} if labelled else {}
    pieces = CountPieces(normalizer="nfc", special_tokens=("<|end|>",), **label)
    languages = {"en": ENGLISH, "hi": HINDI} if labelled else {None: ENGLISH}
    rows = [(text, language) for language, texts in languages.items() for text in texts]
    parts = tmp_path / "parts"
    parts.mkdir()
    for number in (0, 1):
        columns = zip(*rows[number::2], strict=True)
        given = pa.record_batch(dict(zip(("text", "language"), map(list, columns), strict=True)))
        counted = pa.Table.from_batches(pieces(iter([given])))
        pq.write_table(counted, parts / f"{number}.parquet")
    texts = {"en": ENGLISH, "hi": HINDI} if labelled else ENGLISH
    corpus = Corpus.from_texts(texts)
    reader = CorpusReader(corpus, NAMED["o200k"], "nfc", ("<|end|>",), by_language=True)
    (tmp_path / "whole").mkdir()
    write_counts(reader.count_words(), reader, tmp_path / "whole")
    settings = {"normalizer": "nfc", "special_tokens": ("<|end|>",)}
    joined = join(tmp_path / "joined", [parts], pattern=NAMED["o200k"], **settings)
    assert files(tmp_path / "whole") == files(joined)


@pytest.mark.parametrize("in_path", [True, False])
def test_a_language_of_nulls_alone(tmp_path: Path, in_path: bool) -> None:
    """It is no group, as in `count`; nor is what has no language but the fingerprint."""
    from vocabshift.engines import CountPieces

    whole = count(tmp_path / "whole", {"en": ENGLISH}, normalizer=None, special_tokens=())
    rows = {"text": [*ENGLISH, None], "language": [*["en"] * len(ENGLISH), "fr"]}
    batches = CountPieces(language="language")(iter([pa.record_batch(rows)]))
    counted = pa.Table.from_batches(batches)
    if in_path:
        pq.write_to_dataset(counted, tmp_path / "parts", partition_cols=["language"])
    else:
        pq.write_table(counted, tmp_path / "parts")
    joined = join(tmp_path / "joined", [tmp_path / "parts"], pattern=NAMED["o200k"])
    assert files(whole) == files(joined)


def test_labels_as_views(tmp_path: Path) -> None:
    part = tmp_path / "words.parquet"
    views = table().set_column(2, "language", table()["language"].cast(pa.string_view()))
    try:
        pq.write_table(views, part)
    except pa.ArrowNotImplementedError:
        pytest.skip("before pyarrow 21, views cannot be written")
    assert WORDS == words(join(tmp_path / "out", [part], pattern=NAMED["gpt2"]))


def test_folders_of_counts_inside_of_a_part(tmp_path: Path) -> None:
    """Their Parquet files alone would lose the languages and the statistics."""
    (tmp_path / "all").mkdir()
    part = count(tmp_path / "all" / "00000", {"en": ENGLISH})
    for given in (tmp_path / "all", part / "words-00000.parquet"):
        with pytest.raises(CorpusError, match="00000 is a folder of counts in itself; name it"):
            CountJoin.open([given], NAMED["o200k"])


def test_bad_rows_of_an_engine(tmp_path: Path) -> None:
    from vocabshift.engines import CountPieces

    pieces = CountPieces(bad_rows="keep")
    given = pa.record_batch({"text": [b"good", b"\xff"]})
    pq.write_table(pa.Table.from_batches(pieces(iter([given]))), tmp_path / "words.parquet")
    with pytest.raises(CorpusError, match="rows of text that could not be read"):
        CountJoin.open([tmp_path / "words.parquet"], NAMED["o200k"]).count_words()


def test_parts_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for part in (tmp_path / "empty", tmp_path / "missing"):
        with pytest.raises(CorpusError, match=f"{part.name} holds no counts"):
            CountJoin.open([part])
    (tmp_path / "text.txt").write_text("text", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"text\.txt is damaged"):
        CountJoin.open([tmp_path / "text.txt"])
    pq.write_table(table(), tmp_path / "words.parquet")
    with pytest.raises(CorpusError, match=r"do not say how .* \(--pattern\)"):
        CountJoin.open([tmp_path / "words.parquet"])
    reader = CountJoin.open([tmp_path / "words.parquet"], NAMED["gpt2"])
    most = table([("a", 2**62, "en")] * 8)
    pq.write_table(most, tmp_path / "words.parquet")
    with pytest.raises(ValueError, match=r"2\^64 times"):
        reader.count_words().sorted_blocks(lambda *_: None)
