"""Model or tokenizer: told by what lies in a folder, on the Hub, or in its cache."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from vocabshift.models.folder import (
    find_model,
    local_folder,
    write_version,
)
from vocabshift.models.saved import open_saved


@pytest.mark.parametrize(
    ("files", "is_model"),
    [
        (["config.json", "model.safetensors"], True),
        (["config.json", "model-00001-of-00002.safetensors", "tokenizer.json"], True),
        (["config.json", "pytorch_model.bin"], True),
        (["config.json", "tokenizer.json"], False),
        (["config.json", "training_args.bin"], False),
        (["adapter_model.safetensors", "tokenizer.json"], False),
        ([], False),
    ],
)
def test_weights_beside_a_config(tmp_path: Path, files: list[str], is_model: bool) -> None:
    for name in files:
        (tmp_path / name).write_text("")
    assert (tmp_path if is_model else None) == find_model(tmp_path)


def test_what_is_no_folder(tmp_path: Path) -> None:
    """Files, names that no file can have, and values are no models."""
    file = tmp_path / "tokenizer.json"
    file.write_text("{}")
    assert [None] * 4 == [find_model(each) for each in (file, str(file), "a\0b", {"vocab": {}})]


def test_the_hub_is_asked_before_weights_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a model's files are downloaded, and of two formats only safetensors."""
    import huggingface_hub

    fetched: list[dict[str, Any]] = []
    listing = ["config.json", "model.safetensors", "pytorch_model.bin", "original/x.safetensors"]

    def snapshot_download(name: str, **options: Any) -> str:
        fetched.append(options)
        for file in listing:
            (tmp_path / Path(file).name).write_text("")
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda _: listing)
    assert tmp_path == find_model("someone/model")
    assert "pytorch_model*.bin" not in fetched[0]["allow_patterns"]
    listing.remove("model.safetensors")
    assert tmp_path == find_model("someone/model")
    assert "pytorch_model*.bin" in fetched[1]["allow_patterns"]
    listing.remove("pytorch_model.bin")
    assert find_model("someone/model") is None
    assert 2 == len(fetched)


def _hub(
    monkeypatch: pytest.MonkeyPatch, listing: Exception | list[str], download: Exception | Path
) -> None:
    """Stands in for the Hub: what the listing and the download give or raise."""
    import huggingface_hub

    def give(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *_, **__: give(listing))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: give(download))


def _answer(kind: str) -> Exception:
    import httpx2  # what huggingface_hub's errors take their answers from
    from huggingface_hub import errors

    if kind == "NotCached":
        return errors.LocalEntryNotFoundError("not in the cache")
    response = httpx2.Response(403, request=httpx2.Request("GET", "https://huggingface.co/x"))
    return getattr(errors, kind)(f"{kind} by the stand-in", response=response)


FAILURES = {
    "full disk": OSError(28, "No space left on device"),
    "lost connection": ConnectionError("connection reset\nby peer"),
    "gated": "GatedRepoError",
    "no such repository": "RepositoryNotFoundError",
    "file is gone": "RemoteEntryNotFoundError",
    "without a word": RuntimeError(),
}
REASONS = {
    "full disk": r"\[Errno 28\] No space left on device",
    "lost connection": "connection reset by peer",
    "gated": "the repository is gated; accept its terms",
    "no such repository": "no such repository, or a private one",
    "file is gone": "RemoteEntryNotFoundError by the stand-in",
    "without a word": "RuntimeError",
}


def _failure(kind: str) -> Exception:
    value = FAILURES[kind]
    return _answer(value) if isinstance(value, str) else value


