"""`vocabshift decide` on a small model: pilots, folder, resume, and requests that cannot be met."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import small_models
import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.workflows import decide_pilots

SMALL = (
    *("--bytes", "600", "--extend-tokens", "12", "--swap-tokens", "300", "--swap-recipe", "bpe"),
    *("--init", "fvt", "--sequence-length", "16", "--step-bytes", "200", "--seed", "1", "-j", "1"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model and text of two languages, many documents each."""
    folder = tmp_path_factory.mktemp("decide")
    (folder / "en.txt").write_text("\n".join(small_models.ENGLISH * 8))
    (folder / "hi.txt").write_text("\n".join(small_models.HINDI * 8), encoding="utf-8")
    tokenizer = small_models.old_tokenizer()
    small_models.save(small_models.build("llama-tied", tokenizer), tokenizer, folder / "model")
    return folder


def words(place: Path, out: Path, *more: str) -> list[str]:
    texts = ["--new", f"hi={place}/hi.txt", "--home", f"en={place}/en.txt"]
    return ["decide", str(place / "model"), *texts, "-o", str(out), *SMALL, *more]


def decided(capsys: Any, place: Path, out: Path, *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert 0 == main([*words(place, out, *more), "--json"]), capsys.readouterr().err
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def test_a_folder_with_a_decision_and_what_carries_it_out(
    place: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    result = decided(capsys, place, out, "--ways", "extend", "swap")
    names = ["keep", "extend-12-fvt", "swap-300-fvt"]
    rows = {(row["stage"], row["pilot"]): row for row in result["pilots"]}
    assert [("screen", name) for name in names] == list(rows)[:3]
    assert {("train", name) for name in names} == set(rows) - set(list(rows)[:3])
    assert {"hi", "en"} == set(rows["train", "keep"]["bits_per_byte"])
    assert (
        rows["train", "extend-12-fvt"]["bytes_per_token"]["hi"]
        > 1.5 * (rows["train", "keep"]["bytes_per_token"]["hi"])
    )
    assert rows["screen", "keep"]["gained_in_new"] == 0
    trained = rows["train", "swap-300-fvt"]
    assert trained["gained_per_mb"] == pytest.approx(
        trained["gained_in_new"] / trained["n_bytes"] * 1e6
    )
    assert result["recommended"] in names
    assert names[0] in [each["name"] for each in result["standings"]]

    written = json.loads((out / "decision.json").read_text(encoding="utf-8"))
    assert {"out": str(out), **written} == result
    page = (out / "decision.md").read_text(encoding="utf-8")
    assert result["why"] in page
    assert result["commands"][-1] in page
    for name in ("extend-12", "swap-300"):
        assert vs.load_tokenizer(out / "tokenizers" / name).vocab_size > 256
    assert (out / "vocabshift.json").exists()
    assert not (out / "checkpoints").exists()
    config = (out / "cpt.toml").read_text(encoding="utf-8")
    assert f'"hi={place}/hi.txt"' in config
    vs.CptConfig.from_mapping(tomllib.loads(config))
    assert result["differs"] in page


def test_the_file_for_cpt_trains_as_the_pilots_did(
    place: Path, tmp_path: Path, capsys: Any
) -> None:
    """Text in JSON counts by its text, and a path that a shell would quote is that path."""
    folder = tmp_path / "a place"
    folder.mkdir()
    lines = [json.dumps({"text": text}) + "\n" for text in small_models.ENGLISH * 8]
    (folder / "en.jsonl").write_text("".join(lines))
    argv = [*words(place, folder / "out", "--home-weight", "0", "--ways", "extend"), "--json"]
    argv[argv.index("--home") + 1] = f"en={folder}/en.jsonl"
    assert 0 == main(argv)
    result = json.loads(capsys.readouterr().out)
    config = tomllib.loads((folder / "out" / "cpt.toml").read_text(encoding="utf-8"))
    english, hindi = (
        sum(len(text.encode("utf-8")) for text in texts * 8)
        for texts in (small_models.ENGLISH, small_models.HINDI)
    )
    is_kept = result["recommended"] == "keep"
    assert config["model"] == (str(place / "model") if is_kept else f"{folder}/out-model")
    assert config["n_bytes"] == english + hindi
    assert config["spike_factor"] == 0
    assert config["batch_size"] >= 1
    assert f"{hindi / (english + hindi):.0%} of it is in the new languages" in result["differs"]


def test_a_blank_held_out_text_is_refused(place: Path, tmp_path: Path, capsys: Any) -> None:
    text = "\n".join(["   ", *small_models.HINDI[:14]])
    (tmp_path / "hi.txt").write_text(text, encoding="utf-8")
    argv = words(place, tmp_path / "out")
    argv[argv.index("--new") + 1] = f"hi={tmp_path}/hi.txt"
    assert 2 == main(argv)
    assert "the held-out text of hi is blank" in capsys.readouterr().err


def test_a_stopped_run_repeats_no_pilot(
    place: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    plain = decide_pilots.pretrain
    calls: list[int] = []

    def pretrain(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*args, **options)

    monkeypatch.setattr(decide_pilots, "pretrain", pretrain)
    assert 130 == main(words(place, out))
    assert not out.exists()
    scored: list[int] = []
    score = decide_pilots.score_documents
    monkeypatch.setattr(
        decide_pilots, "score_documents", lambda *a, **o: (scored.append(1), score(*a, **o))[1]
    )
    resumed = decided(capsys, place, out)
    assert 4 == len(calls)  # one before it was stopped, the one that was, and two
    assert 2 == len(scored)  # those of the two that were trained now
    monkeypatch.undo()
    whole = decided(capsys, place, tmp_path / "whole")
    for one, other in zip(resumed["pilots"], whole["pilots"], strict=True):
        assert one["bits_per_byte"] == other["bits_per_byte"]


def test_a_dry_run_lists_the_pilots_and_writes_nothing(
    place: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    result = decided(capsys, place, out, "--dry-run")
    assert ["screen"] * 3 + ["train"] * 3 == [row["stage"] for row in result["pilots"]]
    assert result["seconds"] == pytest.approx(sum(row["seconds"] for row in result["pilots"]))
    assert not out.exists()
    assert [] == list(tmp_path.iterdir())
    argv = words(place, out, "--minutes", "10", "--dry-run", "--json")
    at = argv.index("--bytes")
    del argv[at : at + 2]
    capsys.readouterr()
    assert 0 == main(argv)
    timed = json.loads(capsys.readouterr().out)
    assert 60 < timed["seconds"] <= 600  # nearly all of it is training


def test_no_time_is_no_verdict(place: Path, tmp_path: Path, capsys: Any) -> None:
    result = decided(capsys, place, tmp_path / "out", "--minutes", "0.0001")
    assert ("cannot tell", None, []) == (result["kind"], result["recommended"], result["commands"])
    assert {"extend-12-fvt", "swap-300-fvt"} == set(result["left_out"])


def test_text_in_memory_and_sizes_from_the_curve(place: Path, tmp_path: Path) -> None:
    result = vs.decide(
        place / "model",
        {"hi": small_models.HINDI * 8},
        {"en": small_models.ENGLISH * 8},
        tmp_path / "out",
        vs.DecideOptions(n_bytes=300, ways=("extend",), inits=("fvt",), sequence_length=16),
    )
    pilots = [row["pilot"] for row in result["pilots"] if row["stage"] == "screen"]  # type: ignore
    sizes = [int(name.split("-")[1]) for name in pilots[1:]]
    assert sizes[1] == 2 * sizes[0]
    assert not (tmp_path / "out" / "cpt.toml").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--new": ["{place}/hi.txt"]}, "every text needs a language: --new hi=FILE"),
        ({"--new": ["en={place}/en.txt"]}, "en: named both as new and as home"),
        ({"--init": ["omp"]}, "needs donor="),
        ({"--held-out": ["hi={place}/hi.txt"]}, "the held-out text lacks en"),
        ({"--swap-recipe": ["nothing"]}, "unknown recipe 'nothing'"),
    ],
)
def test_requests_that_cannot_be_met(
    changes: dict[str, list[str]], message: str, place: Path, tmp_path: Path, capsys: Any
) -> None:
    argv = words(place, tmp_path / "out")
    for flag, values in changes.items():
        own = [value.format(place=place) for value in values]
        if flag in argv:
            at = argv.index(flag) + 1
            argv[at : at + 1] = own
        else:
            argv += [flag, *own]
    status = main(argv)
    said = capsys.readouterr()
    assert 2 == status
    assert message in said.err
    assert not (tmp_path / "out").exists()
