"""`vocabshift latency` from files to rows: two models here, and a server."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.cli.main import main

END = "<|end|>"
ENGLISH = ["the river runs past the old mill and the mill turns all day"] * 6
HINDI = ["नदी पुराने घर के पास से बहती है और सुबह नाव आती है"] * 6
FEW = ["--n-prompts=2", "--prompt-bytes=40", "--max-new-tokens=4", "--warmup=1", "--repeats=2"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, and models of one shape with a tokenizer of English and one of Hindi too."""
    pytest.importorskip("torch")
    from vocabshift.demo import walk as small_llama

    folder = tmp_path_factory.mktemp("latency")
    for name, lines in (("en", ENGLISH), ("hi", HINDI)):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, texts in (("old", {"en": ENGLISH}), ("new", {"en": ENGLISH, "hi": HINDI})):
        trainer = vs.BpeTrainer(vocab_size=330, special_tokens=(END,))
        tokenizer = trainer.train(vs.Corpus.from_texts(texts))
        model = small_llama.make(tokenizer, END, hidden_size=32, n_layers=1, context=64)
        small_llama.save(model, tokenizer, folder / name)
    return folder


def words(place: Path, *models: str) -> list[str]:
    texts = [f"{name}={place / name}.txt" for name in ("en", "hi")]
    return ["latency", *models, "--text", *texts, *FEW]


def test_two_models_are_timed(place: Path, capsys, tmp_path: Path) -> None:
    models = [str(place / name) for name in ("old", "new")]
    rows = tmp_path / "rows.jsonl"
    assert 0 == main([*words(place, *models), "--output", str(rows), "--device", "cpu", "--json"])
    found = json.loads(capsys.readouterr().out)
    results = vs.Results(vs.Result(**row) for row in found["results"])
    assert results == vs.Results.from_jsonl(rows.read_text(encoding="utf-8"))
    assert (["old", "new"], ["en", "hi"]) == tuple(map(results.distinct, ("subject", "language")))
    assert {
        *("ttft_seconds", "output_tokens_per_second", "output_bytes_per_second"),
        *("output_characters_per_second", "text_bytes_per_second", "input_tokens"),
        "peak_memory_bytes",
    } == set(results.distinct("metric"))
    saved = [sha256((place / name / "tokenizer.json").read_bytes()) for name in ("old", "new")]
    found_in = dict.fromkeys((row.subject, row.tokenizer_sha256) for row in results)
    assert [("old", saved[0].hexdigest()), ("new", saved[1].hexdigest())] == list(found_in)
    assert 2 == len({(row.language, row.text_sha256) for row in results})
    new, old = (results.value(name, "hi", "input_tokens") for name in ("new", "old"))
    assert new < old / 2
    assert 2 * 2 * 2 * 2 == len(found["requests"])
    assert {4} == {row["output_tokens"] for row in found["requests"]}

    assert 0 == main(words(place, models[0]))
    table = capsys.readouterr().out
    assert f" {old:.1f} " in table
    assert "bytes/s" in table


@pytest.fixture
def url() -> Iterator[str]:
    """A server whose every token is one letter."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            wish = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            n_new = wish["max_tokens"]
            usage = {"prompt_tokens": len(wish["prompt"]), "completion_tokens": n_new}
            events: list[Any] = [{"choices": [{"text": "a"}]}] * n_new
            self.send_response(200)
            self.end_headers()
            for event in (*events, {"choices": [], "usage": usage}):
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_server_is_timed(place: Path, url: str, capsys) -> None:
    assert 0 == main([*words(place, "org/served"), "--server", url, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {"served"} == {row["subject"] for row in found["results"]}
    assert {(4, 1, 3)} == {
        (row["output_tokens"], row["first_bytes"], row["rest_bytes"]) for row in found["requests"]
    }
    assert "peak_memory_bytes" not in {row["metric"] for row in found["results"]}


def test_models_that_are_none_are_refused(place: Path, tmp_path: Path, capsys) -> None:
    """Damaged files, tensors that would be random: a line, and no figure."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(place / "old" / "model.safetensors")
    least = min(name for name in tensors if "mlp" in name)
    del tensors[least]
    for name, file, data, message in (
        ("header", "model.safetensors", b"\xff" * 99, "cannot be loaded"),
        (
            "lacking",
            "model.safetensors",
            None,
            f"lacks 1 tensors of the model, such as {least}",
        ),
        ("tokenizer", "tokenizer.json", b"{}", "the tokenizer of"),
        ("config", "config.json", b"[1]", "cannot be loaded"),
    ):
        folder = shutil.copytree(place / "old", tmp_path / name)
        if data is None:
            save_file(tensors, folder / file, metadata={"format": "pt"})
        else:
            (folder / file).write_bytes(data)
        assert 2 == main(words(place, str(folder)))
        streams = capsys.readouterr()
        assert message in streams.err
        assert (1, "") == (streams.err.count("\n"), streams.out)


def test_tokens_without_text_have_a_table_too(capsys: pytest.CaptureFixture[str]) -> None:
    """A model may write nothing but rows beyond its tokenizer: 0 bytes a second."""
    from argparse import Namespace

    from vocabshift.cli import console, models

    rows = [vs.Result("m", "en", "output_bytes_per_second", 0.0, 4, 0.0, 0.0)]
    spread = [{"subject": "m", "language": "en", "metric": rows[0].metric, "sd": 0.0}]
    result = {"results": vs.Results(rows).to_dicts(), "spread": spread}
    models.show_latency(Namespace(repeats=2, output=None), result, console.stdout())
    assert "bytes/s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--server", "localhost:1"], "no address"),
        (["--server", "http://127.0.0.1:9"], "cannot be reached"),
        (["--server", *["http://a"] * 3], "3 addresses"),
        (["--server", "http://a", "--dtype", "bfloat16"], "the server's own"),
        (["--n-prompts", "99"], "99"),
        (["--warmup", "-1"], "-1"),
        (["--device", "abacus"], "abacus"),
        (["--max-new-tokens", "1"], "at least 2"),
        (["--max-new-tokens", "60"], "64 positions"),
        (["--text", "{place}/none.txt"], "none.txt"),
        (["--output", "{place}/en.txt", "--force"], "also an input"),
        (["none"], "none"),
    ],
)
def test_bad_input_is_told_in_a_line(place: Path, extra: list[str], message: str, capsys) -> None:
    verb, *rest = words(place, str(place / "old"))
    given = [word.format(place=place) for word in extra]
    line = [verb, *given, *rest] if extra == ["none"] else [verb, *rest, *given]
    assert 2 == main(line)
    streams = capsys.readouterr()
    assert message in streams.err
    assert "Traceback" not in streams.err
    assert "" == streams.out
