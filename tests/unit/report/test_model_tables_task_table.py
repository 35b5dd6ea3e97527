"""Tasks beside the papers' numbers."""

from __future__ import annotations

import hashlib
import io
import json
from statistics import fmean

from rich.console import Console

from vocabshift.report.model_tables import beside, published_scores, task_table, with_means
from vocabshift.results import Result, Results

RESULTS = Results(
    [
        Result("old", "hi", "indic_copa/acc", 0.5, 100, 0.4, 0.6),
        Result("old", "ta", "indic_copa/acc", 0.7, 100, 0.6, 0.8),
        Result("new", "hi", "indic_copa/acc", 0.6, 100),
        Result("old", "en-et", "flores/chrf", 40.0, 10),
        Result("old", "en", "drop/f1", 0.25, 10),
        Result("old", "en", "drop/em", 0.125, 10),
    ]
)


def test_means_are_over_languages_that_a_subject_has_all_of() -> None:
    """Pairs of languages and single ones have none."""
    added = [row for row in with_means(RESULTS) if row.language == "mean"]
    assert [(row.subject, row.metric, row.n) for row in added] == [("old", "indic_copa/acc", 200)]
    assert abs(added[0].value - 0.6) < 1e-12


def test_the_papers_stand_beside() -> None:
    """The mean of Indian languages, single languages, and another metric by its name."""
    published = beside(RESULTS)
    sources = {score.source.rpartition(", ")[2] for score in published}
    assert sources == {"Table 8", "Table 11", "Table 5"}
    assert {score.task for score in published} == {"indic_copa", "flores", "drop"}
    out = io.StringIO()
    Console(file=out, width=250).print(task_table(RESULTS, published))
    lines = out.getvalue().split("\n")
    (mean,) = [line for line in lines if "mean" in line]
    assert "0.600" in mean
    assert "LLaMA-4 tokenizer 0.544" in mean
    assert "Llama-3.2 as it is 0.580" in mean
    assert any("0.500 ±0.100" in line and "0.600" in line for line in lines)
    assert any("no training comet 0.432 ±0.008" in line for line in lines)
    assert any("drop/em" in line and "tokenizer f1 0.048" in line for line in lines)


def test_the_papers_numbers_are_as_they_were_checked() -> None:
    """A slip of a digit would pass for a paper's result, and nothing else would notice it."""
    scores = published_scores()
    lines = "".join(json.dumps(list(score.to_dict().values())) + "\n" for score in scores)
    assert 120 == len(scores)
    assert "962ba6f13e29f395" == hashlib.sha256(lines.encode()).hexdigest()[:16]


def test_the_papers_means() -> None:
    """Of each table's columns, which say where a wrong number is."""
    values: dict[tuple[str, str], list[float]] = {}
    for score in published_scores():
        values.setdefault((score.source.rpartition(", ")[2], score.subject), []).append(score.value)
    found = {key: (len(column), round(fmean(column), 4)) for key, column in values.items()}
    assert found == {
        ("Table 8", "LLaMA-4 tokenizer"): (16, 0.3264),
        ("Table 8", "IST tokenizer"): (16, 0.3294),
        ("Table 11", "Llama-3.2 as it is"): (8, 0.4612),
        ("Table 11", "Llama-3.2 with IST"): (8, 0.4525),
        ("Table 5", "Llama-3.2-1B, no training"): (9, 0.5427),
        ("Table 5", "Llama-3.2-1B, default tokenizer"): (9, 0.608),
        ("Table 5", "Llama-3.2-1B, 16k naive"): (9, 0.5956),
        ("Table 5", "Llama-3.2-1B, 16k continued"): (9, 0.6041),
        ("Table 5", "Llama-3.2-3B, no training"): (9, 0.6549),
        ("Table 5", "Llama-3.2-3B, default tokenizer"): (9, 0.7174),
        ("Table 5", "Llama-3.2-3B, 16k naive"): (9, 0.715),
        ("Table 5", "Llama-3.2-3B, 16k continued"): (9, 0.7093),
    }


def test_bits_per_byte_have_three_decimals() -> None:
    """A difference of 0.005 is one worth a table."""
    from vocabshift.report.paper_tables import paper_tables
    from vocabshift.report.table_formats import to_markdown as sheet_markdown
    from vocabshift.report.tables import to_markdown

    rows = Results([Result("m", "hi", "bits_per_byte", 1.6789, 4)])
    assert "1.679" in to_markdown(rows)
    assert "1.679" in sheet_markdown(paper_tables(rows, "languages")[0])
