"""Tables in the papers' shapes, from hand-made results to the letter."""

from __future__ import annotations

import csv
import io

import pytest

from vocabshift.report.paper_tables import paper_tables
from vocabshift.report.table_formats import (
    Cell,
    escape_csv,
    mark_best,
    to_csv,
    to_csv_long,
    to_latex,
    to_markdown,
)
from vocabshift.results import Result, Results

NAMES = {"hi": "Hindi", "mni_Mtei": "Manipuri", "mni_Beng": "Manipuri", "en": "English"}
RESULTS = Results(
    [
        Result("ist", "hi", "fertility", 1.25, 9, 1.2, 1.3),
        Result("bpe", "hi", "fertility", 2.0, 9),
        Result("ist", "en", "fertility", 1.75, 9, 1.7, 1.8),
        Result("bpe", "en", "fertility", 1.5, 9),
        Result("ist", "code", "fertility", 2.5, 3),
        Result("ist", "hi", "bytes_per_token", 12.5, 9),
        Result("bpe", "hi", "bytes_per_token", 10.0, 9),
        Result("ist", "en", "bytes_per_token", 4.5, 9),
        Result("bpe", "en", "bytes_per_token", 4.5, 9),
        Result("ist", "hi", "sequence_reduction", 0.75, 9),
        Result("ist", "en", "sequence_reduction", 0.25, 9),
        Result("bpe", "hi", "sequence_reduction", 0.5, 9),
    ]
)
SMALL = Results(row for row in RESULTS if row.language != "code")


def test_languages_across_with_the_mean_and_code_behind_it() -> None:
    """The best is bold; a mean stands only where no language is missing; code stays out of it."""
    (sheet,) = paper_tables(RESULTS, "ist-22", names=NAMES)
    text = to_markdown(sheet)
    assert text.startswith(
        "### Fertility of all tokenizers, lower is better (IST, Table 22)\n\n"
        "| tokenizer | en | hi | mean | code |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| ist | 1.75 | **1.25** | **1.50** | 2.50 |\n"
        "| bpe | **1.50** | 2.00 | 1.75 | – |\n\n"
        "- In the paper and not in these results: Assamese, Bengali, Bodo,"
    )
    assert "Hindi" not in text
    assert "| ist | 1.75 ±0.05 | **1.25** ±0.05 |" in to_markdown(sheet, intervals=True)


def test_metrics_across_are_means_over_languages() -> None:
    """Shares in per cent where the paper has them so; what is missing is said, not invented."""
    (sheet,) = paper_tables(SMALL, "matra-2", names=NAMES)
    assert ("SeqRed", "BPT", "Fertility") == sheet.columns
    assert to_markdown(sheet).splitlines()[4:9] == [
        "| ist | 50.0% | **8.50** | **1.50** |",
        "| bpe | – | 7.25 | 1.75 |",
        "",
        "- NSL is left out: the results hold no tokens_per_character.",
        "- 1ch% is left out: the results hold no single_character_rate.",
    ]


def test_metrics_down_and_tokenizers_across() -> None:
    rows = [
        Result(subject, language, metric, value, 9)
        for metric, values in {
            "renyi_entropy": (20.5, 21.5),
            "renyi_efficiency": (0.2, 0.3),
        }.items()
        for subject, value in zip(("a", "b"), values, strict=True)
        for language in ("hi", "en")
    ]
    (sheet,) = paper_tables(Results(rows), "ist-6")
    assert to_markdown(sheet).splitlines()[2:6] == [
        "|  | a | b |",
        "| --- | ---: | ---: |",
        "| Entropy | 20.50 | 21.50 |",
        "| Efficiency ↑ | 0.200 | **0.300** |",
    ]


def test_all_tokens_are_those_of_a_line_times_the_lines() -> None:
    values = (("hi", 100.5, 10), ("en", 2.0, 3))
    rows = [Result("a", language, "tokens_per_line", value, n) for language, value, n in values]
    (sheet,) = paper_tables(Results(rows), "matra-2")
    assert "1,011" == sheet.rows[0].cells[0].number
    (sheet,) = paper_tables(Results(rows[:1]), "matra-2")
    assert "1,005" == sheet.rows[0].cells[0].number


