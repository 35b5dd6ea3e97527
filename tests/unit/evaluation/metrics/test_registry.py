"""The registry: one place from which `--metrics`, help, rows, tables, pages and docs are made."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from vocabshift.cli.main import main
from vocabshift.evaluation.metrics.metric import Metric, Ratio
from vocabshift.evaluation.metrics.registry import (
    GROUPS,
    METRICS,
    by_group,
    check_names,
    describe,
    register,
)
from vocabshift.report.tables import to_markdown, to_rich
from vocabshift.results import Result, Results

DOCS = Path(__file__).parents[4] / "docs" / "evaluate.md"


def test_names_are_checked() -> None:
    """An unknown name is answered with the known ones; a repeated one counts once."""
    assert ("fertility",) == check_names("fertility")
    assert ("fertility",) == check_names(["fertility", "fertility"])
    assert tuple(METRICS) == check_names("all")
    assert ("gini", "fertility") == check_names(["gini", "all"])[:2]
    with pytest.raises(ValueError, match=r"'fertilty'; known are: fertility, bytes_per_token"):
        check_names(["fertilty"])
    with pytest.raises(ValueError, match="no metric is given"):
        check_names([])


@pytest.fixture
def toy() -> Iterator[Metric]:
    """A metric that is nowhere but in the registry: tokens a byte, in three steps."""
    metric = register(
        Metric(
            "toy_rate",
            "toys",
            "rate of toys",
            "three tokens per byte",
            "lower",
            Ratio(lambda on: (3 * on.lines.n_tokens, on.lines.n_bytes)),
            has_bars=True,
            decimals=1,
        )
    )
    yield metric
    del METRICS[metric.name]


def test_a_metric_of_the_registry_alone(toy, make_tokenizer, tmp_path, capsys) -> None:
    """It is known to `--metrics`, help, `--json`, the table, Markdown and the page."""
    folder = make_tokenizer([("a", "b")]).save_pretrained(tmp_path / "tiny")
    text = tmp_path / "text.txt"
    text.write_text("abab\nab\n", encoding="utf-8")  # 3 tokens of 6 bytes
    page = tmp_path / "page.html"
    words = ["evaluate", str(folder), "--text", f"en={text}", "--metrics", "toy_rate"]
    assert 0 == main([*words, "--json", "--html", str(page)])
    results = Results(Result(**row) for row in json.loads(capsys.readouterr().out)["results"])
    assert ["toy_rate"] == results.distinct("metric")
    assert 1.5 == results.value("tiny", "en", "toy_rate")
    html = page.read_text(encoding="utf-8")
    assert "rate of toys" in html
    assert "three tokens per byte, lower is better" in html
    assert "| en | 1.5 |" in to_markdown(results)
    assert "1.5" in _shown(results, "toy_rate")
    assert 0 == main(words)
    assert "toy_rate" in capsys.readouterr().out
    assert 0 == main(["evaluate", "--help"])
    assert "  toys           toy_rate\n" in capsys.readouterr().out


def _shown(results: Results, metric: str) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(to_rich(results, metric))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_a_name_is_taken_once(toy) -> None:
    with pytest.raises(ValueError, match="toy_rate"):
        register(toy)
    with pytest.raises(ValueError, match="fertility"):
        register(METRICS["fertility"])


def test_a_metric_that_is_not_registered_is_unknown() -> None:
    with pytest.raises(ValueError, match="unknown metric 'toy_rate'"):
        check_names("toy_rate")


def test_descriptions() -> None:
    """Names are keys, labels are told apart, groups are known, notes are there."""
    for name, metric in METRICS.items():
        assert name == metric.name
        assert metric.note
        assert metric.group in GROUPS
    labels = [metric.label for metric in (*METRICS.values(), describe("bits_per_byte"))]
    assert len(labels) == len(set(labels))
    assert set(METRICS) == {metric.name for metrics in by_group().values() for metric in metrics}


def test_directions() -> None:
    """What a shorter or better text is; a rate that only describes has no direction."""
    better = {name: metric.better for name, metric in METRICS.items()}
    lower = ("fertility", "tokens_per_character", "normalized_sequence_length", "loss_rate", "gini")
    higher = ("bytes_per_token", "characters_per_token", "sequence_reduction", "renyi_efficiency")
    assert {"lower"} == {better[name] for name in (*lower, "premium", "syllable_cut_rate")}
    assert {"higher"} == {better[name] for name in (*higher, "morph_score", "lakh_grouping")}
    assert {"neither"} == {better[name] for name in ("superword_rate", "vocab_size")}


def test_a_metric_of_others_is_shown_by_its_name() -> None:
    """lm-eval's, say: no direction, no place but languages."""
    found = describe("my_metric")
    assert ("my metric", "", 0, "language") == (found.label, found.note, found.sign, found.place)
    assert not found.is_spoilt_by_loss


def test_help_names_every_metric(capsys) -> None:
    assert 0 == main(["evaluate", "--help"])
    words = capsys.readouterr().out.replace(",", " ").replace(":", " ").split()
    assert set(METRICS) <= set(words)


def test_docs_list_every_metric() -> None:
    """The table at the end of docs/evaluate.md is the registry's."""
    expected = ["| metric | group | what it is | better | needs |", "|---|---|---|---|---|"]
    for metrics in by_group().values():
        for metric in metrics:
            needs = ", ".join(sorted(metric.needs - {"text"}))
            expected.append(
                f"| `{metric.name}` | {metric.group} | {metric.label}: {metric.note} | "
                f"{metric.better} | {needs} |"
            )
    _, _, table = DOCS.read_text(encoding="utf-8").partition("## All metrics\n")
    found = [line for line in table.splitlines() if line.startswith("|")]
    assert expected == found, "\n".join(expected)
