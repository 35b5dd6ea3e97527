"""Views for a report: a few lines of every language as each tokenizer cuts them, and vocabularies.

Owns which lines are shown: the same ones every time, short enough to be read, and with the same
numbers in every language where the texts have equally many lines (parallel text). Knows nothing
of pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from vocabshift.bpe.vocabulary_report import SPECIAL, classes_of
from vocabshift.evaluation.engine import Engine, engine_of
from vocabshift.evaluation.token_view import tokenized_lines
from vocabshift.report.views import LanguageView, TokenViews, VocabularyPart
from vocabshift.text.languages import find_language

N_LINES = 2
"""Lines shown of each language."""

_LOOKED_AT = 2000  # lines of a language among which the shown ones are chosen
_FIT = range(40, 141)  # characters of a line that reads well in a view
_MOST = 400  # characters at which a line without a choice is cut


def token_views(
    tokenizers: Mapping[str, object],
    texts: Mapping[str, Sequence[str]],
    *,
    text: str | None = None,
    n_lines: int = N_LINES,
) -> TokenViews:
    """Lines and vocabularies of `tokenizers` (name -> what `engine_of` takes) for a report.

    `texts`: {language label: lines}; shown are `n_lines` of the first 2,000 of each. `text` says
    what they are (default: how many). Vocabularies are counted by script.
    """
    engines = {name: engine_of(tokenizer) for name, tokenizer in tokenizers.items()}
    heads = {
        label: [line for line in lines[:_LOOKED_AT] if line.strip()]
        for label, lines in texts.items()
    }
    shown = choose_lines(heads, n_lines)
    languages = tuple(
        LanguageView(label, language_name(label), _cut(engines, lines))
        for label, lines in shown.items()
        if lines
    )
    vocabularies = {name: _parts(engine) for name, engine in engines.items()}
    return TokenViews(languages, vocabularies, _how_many(texts) if text is None else text)


def _how_many(texts: Mapping[str, Sequence[str]]) -> str:
    counts = {len(lines) for lines in texts.values()}
    if len(counts) == 1:
        n = counts.pop()
        return f"{n:,} line{'' if n == 1 else 's'} of each language"
    return f"{sum(len(lines) for lines in texts.values()):,} lines"


def choose_lines(heads: Mapping[str, Sequence[str]], n_lines: int) -> dict[str, list[str]]:
    """The first lines that read well; with the same numbers where languages have equally many."""
    counts = {len(lines) for lines in heads.values()}
    if len(counts) == 1:
        n = counts.pop()
        fit = [i for i in range(n) if all(len(lines[i]) in _FIT for lines in heads.values())]
        fit += sorted(
            set(range(n)) - set(fit), key=lambda i: max(len(lines[i]) for lines in heads.values())
        )
        return {
            label: [lines[i][:_MOST] for i in sorted(fit[:n_lines])]
            for label, lines in heads.items()
        }
    chosen = {}
    for label, lines in heads.items():
        fit = [i for i in range(len(lines)) if len(lines[i]) in _FIT]
        fit += sorted(set(range(len(lines))) - set(fit), key=lambda i: len(lines[i]))
        chosen[label] = [lines[i][:_MOST] for i in sorted(fit[:n_lines])]
    return chosen


def _cut(engines: Mapping[str, Engine], lines: Sequence[str]) -> dict[str, tuple]:  # type: ignore[type-arg]
    return {name: tuple(tokenized_lines(engine, lines)) for name, engine in engines.items()}


def language_name(label: str) -> str:
    """ "Kashmiri (Arab)" for "ks_Arab"; the label itself where it means no language."""
    language = find_language(label)
    if language is None:
        return label
    _, separator, script = label.replace("-", "_").partition("_")
    return f"{language.name} ({script})" if separator else language.name


def _parts(engine: Engine) -> tuple[VocabularyPart, ...]:
    """Tokens and superwords of each script and class; they add up to the vocabulary."""
    names, classes = classes_of(engine.token_bytes, engine.row_count)
    tokens: Counter[str] = Counter()
    superwords: Counter[str] = Counter()
    for token_id in engine.tokens:
        data = engine.token_bytes.get(token_id)
        name = SPECIAL if data is None else names[classes[token_id]]
        tokens[name] += 1
        superwords[name] += data is not None and b" " in data.strip()
    return tuple(VocabularyPart(name, n, superwords[name]) for name, n in tokens.items())
