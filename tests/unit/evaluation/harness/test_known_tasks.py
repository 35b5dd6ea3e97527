"""What --tasks means, which files are taken, and how lm-eval's figures become rows."""

from __future__ import annotations

import math
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from vocabshift.evaluation.harness.data import local_config, with_files, with_known_splits
from vocabshift.evaluation.harness.known_tasks import FAMILIES, SUITES, TaskRequest, requests_of
from vocabshift.evaluation.harness.rows import (
    HarnessProgress,
    asked,
    questions_sha256,
    reason_of,
    rows_of,
    settings_of,
)
from vocabshift.report.model_tables import published_scores
from vocabshift.results import Result, Results


def labels(*specs: str) -> list[str]:
    return [request.label for request in requests_of(specs)]


def test_specs() -> None:
    """Families, languages, suites, other tasks; each once."""
    assert labels("sib200:hi,ta", "sib200:ta,en") == ["sib200:hi", "sib200:ta", "sib200:en"]
    assert labels("piqa") == ["piqa"]
    assert labels("mgsm") == ["mgsm:bn", "mgsm:de", "mgsm:en", "mgsm:te"]
    assert labels("continued-bpe-5")[:3] == ["flores:en-et", "flores:et-en", "winogrande:et"]
    assert labels("mmlu_indic:brx") == ["mmlu_indic:brx"]  # of files alone
    assert [r.shots for r in requests_of(["arc_easy", "piqa"])] == [25, None]
    assert [r.shots for r in requests_of(["arc_easy", "piqa"], shots=2)] == [2, 2]
    with pytest.raises(ValueError, match="no language 'xx'; it has"):
        requests_of(["sib200:xx"])


def test_examples_and_metrics_are_the_papers() -> None:
    """IST, appendix B; continued BPE, Table 11."""
    shots = {name: family.shots for name, family in FAMILIES.items()}
    assert [shots[n] for n in ("arc_challenge", "arc_challenge_indic", "hellaswag")] == [25, 25, 10]
    assert {shots[n] for n in ("mmlu", "gsm8k", "triviaqa", "xcopa", "sib200", "belebele")} == {5}
    zero = ("winogrande", "drop", "openbookqa", "commonsense_qa", "milu", "indic_copa")
    assert {shots[n] for n in zero} == {0}
    assert FAMILIES["drop"].metric == "f1"
    assert FAMILIES["gsm8k"].metric == FAMILIES["triviaqa"].metric == "exact_match"


def test_published_numbers_belong_to_tasks() -> None:
    """Every task of a paper's table can be run, and the suites are those tables."""
    scores = published_scores()
    for score in scores:
        assert score.task in FAMILIES
        assert score.language == "mean" or score.language in FAMILIES[score.task].tasks
        assert 0 <= score.value <= 1
    for suite, table in (
        ("ist-8", "Table 8"),
        ("ist-11", "Table 11"),
        ("continued-bpe-5", "Table 5"),
    ):
        own = {score.task for score in scores if score.source.endswith(table)}
        assert own == {spec.partition(":")[0] for spec in SUITES[suite]}
    of_table_8 = [score for score in scores if score.source.endswith("Table 8")]
    means = {}
    for subject in ("LLaMA-4 tokenizer", "IST tokenizer"):
        own = [score for score in of_table_8 if score.subject == subject]
        english = [score.value for score in own if score.language == "en"]
        indian = [score.value for score in own if score.language != "en"]
        assert (9, 7) == (len(english), len(indian))
        means[subject] = round(sum(english) / 9, 3), round(sum(indian) / 7, 3)
    # The averages that the paper prints.
    assert means == {"LLaMA-4 tokenizer": (0.279, 0.388), "IST tokenizer": (0.279, 0.394)}


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def test_files_choose_the_languages_of_a_whole_family(tmp_path: Path) -> None:
    """Those that are there, also ones that the Hub lacks; named languages stay."""
    touch(tmp_path, "indic-mmlu-mila/hi.jsonl", "indic-mmlu-mila/brx.jsonl")
    touch(tmp_path, "mgsm/mgsm_te.tsv")
    found = with_files(requests_of(["mmlu_indic", "mgsm", "sib200:hi", "piqa"]), tmp_path)
    assert [request.label for request in found] == [
        *("mmlu_indic:hi", "mmlu_indic:brx", "mgsm:te", "sib200:hi", "piqa")
    ]
    assert found[1].task == "mmlu_indic_brx"
    assert with_files(requests_of(["xcopa"]), tmp_path) == requests_of(["xcopa"])


