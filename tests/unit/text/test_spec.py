"""The SPEC grammar."""

from __future__ import annotations

from pathlib import Path

import pytest

from vocabshift.errors import CorpusError
from vocabshift.text.spec import HubDataset, Local, Spec, StandardInput, parse_spec

FILES = ("a.txt", "b.jsonl", "x=a.txt", "d@2.txt", "d@3", "hf", "c:e.jsonl", "m=n/f.txt", "y@1=b.t")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("a.txt", Spec(Local("a.txt"))),
        ("hin=a.txt", Spec(Local("a.txt"), "hin")),
        ("hin=a.txt@0.5", Spec(Local("a.txt"), "hin", 0.5)),
        ("any label=*.txt@2", Spec(Local("*.txt"), "any label", 2.0)),
        ("hin=b.jsonl:body@1e1", Spec(Local("b.jsonl", "body"), "hin", 10.0)),
        ("b.jsonl:a:b", Spec(Local("b.jsonl", "a:b"))),
        (".", Spec(Local("."))),
        ("hin=.@3", Spec(Local("."), "hin", 3.0)),
        ("-", Spec(StandardInput())),
        ("hin=-@2", Spec(StandardInput(), "hin", 2.0)),
    ],
)
def test_local_specs(text: str, spec: Spec) -> None:
    """Language, place, column and weight."""
    assert spec == parse_spec(text)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("x=a.txt", Spec(Local("x=a.txt"))),
        ("x=a.txt@2", Spec(Local("x=a.txt"), None, 2.0)),
        ("y=x=a.txt", Spec(Local("x=a.txt"), "y")),
        ("d@2.txt", Spec(Local("d@2.txt"))),
        ("d@2.txt@3", Spec(Local("d@2.txt"), None, 3.0)),
        ("d@3", Spec(Local("d@3"))),
        ("c:e.jsonl", Spec(Local("c:e.jsonl"))),
        ("c:e.jsonl:g", Spec(Local("c:e.jsonl", "g"))),
        ("m=n/*.txt", Spec(Local("m=n/*.txt"))),
        ("hin=m=n/*.txt", Spec(Local("m=n/*.txt"), "hin")),
        ("y@1=b.t", Spec(Local("y@1=b.t"))),
    ],
)
def test_what_exists_wins(text: str, spec: Spec) -> None:
    """Marks that belong to a path that is there are no marks."""
    assert spec == parse_spec(text)


@pytest.mark.parametrize(
    ("text", "dataset"),
    [
        ("hf:org/name", HubDataset("org/name")),
        ("hf:org/name:hi", HubDataset("org/name", "hi")),
        ("hf:org/name:hi:test", HubDataset("org/name", "hi", "test")),
        ("hf:org/name:::body", HubDataset("org/name", None, "train", "body")),
    ],
)
def test_hub_specs(text: str, dataset: HubDataset) -> None:
    """Parts left out or empty have defaults; a file called `hf` changes nothing."""
    assert Spec(dataset) == parse_spec(text)
    assert Spec(dataset, "hin", 2.0) == parse_spec(f"hin={text}@2")


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "two", ""])
def test_weight_must_be_finite_and_positive(weight: str) -> None:
    """On every kind of place."""
    for place in ("a.txt", "b.jsonl:text", "-", "hf:org/name", "none.txt"):
        with pytest.raises(ValueError, match="is not a finite number above 0"):
            parse_spec(f"hin={place}@{weight}")


@pytest.mark.parametrize("text", ["hf:", "hf:a:b:c:d:e", "", "hin=", "=none.txt", " =-"])
def test_parts_that_lack_are_errors(text: str) -> None:
    """An empty label, path or name, or too many parts."""
    with pytest.raises(ValueError, match="write"):
        parse_spec(text)


@pytest.mark.parametrize("text", ["none.txt", "hin=none.txt@2", "none/*.txt", "me@home/none.txt"])
def test_missing_path_is_named(text: str) -> None:
    """The message has the path as it was read."""
    with pytest.raises(CorpusError, match=r"none.*: no such file"):
        parse_spec(text)
