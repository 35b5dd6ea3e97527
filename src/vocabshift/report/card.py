"""A model card of a tokenizer, from Results and its provenance alone.

Owns the content of a card and its order. Metadata and evaluation results are huggingface_hub's
(`ModelCardData`, `EvalResult`), so that the Hub understands them. Equal input gives equal text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vocabshift.errors import printable
from vocabshift.evaluation.metrics.registry import describe
from vocabshift.report.card_facts import Source, TokenizerFacts, plain_table, training_text
from vocabshift.report.paper_tables import paper_tables, title_of
from vocabshift.report.shapes import Measure, Shape
from vocabshift.report.table_formats import escape_markdown, to_markdown
from vocabshift.results import WHOLE, Results, stands_apart

FREE_CLASSES = ("open", "copyleft")
"""Classes of licences under which text may be passed on."""

HEADLINE = ("fertility", "bytes_per_token")
"""Metrics that the card's metadata hold, by language."""

_LITTLE = 1_000_000  # bytes of training text below which a language is called little heard


def render_card(
    results: Results,
    facts: TokenizerFacts,
    *,
    subject: str | None = None,
    sources: Sequence[Source] = (),
    languages: Sequence[str] = (),
    license: str | None = None,
    evaluated_on: str = "",
    rebuild: str = "",
    limits: Sequence[str] = (),
) -> str:
    """The card as Markdown with its metadata in front.

    `subject`: the tokenizer's name in `results`, by default that of its folder; other subjects
    stand beside it. `sources`: its training text. `languages`: ISO codes for the metadata.
    `evaluated_on` names the text of the results; `rebuild` is the command that makes the same
    file again; `limits` are further sentences. ValueError where the results lack the subject.
    """
    name = facts.name if subject is None else subject
    own = rows_of(results, name)
    sections = [
        f"# {escape_markdown(facts.name)}",
        _what_it_is(facts),
        f"## Use\n\n```python\n{_USE}```",
        training_text(sources),
        figures(results, own, name, evaluated_on, units="lines"),
        _vocabulary(facts),
        _language_weights(facts),
        "## Limits\n\n" + bullets([*limits, *_limits(own, sources)]),
        _rebuild(facts, rebuild),
    ]
    body = "\n\n".join(section.strip() for section in sections if section)
    data = _metadata(own, facts, languages, license, evaluated_on)
    return f"---\n{data}\n---\n\n{body}\n"


_USE = (
    "from transformers import AutoTokenizer\n\n"
    'tokenizer = AutoTokenizer.from_pretrained("…")  # this folder, or its name on the Hub\n'
)


def _metadata(
    own: Results,
    facts: TokenizerFacts,
    languages: Sequence[str],
    license: str | None,
    evaluated_on: str,
) -> str:
    """The YAML of the card, without its fences."""
    from huggingface_hub import ModelCardData

    headline = Results(row for row in own if row.metric in HEADLINE)
    recipe = facts.config.get("recipe")
    tags = ["tokenizer", "vocabshift", *([str(recipe)] if recipe else [])]
    data = ModelCardData(
        language=list(languages) or None,
        license=license,
        library_name="transformers",
        tags=tags,
        model_name=facts.name,
        eval_results=eval_results(headline, evaluated_on),
    )
    return str(data.to_yaml()).strip()


def eval_results(rows: Results, evaluated_on: str) -> list[Any] | None:
    """Rows as the Hub's metadata have them; None if there are none, for it refuses empty lists."""
    from huggingface_hub import EvalResult

    found = []
    for row in rows:
        task, _, metric = row.metric.rpartition("/")  # of `harness`: TASK/METRIC
        found.append(
            EvalResult(
                task_type="text-generation",
                dataset_name=task or evaluated_on or "text of the evaluation",
                dataset_type=task or "text",
                dataset_config=row.language,
                metric_type=metric,
                metric_name=describe(metric).label,
                metric_value=round(row.value, 4),
            )
        )
    return found or None


def rows_of(results: Results, subject: str) -> Results:
    """The rows of a subject; ValueError if there are none."""
    own = results.where(subject=subject)
    if not own:
        known = ", ".join(results.distinct("subject")) or "no rows at all"
        raise ValueError(f"the results hold nothing of {subject!r}; they hold {known}")
    return own


def _what_it_is(facts: TokenizerFacts) -> str:
    figures = facts.figures
    recipe = facts.config.get("recipe")
    how = f"`vocabshift {facts.operation}`" + (f", recipe {_word(recipe)}" if recipe else "")
    sentences = [f"A tokenizer for `transformers` and `tokenizers`, written by {how}."]
    for key, text in (
        ("vocab_size", "{:,} tokens in its vocabulary."),
        ("superwords", "{:,} of them reach across words."),
        ("training_documents", "Learned from {:,} documents."),
        ("training_bytes", "{:,} bytes of text, each counted once."),
    ):
        if isinstance(figures.get(key), int):
            sentences.append(text.format(figures[key]))
    return " ".join(sentences)