def test_local_files(tmp_path: Path) -> None:
    """The families' own layouts, then TASK/SPLIT for any task; half a set is an error."""
    (gsm,) = requests_of(["gsm8k"])
    assert local_config(gsm, tmp_path) is None
    touch(tmp_path, "gsm8k/test.jsonl")
    with pytest.raises(FileNotFoundError, match=r"gsm8k:en lacks the file .*train\.jsonl"):
        local_config(gsm, tmp_path)
    touch(tmp_path, "gsm8k/train.jsonl")
    config = local_config(gsm, tmp_path)
    assert config is not None
    assert config["dataset_path"] == "json"
    assert set(config["dataset_kwargs"]["data_files"]) == {"train", "test"}
    (other,) = requests_of(["piqa"])
    touch(tmp_path, "piqa/validation.parquet", "piqa/README.md")
    assert local_config(other, tmp_path) == {
        "dataset_path": "parquet",
        "dataset_name": None,
        "dataset_kwargs": {
            "data_files": {"validation": str(tmp_path / "piqa" / "validation.parquet")}
        },
    }
    touch(tmp_path, "piqa/test.jsonl")
    with pytest.raises(FileNotFoundError, match="splits of piqa"):
        local_config(other, tmp_path)


PIQA = TaskRequest("piqa", "all", "piqa", None)


def test_splits_without_a_file_are_struck_out_unless_they_are_needed() -> None:
    """The questions' split always is, the examples' where there are examples."""
    task = {"test_split": "test", "fewshot_split": "train", "validation_split": "dev"}
    files = {"dataset_kwargs": {"data_files": {"test": "test.jsonl"}}}
    found = with_known_splits(files, task, PIQA)
    assert found == {**files, "fewshot_split": None, "validation_split": None}
    with pytest.raises(FileNotFoundError, match="needs the split 'train'"):
        with_known_splits(files, {**task, "num_fewshot": 5}, PIQA)
    assert with_known_splits(files, {**task, "num_fewshot": 5}, replace(PIQA, shots=0))
    with pytest.raises(FileNotFoundError, match="needs the split 'val'"):
        with_known_splits(files, {"validation_split": "val"}, PIQA)
    assert with_known_splits({"metadata": {}}, task, PIQA) == {"metadata": {}}


def test_rows() -> None:
    """One row for each metric; the filter's name where there are several; 1.96 errors."""
    measured = {
        "alias": "piqa",
        "sample_len": 9,
        "acc,none": 0.5,
        "acc_stderr,none": 0.1,
        "bleu,none": 3.0,
        "bleu_stderr,none": "N/A",
        "exact_match,strict": 0.25,
        "exact_match_stderr,strict": float("nan"),
        "exact_match,loose": 0.75,
        "exact_match_stderr,loose": 0.0,
    }
    found = {"results": {"piqa": measured}, "n-samples": {"piqa": {"effective": 8, "original": 9}}}
    rows = rows_of(found, "m", PIQA, {})
    assert [(row.metric, row.value, row.n) for row in rows] == [
        *(("piqa/acc", 0.5, 8), ("piqa/bleu", 3.0, 8)),
        *(("piqa/exact_match:strict", 0.25, 8), ("piqa/exact_match:loose", 0.75, 8)),
    ]
    assert (rows[0].ci_low, rows[0].ci_high) == pytest.approx((0.5 - 0.196, 0.5 + 0.196))
    assert [row.ci_low for row in rows[1:]] == [None, None, 0.75]


