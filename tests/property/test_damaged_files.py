"""Any file that someone else may have written is read, or refused in one line.

Tokenizer files have a test of their own (unit/tokenizer/formats), GGUF models another
(test_convert_damage), and what training reads and writes a third (test_damaged_training).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabshift as vs
from damage import check_damage, sound_copy
from strategies import examples
from vocabshift.cli.config import read_toml
from vocabshift.models.facts import model_facts
from vocabshift.models.shards import open_checkpoint
from vocabshift.results import read_results
from vocabshift.storage.outcome import read_history, write_provenance
from vocabshift.surgery.overrides import read as read_table
from vocabshift.surgery.overrides import resolve
from vocabshift.text.count_folder import write_counts
from vocabshift.text.count_join import CountJoin
from vocabshift.text.counting import CorpusReader
from vocabshift.text.patterns import NAMED
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.formats.load import open_tokenizer

TEXTS = ["some words", "some more words", "राम का घर", "def f(x): return x"]
PLAIN = "\n".join(TEXTS).encode()


def lines(folder: Path) -> Path:
    file = folder / "text.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")
    return file


def table(folder: Path) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    long = "x" * 70_000  # so that the entries of the dictionary are looked at
    pq.write_table(pa.table({"text": [*TEXTS, long]}), folder / "text.parquet")
    return folder / "text.parquet"


def counts_of_others(folder: Path) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    words = [f"{number:030}" for number in range(100)]
    columns = {"word": words, "count": range(1, 101), "language": ["hin", None, "eng", "eng"] * 25}
    pq.write_table(pa.table({name: [*own] for name, own in columns.items()}), folder / "a.parquet")
    return folder / "a.parquet"


def gzipped(folder: Path) -> Path:
    import gzip

    file = folder / "text.txt.gz"
    file.write_bytes(gzip.compress(PLAIN))
    return file


def xz(folder: Path) -> Path:
    import lzma

    file = folder / "text.jsonl.xz"
    file.write_bytes(lzma.compress(lines(folder).read_bytes()))
    return file


def zstandard(folder: Path) -> Path:
    zstandard = pytest.importorskip("zstandard")
    file = folder / "text.txt.zst"
    # Two frames, as pzstd writes them, with the size and the checksum that each may have.
    halves = PLAIN[: len(PLAIN) // 2], PLAIN[len(PLAIN) // 2 :]
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    file.write_bytes(b"".join(map(compressor.compress, halves)))
    return file


def counts(folder: Path) -> Path:
    pytest.importorskip("pyarrow")
    corpus = vs.Corpus.from_texts({"eng": TEXTS})
    reader = CorpusReader(corpus, NAMED["o200k"], None, (), by_language=True)
    (folder / "counts").mkdir()
    write_counts(reader.count_words(), reader, folder / "counts")
    return folder / "counts"


def model(folder: Path) -> Path:
    from safetensors.numpy import save_file

    out = folder / "model"
    out.mkdir()
    sizes = {"hidden_size": 4, "intermediate_size": 8, "num_hidden_layers": 1}
    config = {"model_type": "llama", "vocab_size": 8, "num_attention_heads": 2, **sizes}
    (out / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shapes = {"model.embed_tokens.weight": (8, 4), "model.norm.weight": (4,)}
    names: dict[str, str] = {}
    for number, (name, shape) in enumerate(shapes.items()):
        names[name] = f"model-{number}.safetensors"
        save_file({name: np.ones(shape, np.float32)}, out / names[name])
    index = json.dumps({"metadata": {"total_size": 144}, "weight_map": names})
    (out / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    return out


def read_model(folder: Path) -> None:
    checkpoint = open_checkpoint(folder)
    for _, stored in checkpoint.tensors.values() if checkpoint else ():
        assert stored.shape is not None
    model_facts(folder)


def map_of_ids(folder: Path) -> Path:
    table = np.array([0, 1, -1, 2], dtype=np.int64)
    return id_map.TokenIdMap("one", "other", table, 3, {"gone": 2}).save(folder)


def provenance(folder: Path) -> Path:
    out = folder / "made"
    out.mkdir()
    write_provenance(out, "transfer", {"model": str(folder / "none")}, {"rows": 3})
    return out


def results(folder: Path) -> Path:
    row = {"subject": "a", "language": "eng", "metric": "fertility", "value": 1.5, "n": 3}
    row |= {"ci_low": 1.0, "ci_high": 2.0, "tokenizer_sha256": None, "text_sha256": None}
    file = folder / "results.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return file


def packed(folder: Path) -> Path:
    corpus = vs.Corpus.from_texts({"eng": TEXTS})
    tokenizer = vs.BpeTrainer(vocab_size=270).train(corpus)
    vs.pack_corpus(tokenizer, corpus, folder / "packed")
    return folder / "packed"


def settings(folder: Path) -> Path:
    file = folder / "run.toml"
    file.write_text(
        'model = "models/one"\ndata = ["eng=text.txt"]\nout = "out"\nn_bytes = 1000\n'
        'learning_rate = 3e-4\nheld_out = ["eng=other.txt"]\n[[phases]]\ntrained = "all"\n'
        "n_bytes = 10\n",
        encoding="utf-8",
    )
    return file


def overrides(folder: Path) -> Path:
    file = folder / "overrides.toml"
    file.write_text('"a" = "b"\n"c" = ["d", "e"]\n', encoding="utf-8")
    return file


def read_texts(file: Path) -> None:
    list(vs.Corpus.from_files({"eng": file}).texts())


def read_counts(folder: Path) -> None:
    found = vs.CountFolder.open(folder)
    for number in range(len(found.groups)):
        list(found.read(number))


def read_settings(file: Path) -> None:
    vs.CptConfig.from_mapping(read_toml(str(file)))


def read_overrides(file: Path) -> None:
    tokenizer = vs.BpeTrainer(vocab_size=260).train(vs.Corpus.from_texts({"eng": TEXTS}))
    resolve(read_table(file), tokenizer, tokenizer)


DOORS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "JSONL": (lines, read_texts),
    "Parquet": (table, read_texts),
    "gzip": (gzipped, read_texts),
    "xz": (xz, read_texts),
    "Zstandard": (zstandard, read_texts),
    "counts": (counts, read_counts),
    "counts of others": (
        counts_of_others,
        lambda file: CountJoin.open([file], NAMED["gpt2"]).count_words(),
    ),
    "model": (model, read_model),
    "token map": (map_of_ids, id_map.load),
    "provenance": (provenance, lambda folder: list(read_history(folder))),
    "results": (results, lambda file: read_results([file])),
    "packed ids": (packed, vs.PackedIds.open),
    "settings": (settings, read_settings),
    "overrides": (overrides, read_overrides),
}


@pytest.fixture(scope="module", params=[*DOORS])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Callable[[Path], object]]:
    """A sound file or folder, and what reads it."""
    write, read = DOORS[request.param]
    return sound_copy(write, read, tmp_path_factory), read


@examples(50)
@given(st.data())
def test_damage_is_refused_in_one_line_or_survived(
    door: tuple[Path, Callable[[Path], object]], data: st.DataObject
) -> None:
    # Of settings and of overrides the command line has one file, and the line names the key.
    check_damage(*door, data, nameless=("run.toml", "overrides.toml"))


@pytest.mark.parametrize("shape", [[10**4200] * 3000, [1 << 62] * 300_000], ids=["long", "many"])
def test_shapes_that_no_array_can_have(shape: list[int], tmp_path: Path) -> None:
    """Their product alone would take minutes."""
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}
    header = json.dumps({"a": entry}).encode()
    data = len(header).to_bytes(8, "little") + header
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged header .*no array"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("score", [10**400, -(10**400), float("inf"), float("nan"), True])
def test_scores_are_numbers_that_a_float_holds(score: Any, tmp_path: Path) -> None:
    """JSON has others: a whole number of any length, and in Python NaN."""
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", score]]}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({"version": "1.0", "model": model}), encoding="utf-8")
    with pytest.raises(ValueError, match="no list of tokens with scores"):
        open_tokenizer(tmp_path)


def test_numbers_in_rows_and_counts_fit_a_float(tmp_path: Path) -> None:
    """A whole number of 400 digits is JSON, and would overflow where it is first used."""
    file = results(tmp_path)
    row = json.loads(file.read_text(encoding="utf-8"))
    for key in ("value", "n", "ci_low"):
        file.write_text(json.dumps(row | {key: 10**400}), encoding="utf-8")
        with pytest.raises(ValueError, match="no row of results"):
            read_results([file])
    description = counts(tmp_path) / "counts.json"
    document = json.loads(description.read_text(encoding="utf-8"))
    document["groups"][0]["weight"] = 10**400
    description.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ValueError, match="damaged"):
        vs.CountFolder.open(description.parent)
