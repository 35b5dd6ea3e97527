"""datatrove's pipelines: the files and counters of its own steps; workers that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import small_models
from vocabshift.cli.main import main

pytest.importorskip("datatrove", reason="datatrove is not installed: pip install datatrove")
pytestmark = pytest.mark.filterwarnings("ignore")  # of datatrove and what it imports

END = "</s>"
TEXTS = [f"the cat {number} sat{END} on नदी " * (number % 4) for number in range(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_models.old_tokenizer().save_pretrained(tmp_path_factory.mktemp("datatrove") / "it")


def documents() -> Any:
    from datatrove.data import Document

    languages = ("en", "hi", None)
    return [
        Document(text, str(number), metadata={"language": languages[number % 3]})
        for number, text in enumerate(TEXTS)
    ]


def files(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in sorted(found.items())}


def tokenizer_steps(name: str) -> tuple[Any, Any]:
    from datatrove.pipeline.tokens.megatron_tokenizer import MegatronDocumentTokenizer
    from datatrove.pipeline.tokens.tokenizer import DocumentTokenizer

    from vocabshift.engines.datatrove import EncodeDocuments, EncodeForMegatron

    if name == "megatron":
        return MegatronDocumentTokenizer, EncodeForMegatron
    return DocumentTokenizer, EncodeDocuments


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("documents", {"shuffle_documents": False}),
        ("documents", {"eos_token": END, "seed": 3, "max_tokens_per_file": 100}),
        ("documents", {"seed": 3, "shuffle_chunk_size": 16, "save_filename": "part"}),
        ("megatron", {"eos_token": END}),
        ("megatron", {"eos_token": None}),
    ],
)
def test_drop_ins(folder: Path, tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    """To the byte, and to the last counter."""
    stats = []
    for out, step in zip(("theirs", "ours"), tokenizer_steps(name), strict=True):
        done = step(
            output_folder=str(tmp_path / out),
            tokenizer_name_or_path=str(folder / "tokenizer.json"),
            batch_size=7,
            **options,
        )
        assert [] == list(done(iter(documents()), 0, 1) or ())
        stats.append(done.stats.to_dict()["stats"]["tokens"])
    assert files(tmp_path / "theirs") == files(tmp_path / "ours")
    assert files(tmp_path / "ours")
    assert stats[0] == stats[1]


def test_tokens_are_counted(folder: Path) -> None:
    """From a folder too, which datatrove's own step does not take."""
    from datatrove.pipeline.tokens.counter import TokensCounter

    from vocabshift.engines.datatrove import CountTokens

    path = str(folder / "tokenizer.json")
    wanted = TokensCounter(path, count_eos_token=True)(iter(documents()))
    found = CountTokens(str(folder), count_eos_token=True, batch_size=7)(iter(documents()))
    assert [each.metadata for each in wanted] == [each.metadata for each in found]


def test_loss_masks_are_refused(folder: Path, tmp_path: Path) -> None:
    from vocabshift.engines.datatrove import EncodeDocuments

    with pytest.raises(ValueError, match="save_loss_metadata needs datatrove's own"):
        EncodeDocuments(str(tmp_path), str(folder), save_loss_metadata=True)


@pytest.mark.parametrize("what", ["truncation", "padding"])
def test_texts_that_would_be_cut_or_padded(folder: Path, tmp_path: Path, what: str) -> None:
    """datatrove's steps do as the file says, and ours would write other ids."""
    import tokenizers

    from vocabshift.engines.datatrove import CountTokens

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    if what == "padding":
        tokenizer.enable_padding()
    else:
        tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match="truncates or pads every text"):
        list(CountTokens(str(tmp_path)).run(iter(documents())))


def test_texts_beyond_2_gib(tmp_path: Path) -> None:
    """Offsets of 64 bits, since a batch is a thousand documents of any length."""
    import pyarrow as pa

    from vocabshift.engines.datatrove import CountWords

    (batch,) = CountWords(tmp_path)._batches(documents())
    assert pa.large_string() == batch.schema.field("text").type