def test_rows_of_groups() -> None:
    """The whole where lm-eval gives it, over all questions; else each member."""
    sizes = {"a": {"effective": 3}, "b": {"effective": 5}}
    members = {"a": {"acc,none": 0.5}, "b": {"acc,none": 0.25}}
    found = {"results": {**members, "piqa": {"acc,none": 0.4}}, "n-samples": sizes}
    texts = {"piqa": "ab", "a": "12", "b": "34"}
    rows = rows_of(found, "m", PIQA, texts)
    assert list(rows) == [Result("m", "all", "piqa/acc", 0.4, 8)]
    assert rows[0].text_sha256 == "ab"
    found = {"results": {**members, "piqa": {"alias": "piqa"}}, "n-samples": sizes}
    rows = rows_of(found, "m", PIQA, texts)
    assert [(r.metric, r.n, r.text_sha256) for r in rows] == [
        ("a/acc", 3, "12"),
        ("b/acc", 5, "34"),
    ]
    with pytest.raises(ValueError, match="no figure can be given"):
        rows_of({"results": {"piqa": {"acc,none": math.nan}}, "n-samples": sizes}, "m", PIQA, {})
    with pytest.raises(ValueError, match="gave no figure"):
        rows_of({"results": {"piqa": {"alias": "piqa"}}, "n-samples": sizes}, "m", PIQA, {})


def test_checksums_of_what_is_asked() -> None:
    """By task and of all; keys in any order; the first questions alone."""
    a, b = [{"q": "क", "n": 1}, {"q": "y", "n": 2}], [{"q": "z"}]
    tasks = {"a": SimpleNamespace(eval_docs=a), "b": SimpleNamespace(eval_docs=b)}
    found = asked(tasks, PIQA, None)
    lines = ['{"n": 1, "q": "क"}\n', '{"n": 2, "q": "y"}\n', '{"q": "z"}\n']
    expected = {"piqa": lines, "a": lines[:2], "b": lines[2:]}
    assert found == {name: sha256("".join(x).encode()).hexdigest() for name, x in expected.items()}
    assert found["b"] == asked(tasks, PIQA, 1)["b"]
    assert asked(tasks, PIQA, 1)["a"] == questions_sha256([{"n": 1, "q": "क"}]) != found["a"]


def test_reasons() -> None:
    """A data set with a script, one that cannot be reached, and anything else, on one line."""
    script = RuntimeError("Dataset scripts are no longer supported, but found drop.py")
    assert "code of its own, which is not run" in reason_of(script)
    assert "--data DIR" in reason_of(ConnectionError("no net"))
    assert reason_of(KeyError("question")) == "KeyError: 'question'"
    torn = RuntimeError("while generating")
    torn.__cause__ = ValueError("line 3 is\n no JSON")
    assert reason_of(torn) == "RuntimeError: while generating: line 3 is no JSON"
    assert reason_of(ValueError("a\nb")) == "a b"
    try:
        assert int("2") == 3
    except AssertionError as error:
        bare = AssertionError().with_traceback(error.__traceback__)
    assert 'assert int("2") == 3 (line ' in reason_of(bare)
    told = ValueError("the model cannot be loaded: too short")
    told.__cause__ = OSError("too short")
    assert reason_of(told) == str(told)


def test_progress_survives_a_torn_line_and_no_other_settings(tmp_path: Path) -> None:
    """What is done is read again; that of a model that has changed is only dropped when forced."""
    model = tmp_path / "model"
    touch(model, "config.json")
    settings = settings_of([model], limit=3)
    rows = Results([Result("m", "hi", "sib200/acc", 0.5, 3)])
    file = tmp_path / "out.jsonl.progress"
    HarnessProgress(file, settings).keep("m", "sib200:hi", rows)
    with file.open("a") as stream:
        stream.write('{"subject": "m", "ta')
    again = HarnessProgress(file, settings)
    assert again.done == {("m", "sib200:hi"): rows}
    again.keep("m", "sib200:ta", rows)
    assert set(HarnessProgress(file, settings).done) == {("m", "sib200:hi"), ("m", "sib200:ta")}
    import os

    os.utime(model / "config.json", ns=(1, 1))
    changed = settings_of([model], limit=3)
    with pytest.raises(FileExistsError, match="other settings"):
        HarnessProgress(file, changed)
    assert file.exists()
    assert HarnessProgress(file, changed, force=True).done == {}
    assert not file.exists()