def test_counts_have_no_decimals() -> None:
    rows = [Result("a", "all", "vocab_size", 200_000.0, 1)]
    (sheet,) = paper_tables(Results(rows), "subjects")
    assert "200,000" == sheet.rows[0].cells[0].number


def test_languages_of_the_paper_by_their_names() -> None:
    """In the paper's order; one with two texts says which; others are left out."""
    more = Results(
        Result("ist", label, "fertility", 2.0, 9) for label in ("mni_Mtei", "mni_Beng", "kn")
    )
    (sheet,) = paper_tables(SMALL + more, "matra-3", names=NAMES)
    heads = [row.head for row in sheet.rows]
    assert ["Hindi", "Manipuri (mni_Beng)", "Manipuri (mni_Mtei)", "English"] == heads
    assert ("ist", "bpe") == sheet.columns


def test_families_are_means_of_their_languages() -> None:
    families = {"hi": "Indo-Aryan", "ne": "Indo-Aryan", "en": "Germanic"}
    rows = zip(("hi", "ne", "en", "xx"), (1.0, 2.0, 3.0, 4.0), strict=True)
    results = Results(Result("a", label, "fertility", value, 9) for label, value in rows)
    (sheet,) = paper_tables(results, "families", families=families)
    assert ("Germanic", "Indo-Aryan", "other", "mean") == sheet.columns
    assert ["3.00", "1.50", "4.00", "2.50"] == [cell.number for cell in sheet.rows[0].cells]
    assert "Indo-Aryan: hi, ne." in sheet.notes


def test_plain_shapes_have_a_table_for_each_metric() -> None:
    sheets = paper_tables(RESULTS, "languages", subjects=["bpe", "ist"])
    assert [f"languages-{m}" for m in ("fertility", "bytes-per-token", "sequence-reduction")] == [
        sheet.name for sheet in sheets
    ]
    assert ("bpe", "ist") == sheets[0].columns
    assert ["en", "hi", "mean", "code"] == [row.head for row in sheets[0].rows]
    assert [False, False, True, False] == [row.begins_group for row in sheets[0].rows]


def test_latex() -> None:
    (sheet,) = paper_tables(SMALL.where(metric="fertility"), "languages")
    assert to_latex(sheet, intervals=True) == (
        "% needs: booktabs\n"
        "\\begin{table}[t]\n"
        "  \\centering\n"
        "  \\caption{fertility (tokens per word) $\\downarrow$}\n"
        "  \\label{tab:languages-fertility}\n"
        "  \\small\n"
        "  \\begin{tabular}{@{}lrr@{}}\n"
        "    \\toprule\n"
        "    language & ist & bpe \\\\\n"
        "    \\midrule\n"
        "    en & 1.75 {\\tiny$\\pm$\\,0.05} & \\textbf{1.50} \\\\\n"
        "    hi & \\textbf{1.25} {\\tiny$\\pm$\\,0.05} & 2.00 \\\\\n"
        "    \\midrule\n"
        "    mean & \\textbf{1.50} & 1.75 \\\\\n"
        "    \\bottomrule\n"
        "  \\end{tabular}\n"
        "\\end{table}\n"
    )


def test_a_wide_latex_table_is_scaled_and_its_percent_signs_escaped() -> None:
    labels = [f"l{i:02}" for i in range(20)]
    (wide,) = paper_tables(Results(Result("a", x, "fertility", 2.0, 9) for x in labels), "subjects")
    assert "\\resizebox{\\linewidth}{!}{%\n" in to_latex(wide)
    assert "% needs: booktabs, graphicx" in to_latex(wide)
    (shares,) = paper_tables(SMALL, "matra-2")
    assert "ist & 50.0\\% & " in to_latex(shares)


def test_csv_is_wide_or_long_and_keeps_all_digits() -> None:
    third = Results([Result("a", "hi", "fertility", 1 / 3, 9, 0.3, 0.4), *SMALL[4:6]])
    sheets = paper_tables(Results(third[:1]), "subjects")
    assert "tokenizer,hi\na,0.3333333333333333\n" == to_csv(sheets)
    assert (
        "table,subject,language,metric,value,n,ci_low,ci_high\n"
        "subjects-fertility,a,hi,fertility,0.3333333333333333,9,0.3,0.4\n"
    ) == to_csv_long(sheets)
    both = to_csv(paper_tables(SMALL, "subjects"))
    assert both.count("\ntokenizer,") == 3
    assert "\nbpe,,0.5,\n" in both