@pytest.mark.parametrize("kind", FAILURES)
def test_weights_that_do_not_arrive_are_an_error(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken for a tokenizer, the model would be left out without a word."""
    _hub(monkeypatch, ["config.json", "model.safetensors"], _failure(kind))
    with pytest.raises(
        FileNotFoundError, match=f"someone/model: .*(weights|Hub): {REASONS[kind]}"
    ) as e:
        find_model("someone/model")
    assert "\n" not in str(e.value)
    with pytest.raises(FileNotFoundError, match=f"(give the model|Hub): {REASONS[kind]}"):
        open_saved("someone/model")


@pytest.mark.parametrize("kind", FAILURES)
def test_a_listing_that_fails_is_an_error(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the cache holds the model; a cache without weights says nothing of the repository."""
    _hub(monkeypatch, _failure(kind), _answer("NotCached"))
    with pytest.raises(FileNotFoundError, match=f"(whether it is a model|Hub): {REASONS[kind]}"):
        find_model("someone/model")
    _hub(monkeypatch, _failure(kind), tmp_path)
    with pytest.raises(FileNotFoundError, match=f"(whether it is a model|Hub): {REASONS[kind]}"):
        find_model("someone/model")
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("")
    assert tmp_path == find_model("someone/model")


def test_a_download_that_falls_back_to_an_old_cache_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client returns what it has where a connection breaks: here a config without weights."""
    (tmp_path / "config.json").write_text("{}")
    _hub(monkeypatch, ["config.json", "model.safetensors"], tmp_path)
    with pytest.raises(FileNotFoundError, match="does not give its weights: they are not in"):
        find_model("someone/model")


def test_what_no_repository_can_be_called_is_not_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loader of tokenizers knows these, or says what is wrong with them."""
    _hub(monkeypatch, AssertionError("asked"), AssertionError("asked"))
    for name in ("tiktoken:gpt2", "no/such/folder", "missing.json"):
        assert find_model(name) is None
        assert open_saved(name) is None


def test_offline_the_cache_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HF_HUB_OFFLINE: what is cached is all there is, unless the cache itself knows better."""
    from huggingface_hub import errors

    offline = errors.OfflineModeIsEnabled("offline")
    _hub(monkeypatch, offline, _answer("NotCached"))
    assert find_model("someone/model") is None
    _hub(monkeypatch, offline, tmp_path)
    assert find_model("someone/model") is None
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("")
    assert tmp_path == find_model("someone/model")
    if hasattr(errors, "IncompleteSnapshotError"):
        lacking = errors.IncompleteSnapshotError("lacks model.safetensors", snapshot_path="")
        _hub(monkeypatch, offline, lacking)
        with pytest.raises(FileNotFoundError, match="its weights: lacks model"):
            find_model("someone/model")


@pytest.mark.parametrize("kind", ["full disk", "gated"])
def test_adapt_ends_with_the_reason(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`vocabshift adapt` wrote a tokenizer alone and ended with 0."""
    from vocabshift.cli.main import main

    text = tmp_path / "en.txt"
    text.write_text("the cat sat on the mat\n" * 50)
    _hub(monkeypatch, ["config.json", "model.safetensors"], _failure(kind))
    out = tmp_path / "out"
    arguments = ["adapt", "someone/model", "--corpus", f"en={text}", "-o", str(out)]
    assert 2 == main([*arguments, "--n-tokens", "10"])
    said = capsys.readouterr().err
    assert re.search(REASONS[kind], said)
    assert "Traceback" not in said
    assert 1 == len(said.strip().splitlines())
    assert not out.exists()


@pytest.mark.parametrize(
    ("said", "n_tokens", "wanted"),
    [
        ("4.57.6", 100_001, "5.0.0"),
        (None, 100_001, "5.0.0"),
        ("5.0.0rc1", 100_001, "5.0.0"),
        ("5.0.0.dev0", 100_001, "5.0.0"),
        ("main", 100_001, "5.0.0"),
        ("5.0.0", 100_001, "5.0.0"),
        ("5.23.0", 100_001, "5.23.0"),
        ("10.1", 100_001, "10.1"),
        ("4.57.6", 100_000, "4.57.6"),
    ],
)
def test_version_of_a_config(
    tmp_path: Path, said: str | None, n_tokens: int, wanted: str | None
) -> None:
    """Only where transformers would replace the pre-tokenizer; the other keys stay."""
    file = tmp_path / "config.json"
    config = {"model_type": "mistral", "vocab_size": 3}
    file.write_text(json.dumps(config | ({"transformers_version": said} if said else {})))
    write_version(file, n_tokens)
    assert {**config, "transformers_version": wanted} == json.loads(file.read_text())


def test_types_to_which_the_lack_of_a_version_means_something(tmp_path: Path) -> None:
    """A checkpoint of inkling2 without one is quantized, says transformers: none is added."""
    transformers = pytest.importorskip("transformers")
    configs = (Path(transformers.__file__).parent / "models").glob("*/configuration_*.py")
    asks = '"transformers_version" not in'
    assert {file.parent.name for file in configs if asks in file.read_text()} <= {"inkling2"}
    file = tmp_path / "config.json"
    for config, wanted in (
        ({"model_type": "inkling2"}, None),
        ({"model_type": "inkling2", "transformers_version": "4.0"}, "5.0.0"),
    ):
        file.write_text(json.dumps(config))
        write_version(file, 200_000)
        assert wanted == json.loads(file.read_text()).get("transformers_version")


def test_modules_are_downloaded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders that modules.json names, and no others; of GLiNER those of further parts."""
    import huggingface_hub

    asked: list[tuple[list[str], Any]] = []

    def snapshot_download(name: str, *, allow_patterns: Any, ignore_patterns: Any) -> str:
        asked.append((allow_patterns, ignore_patterns))
        for file in ("config.json", "model.safetensors"):
            (tmp_path / file).write_text("")
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    modules = [{"path": ""}, {"path": "1_Pooling"}, {"path": "2_[x]"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    assert tmp_path == local_folder("someone/model")
    assert (["1_Pooling/*", "2_[[]x]/*"], None) == asked[1]
    assert ["*/*"] == asked[0][1]
    assert {"*.safetensors", "*.json", "recipe.yaml", "LICENCE*"} <= set(asked[0][0])
    (tmp_path / "modules.json").unlink()
    (tmp_path / "gliner_config.json").write_text("{}")
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda _: ["model.safetensors"])
    assert find_model("someone/model") is None
    files = ["model.safetensors", "gliner_config.json"]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda _: files)
    assert tmp_path == find_model("someone/model")
    assert ["labels_tokenizer/*", "decoder_tokenizer/*"] == asked[3][0]


def test_a_model_in_a_folder_of_the_folder_is_named(tmp_path: Path) -> None:
    """Older models of sentence-transformers have theirs in 0_Transformer."""
    (tmp_path / "0_Transformer").mkdir()
    for name in ("config.json", "pytorch_model.bin"):
        (tmp_path / "0_Transformer" / name).write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"no config\.json; .*0_Transformer is one$"):
        local_folder(tmp_path)