def figures(results: Results, own: Results, name: str, evaluated_on: str, units: str) -> str:
    """By language, then what belongs to the subject as a whole, then the means beside others'.

    units: what the values rest on, in the plural: lines, say.
    """
    by_language = Results(
        row for row in results if describe(row.metric).place == "language" and row.language != WHOLE
    )
    whole = Results(row for row in own if row.language == WHOLE)
    mine = by_language.where(subject=name)
    metrics = mine.distinct("metric")
    n_lines = sorted({row.n for row in mine if describe(row.metric).counts_lines}) or [0]
    n_units = f"{n_lines[0]:,}" + (f" to {n_lines[-1]:,}" if len(n_lines) > 1 else "")
    where = f"Measured on: {escape_markdown(evaluated_on)}. " if evaluated_on else ""
    parts = [
        f"## Figures\n\n{where}A value by language rests on {n_units} {units}; ± is half "
        f"of its 95 % bootstrap interval over {units}, where one was computed.",
        bullets([title_of(metric) for metric in metrics]),
    ]
    measures = tuple(Measure(metric) for metric in metrics)
    if measures:
        shape = Shape("own", "language", "metric", "By language", measures)
        (sheet,) = paper_tables(by_language, shape, subjects=[name])
        parts.append(to_markdown(sheet, intervals=True))
    if whole:
        rows = [[title_of(row.metric), f"{row.value:,.4g}"] for row in whole]
        parts.append("### As a whole\n\n" + plain_table(["metric", "value"], rows, 1))
    if measures and len(results.distinct("subject")) > 1:
        beside = Shape("beside", "subject", "metric", "Beside others, means", measures)
        order = [name, *(other for other in by_language.distinct("subject") if other != name)]
        (sheet,) = paper_tables(by_language, beside, subjects=order)
        parts.append(to_markdown(sheet))
    return "\n\n".join(part.strip() for part in parts if part)


def _vocabulary(facts: TokenizerFacts) -> str:
    """What the vocabulary is spent on, where the record says so."""
    rows = facts.figures.get("vocabulary")
    if not isinstance(rows, list) or not rows:
        return ""
    kinds = {"name": str, "tokens": int, "share": float | int, "superwords": int}
    if not all(isinstance(row, dict) and _has(row, kinds) for row in rows):
        raise ValueError("the figures of the vocabulary in vocabshift.json are none")
    lines = [
        [
            str(row["name"]),
            f"{row['tokens']:,}",
            f"{row['share']:.2%}",
            f"{row['superwords']:,}",
            f"{share:.2%}" if isinstance(share := row.get("training_share"), float) else "–",
        ]
        for row in rows
        if row["share"] >= 0.001
    ]
    head = ["script", "tokens", "share of vocabulary", "superwords", "share of text"]
    return "## Vocabulary\n\n" + plain_table(head, lines, 1)


def _language_weights(facts: TokenizerFacts) -> str:
    """What each language counted, where the recipe found that itself (`--recipe vocabshift`)."""
    weights = facts.figures.get("language_weights")
    if not weights:
        return ""
    if not isinstance(weights, dict) or not all(
        isinstance(weight, float | int) for weight in weights.values()
    ):
        raise ValueError("the weights of languages in vocabshift.json are none")
    rows = [
        [language, f"{weight:.3f}"]
        for language, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    ]
    return (
        "## Weights of languages\n\nHow often a byte of a language counted in training: more where "
        "there is little text, and where words take many tokens. Weights given with the text came "
        "on top.\n\n" + plain_table(["language", "a byte counted"], rows, 1)
    )


def _has(row: Mapping[str, Any], kinds: Mapping[str, Any]) -> bool:
    return all(isinstance(row.get(key), kind) for key, kind in kinds.items())


def _limits(own: Results, sources: Sequence[Source]) -> list[str]:
    """What follows from the figures and the sources alone."""
    said = [
        "The intervals say how much a figure would vary with other lines of the same text; they "
        "say nothing of text of another kind.",
        "Fertility counts words between blanks: it compares tokenizers on one language, not "
        "languages with each other.",
    ]
    if not sources:
        return [*said, "Where its training text comes from is not recorded."]
    size: dict[str, int] = {}
    for source in sources:
        size[source.language] = size.get(source.language, 0) + source.n_bytes
    measured = Results(r for r in own if describe(r.metric).place == "language").distinct(
        "language"
    )
    measured = [label for label in measured if label != WHOLE]
    total = sum(size.values())
    restricted = sum(s.n_bytes for s in sources if s.licence_class not in FREE_CLASSES)
    if restricted:
        kinds = sorted({s.licence_class for s in sources} - set(FREE_CLASSES))
        said.append(
            f"{restricted / total:.0%} of the training text may not be passed on freely "
            f"({', '.join(kinds)}): look at the licences before you publish the tokenizer."
        )
    for text, some in (
        ("Little training text (under 1 MB): {}.", [x for x in size if size[x] < _LITTLE]),
        ("Measured without training text: {}.", [x for x in measured if x not in size]),
        ("Trained and not measured: {}.", [x for x in size if x not in measured]),
    ):
        labels = [label for label in some if not stands_apart(label)]
        if labels:
            said.append(text.format(", ".join(sorted(labels))))
    return said


def _rebuild(facts: TokenizerFacts, command: str) -> str:
    lines = ["## Rebuild", ""]
    if command:
        lines += [
            "This command writes the same `tokenizer.json`, to the byte, from the same text:",
            "",
            *fenced(command.strip(), "sh"),
            "",
        ]
    rows = [
        ["sha256 of tokenizer.json", facts.sha256],
        ["its size, bytes", f"{facts.n_bytes:,}"],
        ["vocabshift", facts.version],
        ["config hash", facts.config_hash],
        *(
            [["fingerprint of the text", facts.corpus_fingerprint]]
            if facts.corpus_fingerprint
            else []
        ),
    ]
    config = json.dumps(facts.config, ensure_ascii=False, indent=2, sort_keys=True)
    return "\n".join([*lines, plain_table(["", ""], rows, 2), "", *fenced(config, "json")])


def fenced(text: str, language: str) -> list[str]:
    """`text` as a block of code whose fence is longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    shown = "\n".join(printable(line) for line in text.split("\n"))
    return [fence + language, shown, fence]


def bullets(sentences: Sequence[str]) -> str:
    """A Markdown list."""
    return "\n".join(f"- {escape_markdown(sentence)}" for sentence in sentences)


def _word(value: Any) -> str:
    return escape_markdown(str(value))