def test_words_are_counted(tmp_path: Path) -> None:
    """Languages come from the metadata; an empty task and a task done again change nothing."""
    from vocabshift.engines.datatrove import CountWords

    settings = {"pattern": "gpt2", "normalizer": "nfc", "special_tokens": [END]}
    step = CountWords(tmp_path / "parts", **settings)
    for rank in (0, 1, 2, 3, 1):
        assert [] == list(step(iter(documents()[rank:40:3] if rank < 3 else []), rank, 4))
    n_documents = sum(map(bool, [*TEXTS, *TEXTS[1::3]]))
    assert n_documents == step.stats.to_dict()["stats"]["documents"]["total"]
    parts = sorted(map(str, (tmp_path / "parts").iterdir()))
    assert ["00000", "00001", "00002", "00003"] == [Path(part).name for part in parts]
    assert 0 == main(["count", "--join", *parts, "-o", str(tmp_path / "joined")])
    specs = []
    for name, first in (("en=", 0), ("hi=", 1), ("", 2)):
        file = tmp_path / f"{first}.txt"
        file.write_text("\n".join(TEXTS[first::3]), encoding="utf-8")
        specs.append(f"{name}{file}")
    words = ["--pattern", "gpt2", "--normalizer", "nfc", "--special-tokens", END]
    assert 0 == main(["count", *specs, "-o", str(tmp_path / "whole"), *words])
    assert files(tmp_path / "whole") == files(tmp_path / "joined")


QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

PIPELINE = """
import os, signal, sys
from pathlib import Path
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from vocabshift.engines.datatrove import CountWords, EncodeDocuments

base, tokenizer = map(Path, sys.argv[1:3])


class Read:
    def __call__(self, data, rank=0, world_size=1):
        for number in range(rank, 400, world_size):
            mark = base / "killed"
            if rank == 1 and number > 200 and not mark.exists():
                mark.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
            yield Document(f"the cat {number} sat", str(number))


def pipeline(step, logs):
    LocalPipelineExecutor(
        [Read(), step], tasks=3, workers=2, logging_dir=str(base / logs), start_method="fork"
    ).run()


if sys.argv[3] == "count":
    pipeline(CountWords(base / "out"), "logs")
else:
    pipeline(EncodeDocuments(str(base / "out"), str(tokenizer), seed=1), "logs")
"""


def run_and_kill(command: list[str], base: Path) -> None:
    """Run the pipeline until all tasks but the killed one are done: datatrove waits for it."""
    done, killed = base / "logs" / "completions", base / "killed"
    with subprocess.Popen(command, **QUIET, start_new_session=True) as process:
        try:
            for _ in range(10_000):  # minutes: a task that fails may be waited for, too
                if process.poll() is not None:
                    break
                if len(list(done.glob("*"))) == 2 and killed.exists():
                    break
                time.sleep(0.05)
            assert process.poll() is None
            assert {"00000", "00002"} == {path.name for path in done.iterdir()}
            assert killed.exists()
        finally:
            with suppress(ProcessLookupError):  # it has ended already
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("what", ["count", "encode"])
def test_a_killed_worker(folder: Path, tmp_path: Path, what: str) -> None:
    """Its task is done again by the next run, the others are not; nothing is lost or doubled."""
    script = tmp_path / "pipeline.py"
    script.write_text(PIPELINE, encoding="utf-8")
    results = {}
    for name in ("killed", "whole"):
        base = tmp_path / name
        base.mkdir()
        command = [sys.executable, str(script), str(base), str(folder), what]
        if name == "killed":
            run_and_kill(command, base)
        else:
            (base / "killed").touch()
        subprocess.run(command, **QUIET, check=True)
        results[name] = files(base / "out")
    assert results["whole"] == results["killed"]
    assert len(results["whole"]) > 3
