"""`--init distill` from the command line: folders, a killed run, the cost, and `adapt`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.surgery import lesson  # noqa: E402
from vocabshift.surgery.options import DistillOptions, TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402

OPTIONS = DistillOptions(epochs=4, step_tokens=40)


@pytest.fixture(params=["llama", "llama-tied"])
def source(request, tmp_path) -> Path:
    """A model in several shards of half precision, and the new tokenizer and text beside it."""
    old = small_models.old_tokenizer()
    model = small_models.build(request.param, old, num_hidden_layers=2).to(torch.bfloat16)
    small_models.new_tokenizer().save_pretrained(tmp_path / "new")
    text = "\n".join([*small_models.HINDI[:6], "क ख ग"])
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    return small_models.save(model, old, tmp_path / "model", max_shard_size="12KB")


def tensors(folder: Path) -> dict[str, Any]:
    return {k: v for file in folder.glob("*.safetensors") for k, v in load_file(file).items()}


def words(source: Path, *more: str) -> list[str]:
    place = source.parent
    words = ["transfer", source, place / "new", "--corpus", f"hi={place / 'text.txt'}", *more]
    return [*map(str, words), "-o", str(place / "out")]


FLAGS = ("--init", "distill", "--distill-epochs", "4", "--distill-step-tokens", "40")


def test_a_folder_is_streamed(source, capsys) -> None:
    """Rows as in memory in float32, rounded at the end; every other tensor as it was; all told."""
    assert 0 == main(words(source, *FLAGS, "--details", "--json"))
    result = json.loads(capsys.readouterr().out)
    told, place = result["distilled"], source.parent
    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    model, tokenizer = vs.transfer(
        model,
        old=source,
        new=place / "new",
        init="distill",
        corpus=vs.Corpus.from_specs([f"hi={place / 'text.txt'}"]),
        distill=OPTIONS,
    )
    before, after = tensors(source), tensors(place / "out")
    expected = model.state_dict()
    for name, tensor in after.items():
        if len(tensor) == result["rows"]:
            assert torch.equal(tensor, expected[name].to(torch.bfloat16)), name
        else:
            assert torch.equal(tensor, before[name]), name
    lacking = [row["token"] for row in result["details"]["without_snippets"]]
    assert told["without_snippets"] == len(lacking) > 0
    assert told["n_learned"] + len(lacking) == result["n_initialized"]
    about = json.loads((place / "out" / "vocabshift.json").read_text())
    assert len(lacking) == len(about["figures"]["distilled"]["without_snippets"])
    assert 4 == about["config"]["distill"]["epochs"]
    assert not [key for key in about["figures"]["distilled"] if "second" in key]
    assert tokenizer.row_count <= result["rows"]


def test_weights_in_another_format(source, tmp_path) -> None:
    """They are loaded whole to be written; rows are learned in float32, and on the device."""
    corpus = vs.Corpus.from_files({"hi": tmp_path / "text.txt"})
    options = TransferOptions(init="distill", corpus=corpus, distill=OPTIONS)
    transfer_folder(source, tmp_path / "new", tmp_path / "streamed", options)
    torch.save(tensors(source), source / "pytorch_model.bin")
    for file in source.glob("*.safetensors*"):
        file.unlink()
    elsewhere = replace(options, distill=replace(OPTIONS, device="abacus"))
    with pytest.raises(ValueError, match="no device 'abacus' here"):
        transfer_folder(source, tmp_path / "new", tmp_path / "out", elsewhere)
    transfer_folder(source, tmp_path / "new", tmp_path / "out", options)
    one, two = tensors(tmp_path / "streamed"), tensors(tmp_path / "out")
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_killed_run_gives_the_same_rows(source, tmp_path, monkeypatch) -> None:
    """Killed while it learns, then while it writes; a run with other options starts afresh."""
    monkeypatch.setattr(lesson, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(lesson, "_SAVING", 1.0)
    corpus = vs.Corpus.from_files({"hi": tmp_path / "text.txt"})
    options = TransferOptions(init="distill", corpus=corpus, distill=OPTIONS)

    def move(name: str, options: TransferOptions = options) -> list[int]:
        done: list[int] = []
        step = lesson.Lesson.step

        def counted(self: Any, snippets: Any) -> None:
            if kill_at is not None and len(done) == kill_at:
                raise KeyboardInterrupt
            step(self, snippets)
            done.append(len(snippets))

        with monkeypatch.context() as patch:
            patch.setattr(lesson.Lesson, "step", counted)
            try:
                transfer_folder(source, tmp_path / "new", tmp_path / name, options)
            except KeyboardInterrupt:
                done.append(-1)
        return done

    kill_at: int | None = None
    whole = move("whole")
    assert len(whole) > 5
    kill_at = 3
    assert -1 == move("again")[-1]
    assert not (tmp_path / "again").exists()
    kill_at = 1
    assert [whole[3], -1] == move("again")
    kill_at = None
    assert whole[4:] == move("again")
    one, two = tensors(tmp_path / "whole"), tensors(tmp_path / "again")
    assert all(torch.equal(one[name], two[name]) for name in one)
    kill_at = 3
    assert -1 == move("other")[-1]
    kill_at = None
    # Another text has other rows and snippets: what was learned from the first is not taken up.
    kill_at = 3
    assert -1 == move("other text")[-1]
    kill_at = None
    afresh = replace(options, corpus=vs.Corpus.from_texts(small_models.HINDI[:2]))
    assert move("whole of it", afresh) == move("other text", afresh)
    one, two = tensors(tmp_path / "whole of it"), tensors(tmp_path / "other text")
    assert all(torch.equal(one[name], two[name]) for name in one)
    faster = replace(OPTIONS, learning_rate=0.1)
    assert whole == move("other", replace(options, distill=faster))


def test_the_cost_is_told_before(source, capsys) -> None:
    """Snippets, tokens without any, minutes and memory, and nothing is written or changed."""
    assert 0 == main(words(source, *FLAGS, "--dry-run", "--json"))
    told = json.loads(capsys.readouterr().out)["distilled"]
    assert told["snippets"] > 5
    assert told["old_tokens"] > told["new_tokens"] > 0
    assert told["steps"] > 4
    assert told["tokens_per_second"] > 0
    assert told["memory_bytes"] > 1e6
    assert not (source.parent / "out").exists()
    assert 0 == main(words(source, *FLAGS, "--dry-run"))
    shown = " ".join(capsys.readouterr().out.split())
    assert "learning would take" in shown
    assert "new tokens a second" in shown
    assert 0 == main(words(source, "--init", "distill", "--dry-run", "--json"))
    assert 1 == json.loads(capsys.readouterr().out)["distilled"]["steps"]


def test_flags_of_distill_are_for_it(source, capsys) -> None:
    assert 2 == main(words(source, "--distill-layer", "1"))
    assert "--distill-layer is for --init distill" in capsys.readouterr().err
    adapt = ["adapt", source, "--corpus", source.parent / "text.txt", "--tokenizer-only"]
    assert 2 == main([*map(str, adapt), "--distill-layer", "1", "-o", str(source.parent / "out")])
    assert "--distill-layer is for models, and --tokenizer-only" in capsys.readouterr().err


def test_checkpoints_take_a_share_of_the_time(source, tmp_path, monkeypatch) -> None:
    """A step of 200 s, and 30 s to write: every third step is 600 s, of which 5 % are 30 s."""
    now, saved = [0.0], []
    step, save = lesson.Lesson.step, lesson.Lesson._save

    def slow_step(self: Any, snippets: Any) -> None:
        step(self, snippets)
        now[0] += 200.0

    def slow_save(self: Any, checkpoints: Any) -> None:
        save(self, checkpoints)
        saved.append(self._done)
        now[0] += 30.0

    monkeypatch.setattr(lesson.Lesson, "step", slow_step)
    monkeypatch.setattr(lesson.Lesson, "_save", slow_save)
    monkeypatch.setattr(lesson, "time", SimpleNamespace(monotonic=lambda: now[0]))
    corpus = vs.Corpus.from_files({"hi": tmp_path / "text.txt"})
    options = TransferOptions(init="distill", corpus=corpus, distill=OPTIONS)
    report = transfer_folder(source, tmp_path / "new", tmp_path / "out", options)
    n_steps = report.distilled["steps"]
    assert n_steps > 5
    assert sorted({*range(1, n_steps, 3), n_steps}) == saved


def test_an_adapter_learns_no_rows(source, tmp_path, capsys) -> None:
    """Flags that make rows are refused before anything is read."""
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    for more in (("--init", "distill"), ("--init", "fvt"), ("--pattern", "gpt2")):
        command = ["transfer", tmp_path / "adapter", source, *more, "-o", tmp_path / "out"]
        assert 2 == main([*map(str, command)])
        assert f"{more[0]} is of no use for an adapter" in capsys.readouterr().err


def test_an_adapter_of_the_hub_is_moved_like_one_in_a_folder(
    source, tmp_path, monkeypatch, capsys
) -> None:
    """Taken for a model, it would be said to lack a config.json."""
    import huggingface_hub

    (tmp_path / "adapter_config.json").write_text('{"peft_type": "IA3"}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    files = [file.name for file in tmp_path.iterdir()]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda _: files)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(tmp_path))
    assert 2 == main(["transfer", "someone/adapter", str(source), "-o", str(tmp_path / "out")])
    assert "its peft_type is 'IA3', and LORA is needed" in capsys.readouterr().err


def adapt(place: Path, *more: str) -> int:
    """Exchange five tokens; the exit status."""
    command = ["adapt", place / "model", "--corpus", f"hi={place / 'text.txt'}"]
    command += ["--n-tokens", "5", "--min-frequency", "2", "--no-score", "-o", place / "out"]
    return main([*map(str, command), "--init", "distill", *more])


@pytest.fixture
def larger(tmp_path) -> Path:
    """The folder of a model with tokens to exchange, and of the text that they are learned from."""
    old = small_models.old_tokenizer(size=300)
    small_models.save(small_models.build("llama", old), old, tmp_path / "model")
    (tmp_path / "text.txt").write_text("\n".join(small_models.HINDI * 6), encoding="utf-8")
    return tmp_path


def test_adapt_distills(larger, capsys) -> None:
    """Exchanged tokens are learned from the text that they were learned from."""
    assert 0 == adapt(larger, *FLAGS[2:4], "--json")
    result = json.loads(capsys.readouterr().out)
    assert "distill" == result["init"]
    assert result["n_initialized"] == result["distilled"]["n_learned"]


def test_adapt_lists_the_tokens_without_snippets(larger, capsys) -> None:
    """Their number is in the summary, their ids are in the folder."""
    assert 0 == adapt(larger, "--distill-tokens", "20", "--json")
    result = json.loads(capsys.readouterr().out)
    figures = json.loads((larger / "out" / "vocabshift.json").read_text())["figures"]
    lacking = figures["distilled"]["without_snippets"]
    assert result["distilled"]["without_snippets"] == len(lacking) > 0
    new, old = vs.load_tokenizer(larger / "out"), vs.load_tokenizer(larger / "model")
    assert not {new.token_bytes[i] for i in lacking} & {*old.token_bytes.values()}


def test_adapt_refuses_before_it_learns_tokens(larger, capsys, monkeypatch) -> None:
    """Counting a large corpus takes hours, and the model says at once what it lacks."""
    monkeypatch.setattr("vocabshift.workflows.adapt_model.adapt_tokenizer", None)
    assert 2 == adapt(larger, "--distill-layer", "9")
    assert "layer is 9, and LlamaForCausalLM has 1 layers" in capsys.readouterr().err
    assert 2 == adapt(larger, "--distill-device", "abacus")
    assert "no device 'abacus' here" in capsys.readouterr().err
    assert not list(larger.glob("out*"))
