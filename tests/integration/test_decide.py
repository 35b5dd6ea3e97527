"""`vocabshift decide` on a small model: pilots, folder, resume, and requests that cannot be met."""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import small_models
import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.evaluation.scoring.score import score_documents
from vocabshift.surgery import transfer as transfer_module
from vocabshift.text.held_out import hold_out
from vocabshift.workflows import decide_pilots

SMALL = (
    *("--bytes", "600", "--extend-tokens", "12", "--superwords", "3"),
    *("--swap-tokens", "300", "--swap-recipe", "bpe"),
    *("--init", "fvt", "--sequence-length", "16", "--step-bytes", "200", "--seed", "1", "-j", "1"),
)

BOTH = ("--ways", "extend", "swap")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model and text of two languages, many documents each."""
    folder = tmp_path_factory.mktemp("decide")
    for name, texts in (("en", small_models.ENGLISH), ("hi", small_models.HINDI)):
        lines = [f"{text} {number}" for number, text in enumerate(texts * 8)]
        (folder / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
    tokenizer = small_models.old_tokenizer()
    small_models.save(small_models.build("llama-tied", tokenizer), tokenizer, folder / "model")
    return folder


pytestmark = pytest.mark.filterwarnings("ignore:the pilots will not be told apart:UserWarning")


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
    result = decided(capsys, place, out)
    names = ["keep", "extend-12-fvt", "extend-12-superwords-3-fvt", "swap-300-fvt"]
    rows = {(row["stage"], row["pilot"]): row for row in result["pilots"]}
    assert [("screen", name) for name in names] == list(rows)[:4]
    assert {("train", name) for name in names} == set(rows) - set(list(rows)[:4])
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
    sizes = {
        name: vs.load_tokenizer(out / "tokenizers" / name).vocab_size
        for name in ("extend-12", "extend-12-superwords-3", "swap-300")
    }
    assert sizes["extend-12-superwords-3"] == sizes["extend-12"] + 3
    superwords = vs.load_tokenizer(out / "tokenizers" / "extend-12-superwords-3").vocab
    assert any("Ġ" in token.lstrip("Ġ") for token in superwords)
    assert (out / "vocabshift.json").exists()
    assert not (out / "checkpoints").exists()
    config = tomllib.loads((out / "cpt.toml").read_text(encoding="utf-8"))
    vs.CptConfig.from_mapping(config)
    assert [f"hi={out}/text/hi.jsonl", f"en={out}/text/en.jsonl"] == config["data"]
    read, judged = (list(vs.Corpus.from_specs(config[key]).texts()) for key in ("data", "held_out"))
    assert {"hi", "en"} == {language for language, _ in judged}
    assert not set(judged) & set(read)
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
    is_kept = result["recommended"] == "keep"
    assert config["model"] == (str(place / "model") if is_kept else f"{folder}/out-model")
    assert config["spike_factor"] == 0
    assert config["batch_size"] >= 1
    read = {"hi": 0, "en": 0}
    for language, text in vs.Corpus.from_specs(config["data"]).texts():
        read[str(language)] += len(text.encode("utf-8"))
    assert config["n_bytes"] == sum(read.values())
    assert read["hi"] / config["n_bytes"] == pytest.approx(0.6, abs=0.03)
    assert f"{read['hi'] / config['n_bytes']:.0%} of it is in the new" in result["differs"]
    # As much as there is: all that is not held out of the language that is short.
    sizes = {"hi": place / "hi.txt", "en": folder / "en.jsonl"}
    learned, _ = hold_out(vs.Corpus.from_specs([f"{key}={file}" for key, file in sizes.items()]))
    assert read["en"] == sum(each.n_bytes for each in learned.select("en").batches())
    assert read["hi"] < sum(each.n_bytes for each in learned.select("hi").batches())


def test_rows_that_the_model_is_run_for_are_made_once(
    place: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is trained begins with the rows that were scored, to the bit."""
    learned: list[int] = []
    learn = transfer_module.learn_rows
    monkeypatch.setattr(
        transfer_module, "learn_rows", lambda *a, **o: (learned.append(1), learn(*a, **o))[1]
    )
    seconds = SimpleNamespace(perf_counter=time.perf_counter)
    seconds.process_time = lambda: 1000.0 * len(learned)  # nothing else takes time
    monkeypatch.setattr(decide_pilots, "time", seconds)
    begun: dict[str, Any] = {}
    plain = decide_pilots.pretrain

    def pretrain(model: Any, *args: Any, **options: Any) -> Any:
        bits = score_documents(model, args[0], judged)
        begun[str(len(begun))] = [each.nats for each in bits]
        return plain(model, *args, **options)

    judged = {"hi": small_models.HINDI[:3]}
    monkeypatch.setattr(decide_pilots, "pretrain", pretrain)
    scored: list[Any] = []
    score = decide_pilots.score_documents

    def also_judged(model: Any, tokenizer: Any, *args: Any, **options: Any) -> Any:
        scored.append([each.nats for each in score_documents(model, tokenizer, judged)])
        return score(model, tokenizer, *args, **options)

    monkeypatch.setattr(decide_pilots, "score_documents", also_judged)
    argv = words(place, tmp_path / "out", "--ways", "extend")
    argv[argv.index("--init") + 1] = "distill"
    assert 0 == main([*argv, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert 1 == len(learned)
    assert scored[:2] == list(begun.values())
    made = [row["cpu_seconds"] for row in result["pilots"] if row["pilot"] == "extend-12-distill"]
    assert [1000.0, 1000.0] == made  # both say what the rows took


def test_rows_that_the_model_is_run_for_keep_to_the_time(
    place: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run tells what they take; a run stops to learn them when its time is over."""
    argv = words(place, tmp_path / "out", "--ways", "extend", "--dry-run", "--json")
    argv[argv.index("--init") + 1 : argv.index("--init") + 2] = ["fvt", "distill"]
    assert 0 == main(argv)
    keep, fvt, distill, *_ = json.loads(capsys.readouterr().out)["pilots"]
    assert "extend-12-distill" == distill["pilot"]
    assert fvt["seconds"] == keep["seconds"] < distill["seconds"]

    now = [0.0]
    learn = transfer_module.learn_rows

    def slow(*args: Any, **options: Any) -> Any:
        now[0] = 400.0
        return learn(*args, **options)

    monkeypatch.setattr(transfer_module, "learn_rows", slow)
    result = vs.decide(
        place / "model",
        vs.Corpus.from_specs([f"hi={place}/hi.txt"]),
        vs.Corpus.from_specs([f"en={place}/en.txt"]),
        tmp_path / "out",
        vs.DecideOptions(
            minutes=10,
            ways=("extend",),
            extend_tokens=(12,),
            inits=("distill",),
            sequence_length=16,
        ),
        clock=lambda: now[0],
    )
    why = "not screened: its rows were not made in time"
    assert result["left_out"] == {"extend-12-distill": why}


def test_a_blank_held_out_text_is_refused(place: Path, tmp_path: Path, capsys: Any) -> None:
    text = "\n".join(["   ", *small_models.HINDI[:14]])
    (tmp_path / "hi.txt").write_text(text, encoding="utf-8")
    argv = words(place, tmp_path / "out")
    argv[argv.index("--new") + 1] = f"hi={tmp_path}/hi.txt"
    assert 2 == main(argv)
    assert "the held-out text of hi is blank" in capsys.readouterr().err


def test_long_documents_leave_room_for_intervals(place: Path, tmp_path: Path) -> None:
    """A whole one would fill what is scored; the report says where they were cut."""
    texts = {
        name: {name: [f"{n} {' '.join(lines)}" for n in range(200)]}
        for name, lines in (("hi", small_models.HINDI), ("en", small_models.ENGLISH))
    }
    options = vs.DecideOptions(
        n_bytes=2000, ways=("extend",), extend_tokens=(12,), sequence_length=16, score_bytes=2000
    )
    result: Any = vs.decide(place / "model", texts["hi"], texts["en"], tmp_path / "out", options)
    assert all(each["saved_low"] is not None for each in result["standings"])
    assert "at most 2,000 bytes of each language, 100 of a document" in result["compared_on"]
    for name in texts:
        held_out = vs.Corpus.from_specs([str(tmp_path / "out" / "held-out" / f"{name}.jsonl")])
        assert {len(text.encode()) <= 100 for _, text in held_out.texts()} == {True}


@pytest.mark.parametrize("dry_run", [True, False])
def test_too_few_documents_are_told_before_the_first_pilot(
    dry_run: bool, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of a language that does not count."""
    monkeypatch.setattr(decide_pilots, "score_documents", lambda *_, **__: 1 / 0)
    texts = ({"hi": small_models.HINDI * 8}, {"en": small_models.ENGLISH * 8})
    for weight, said in ((1.0, "hi has 6, en has 4; give more"), (0.0, "hi has 6; give")):
        options = vs.DecideOptions(
            n_bytes=300, extend_tokens=(12,), sequence_length=16, home_weight=weight
        )
        with pytest.warns(UserWarning, match=said), pytest.raises(ZeroDivisionError):
            vs.decide(place / "model", *texts, tmp_path / "out", options, dry_run=dry_run)


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
    assert 130 == main(words(place, out, *BOTH))
    assert not out.exists()
    scored: list[int] = []
    score = decide_pilots.score_documents
    monkeypatch.setattr(
        decide_pilots, "score_documents", lambda *a, **o: (scored.append(1), score(*a, **o))[1]
    )
    resumed = decided(capsys, place, out, *BOTH)
    assert 4 == len(calls)  # one before it was stopped, the one that was, and two
    assert 2 == len(scored)  # those of the two that were trained now
    monkeypatch.undo()
    whole = decided(capsys, place, tmp_path / "whole", *BOTH)
    for one, other in zip(resumed["pilots"], whole["pilots"], strict=True):
        assert one["bits_per_byte"] == other["bits_per_byte"]


def test_a_dry_run_lists_the_pilots_and_writes_nothing(
    place: Path, tmp_path: Path, capsys: Any
) -> None:
    out = tmp_path / "out"
    result = decided(capsys, place, out, *BOTH, "--dry-run")
    assert ["screen"] * 3 + ["train"] * 3 == [row["stage"] for row in result["pilots"]]
    assert result["seconds"] == pytest.approx(sum(row["seconds"] for row in result["pilots"]))
    assert not out.exists()
    assert [] == list(tmp_path.iterdir())
    few = decided(capsys, place, out, *BOTH, "--dry-run", "--finalists", "1")
    assert 3 == len([row for row in few["pilots"] if row["stage"] == "train"])  # one of each way
    argv = words(place, out, "--minutes", "10", "--dry-run", "--json")
    at = argv.index("--bytes")
    del argv[at : at + 2]
    capsys.readouterr()
    assert 0 == main(argv)
    timed = json.loads(capsys.readouterr().out)
    assert 60 < timed["seconds"] <= 600  # nearly all of it is training


def test_no_time_is_no_verdict(place: Path, tmp_path: Path, capsys: Any) -> None:
    result = decided(capsys, place, tmp_path / "out", *BOTH, "--minutes", "0.0001")
    assert ("cannot tell", None, []) == (result["kind"], result["recommended"], result["commands"])
    assert {"extend-12-fvt", "swap-300-fvt"} == set(result["left_out"])


def test_text_in_memory_and_sizes_from_the_curve(place: Path, tmp_path: Path) -> None:
    """Each phase of the work on a model counts one thing, which does not run backwards."""
    told: dict[str, list[tuple[int, int | None]]] = {}
    result = vs.decide(
        place / "model",
        {"hi": small_models.HINDI * 8},
        {"en": small_models.ENGLISH * 8},
        tmp_path / "out",
        vs.DecideOptions(n_bytes=300, ways=("extend",), inits=("fvt",), sequence_length=16),
        progress=lambda phase, *at: told.setdefault(phase, []).append(at),
    )
    for phase in ("screen keep", "train keep", "score keep"):
        assert 1 == len({total for _, total in told[phase]})
        assert told[phase] == sorted(told[phase])  # type: ignore[type-var]
    pilots = [row["pilot"] for row in result["pilots"] if row["stage"] == "screen"]  # type: ignore
    sizes = [int(name.split("-")[1]) for name in pilots[1:]]
    assert sizes[1] == 2 * sizes[0]
    config = tomllib.loads((tmp_path / "out" / "cpt.toml").read_text(encoding="utf-8"))
    assert f"vocabshift cpt {tmp_path}/out/cpt.toml" == result["commands"][-1]  # type: ignore
    assert config["n_bytes"] == sum(
        len(text.encode("utf-8")) for _, text in vs.Corpus.from_specs(config["data"]).texts()
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"--new": ["{place}/hi.txt"]}, "every text needs a language: --new hi=FILE"),
        ({"--new": ["en={place}/en.txt"]}, "en: named both as new and as home"),
        ({"--init": ["omp"]}, "needs donor="),
        ({"--held-out": ["hi={place}/hi.txt"]}, "the held-out text lacks en"),
        ({"--swap-recipe": ["nothing"]}, "unknown recipe 'nothing'"),
        ({"--sequence-length": ["9999"]}, "sequence_length is 9999 and the model has"),
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


def test_what_people_read(place: Path, tmp_path: Path, capsys: Any) -> None:
    """The estimate, without a folder; then a table and the verdict."""
    out, small = tmp_path / "out", ("--ways", "extend")
    assert 0 == main(words(place, out, *small, "--dry-run"))
    assert "minutes on this machine" in capsys.readouterr().out
    assert not out.exists()
    assert 0 == main(words(place, out, *small))
    shown = capsys.readouterr().out
    result = json.loads((out / "decision.json").read_text(encoding="utf-8"))
    assert all(name in shown for name in ("gained in new", "lost at home", "extend-12-fvt"))
    assert str(result["recommended"]) in shown
    without = [word for word in words(place, out) if word not in ("-o", str(out))]
    assert 2 == main(without)
    assert "name the folder to write" in capsys.readouterr().err
