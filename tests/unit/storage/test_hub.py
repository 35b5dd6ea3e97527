"""The one way to the Hub: names, what is asked for, and the one error of a failed download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vocabshift
from vocabshift.storage import hub

huggingface_hub = pytest.importorskip("huggingface_hub")


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("gpt2", True),
        ("someone/model", True),
        ("some.one/a_model-1.5B", True),
        ("someone/model.gguf", False),  # a file that is missing
        ("no/such/folder", False),
        ("tiktoken:gpt2", False),
        ("./model", False),
        ("a--b/model", False),
        ("someone/model.", False),
        ("someone/model.git", False),
        ("a" * 97, False),
        ("", False),
    ],
)
def test_names(name: str, is_name: bool) -> None:
    assert is_name == hub.is_hub_name(name)


@given(st.text("aZ9._-/", max_size=12))
def test_a_name_is_one_that_the_client_takes(name: str) -> None:
    """What passes here never fails the client's own check of names."""
    from huggingface_hub.utils import validate_repo_id

    if hub.is_hub_name(name):
        validate_repo_id(name)


def test_what_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of folders only where they are wanted; from the cache alone without a connection."""
    asked: list[dict[str, Any]] = []

    def snapshot_download(name: str, **options: Any) -> str:
        asked.append({"name": name, **options})
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    assert tmp_path == hub.download("a/b", ("*.json",))
    assert tmp_path == hub.download("a/b", ("*.json",), nested=False)
    assert tmp_path == hub.cached("a/b", ("*.json",), wanted="give it")
    top = {"name": "a/b", "allow_patterns": ["*.json"], "ignore_patterns": ["*/*"]}
    assert [{**top, "ignore_patterns": None}, top, {**top, "local_files_only": True}] == asked
    with pytest.raises(FileNotFoundError, match=r"^no/such/folder: no such file or folder; check"):
        hub.download("no/such/folder", ("*.json",))
    assert 3 == len(asked)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), r"\[Errno 28\] No space left on device"),
        (ConnectionError("connection reset\nby peer"), "connection reset by peer"),
        (RuntimeError(), "RuntimeError"),
        (ValueError("x" * 1000), "x{160}"),
    ],
)
def test_a_failed_download_says_why(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, whatever the client raises; never as "nothing is there"."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    monkeypatch.setattr(huggingface_hub, "list_repo_files", fail)
    said = (
        "^a/b: no such file or folder, and it could not be fetched from the Hugging Face Hub: "
        f"the Hub does not %s: {reason}$"
    )
    with pytest.raises(FileNotFoundError, match=said % "give its weights"):
        hub.download("a/b", ("*.json",), wanted="give its weights")
    with pytest.raises(FileNotFoundError, match=said % "list it"):
        hub.list_files("a/b", wanted="list it")
    with pytest.raises(type(error)):  # of its own disk the cache says so itself
        hub.cached("a/b", ("*.json",), wanted="give it")


@pytest.mark.parametrize(
    ("kind", "is_offline", "advice"),
    [
        ("OfflineModeIsEnabled", True, "unset HF_HUB_OFFLINE"),
        ("LocalEntryNotFoundError", True, "unset HF_HUB_OFFLINE"),  # as transformers has it
        ("LocalEntryNotFoundError", False, "cannot be reached"),
        ("ConnectError", False, "cannot be reached"),
        ("RepositoryNotFoundError", False, "no such repository, or a private one"),
        ("GatedRepoError", False, "the repository is gated"),
    ],
)
def test_what_a_user_can_act_on_is_said_instead_of_the_client_s_words(
    kind: str, is_offline: bool, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever error of a chain it is found in, and without "Name or service not known"."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", is_offline)
    outer = OSError("Got: [Errno -2] Name or service not known")
    outer.__cause__ = type(kind, (Exception,), {})()
    message = str(hub.hub_error("a/b", "give it", outer))
    assert advice in message
    assert "service" not in message


def test_an_incomplete_cache_is_no_missing_repository() -> None:
    """The cache does hold a part of it: the client's own words say which."""
    error = type("IncompleteSnapshotError", (Exception,), {})("weights are missing")
    error.__cause__ = type("OfflineModeIsEnabled", (Exception,), {})()
    message = str(hub.hub_error("a/b", "give its weights", error))
    assert message.endswith("the Hub does not give its weights: weights are missing")


@pytest.mark.parametrize(
    ("name", "place"), [("no/such/dir", "it is relative to"), ("/no/such/dir", "check the path")]
)
def test_a_missing_path_is_called_one(name: str, place: str) -> None:
    message = str(hub.missing(name))
    assert message.startswith(f"{name}: no such file or folder; check the path")
    assert place in message
    assert "Hub" not in message


def test_no_file_has_an_impossible_name() -> None:
    assert [True, False, False] == [hub.is_there(name) for name in (".", "a\0b", "a" * 5000)]


def test_offline_there_is_no_list_and_the_cache_may_be_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from huggingface_hub import errors

    def raises(error: Exception) -> Any:
        def fail(*_: Any, **__: Any) -> None:
            raise error

        return fail

    offline = raises(errors.OfflineModeIsEnabled("offline"))
    monkeypatch.setattr(huggingface_hub, "list_repo_files", offline)
    assert hub.list_files("a/b", wanted="list it") is None
    missing = raises(errors.LocalEntryNotFoundError("not cached"))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", missing)
    assert hub.cached("a/b", ("*.json",), wanted="give it") is None


def test_only_the_top_of_a_repository_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    files = ["config.json", "original/consolidated.pth"]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda _: files)
    assert ["config.json"] == hub.list_files("a/b", wanted="list it")


def test_nobody_else_downloads() -> None:
    """A second way to the Hub would have a second idea of what a failure means."""
    source = Path(vocabshift.__file__).parent
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("snapshot_download", "hf_hub"))
    }
    assert {"storage/hub.py"} == found