HOSTILE = "=cmd|' /C calc'!A0,<script>*x*\\end{table}\u202e\n"


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    """No markup, no LaTeX command, no formula and no new row comes from a name."""
    sheets = paper_tables(Results([Result(HOSTILE, "_a_&b", "fertility", 2.0, 1)]), "subjects")
    assert to_markdown(sheets[0]).splitlines()[2:] == [
        "| tokenizer | \\_a\\_&amp;b |",
        "| --- | ---: |",
        "| =cmd\\|' /C calc'!A0,&lt;script&gt;\\*x\\*\\\\end{table}\\\\u202e\\\\n | 2.00 |",
    ]
    latex = to_latex(sheets[0])
    assert 1 == latex.count("\\end{table}")
    assert r"\textbackslash{}end\{table\}\textbackslash{}u202e" in latex
    starred = paper_tables(Results([Result("[1]*", "hi", "fertility", 2.0, 1)]), "subjects")
    assert "\n    {[}1]{*} & 2.00 " in to_latex(starred[0])
    rows = list(csv.reader(io.StringIO(to_csv(sheets))))
    assert ["'=cmd|' /C calc'!A0,<script>*x*\\end{table}\\u202e\\n", "2.0"] == rows[1]
    assert all(cell[:1] not in "=+-@" or not cell for row in rows for cell in row)


@pytest.mark.parametrize("name", ["=1+1", " -1", "@x", "＝1+1", "＋1", "－1", "＠x"])
def test_formulas_of_csv_begin_with_an_apostrophe(name: str) -> None:
    """Full-width signs too: some spreadsheets take them for the plain ones."""
    assert f"'{name}" == escape_csv(name)
    assert "x=1" == escape_csv("x=1")


def test_numbers_that_print_the_same_are_all_best() -> None:
    cells = [Cell(s, "hi", "fertility", v) for s, v in (("a", 1.001), ("b", 1.0), ("c", None))]
    assert [True, True, False] == [cell.is_best for cell in mark_best(cells, -1)]
    unknown = [Cell(s, "hi", "some_metric", v) for s, v in (("a", 1.0), ("b", 2.0))]
    assert [False, False] == [cell.is_best for cell in mark_best(unknown, 0)]
    assert not mark_best(cells[:1], -1)[0].is_best


@pytest.mark.parametrize(
    ("shape", "subjects", "message"),
    [
        ("ist-5", (), "known are: languages"),
        ("ist-4", (), "evaluate … --metrics normalized_sequence_length"),
        ("matra-4", (), "hold none of them"),
        ("subjects", ("nobody",), "they hold ist, bpe"),
    ],
)
def test_what_cannot_be_shown_is_refused(shape: str, subjects, message: str) -> None:
    results = Results(row for row in SMALL if row.language == "en")
    with pytest.raises(ValueError, match=message):
        paper_tables(results, shape, subjects=subjects, names=NAMES)


def test_no_results_are_refused() -> None:
    with pytest.raises(ValueError, match="hold no rows"):
        paper_tables(Results(), "ist-3")


def test_figures_of_a_tokenizer_that_loses_text_are_marked_and_never_the_best() -> None:
    loss = Results(
        [Result("ist", "hi", "loss_rate", 0.5, 9), Result("bpe", "hi", "loss_rate", 0, 9)]
    )
    (sheet,) = paper_tables(SMALL + loss, "ist-3", names=NAMES)
    text = to_markdown(sheet)
    assert "| ist | 1.75 | 1.25† | 1.50† |" in text
    assert "| bpe | **1.50** | 2.00 | 1.75 |" in text
    assert "- † not valid: the tokenizer loses text" in text
    assert "1.25$^\\dagger$" in to_latex(sheet)


def test_scripts_in_the_place_of_languages_have_no_mean() -> None:
    rows = [Result("a", script, "script_share", 0.5, 9) for script in ("Latin", "Tamil")]
    (sheet,) = paper_tables(Results(rows), "subjects")
    assert ("Latin", "Tamil") == sheet.columns
