"""Several checkpoints on the same text: each is loaded, scored and let go; then they are paired.

Owns the order of that work and the rows over all languages. What a price is, is `score`'s; which
models can be judged, `causal_model`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.evaluation.causal_model import check_model, load_causal_model
from vocabshift.evaluation.engine import Engine, engine_of
from vocabshift.evaluation.paired_scores import ScoreComparison, compare_scores
from vocabshift.evaluation.score import DocumentScore, labelled, score_documents, score_rows
from vocabshift.evaluation.subject import subject_names
from vocabshift.evaluation.texts import ALL
from vocabshift.results import Results

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus


@dataclass(frozen=True, slots=True)
class ScoredModels:
    """What was found: rows by subject and language, pairs by language, and the documents."""

    results: Results
    comparisons: tuple[ScoreComparison, ...]
    documents: Mapping[str, Sequence[DocumentScore]]  # by subject


def score_models(
    models: Sequence[str | Path],
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
    *,
    context: int | None = None,
    overlap: int | None = None,
    batch_tokens: int = 4096,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> ScoredModels:
    """Bits per byte of model folders or Hub names on `texts`, per language and over "all".

    "all" (bits of all documents over bytes of all) stands behind the languages where there are
    several. Models are compared by document. One model is in memory at a time; all are checked,
    and their tokenizers opened, before the first is loaded. The other arguments are those of
    `score_documents` and `load_causal_model`, which say what is raised; `progress` is called with
    subject, tokens done and all tokens.
    """
    names = subject_names(models)
    engines = [_checked(source, trust_remote_code) for source in models]
    documents_of = _read(texts)
    rows = Results()
    scored: dict[str, Sequence[DocumentScore]] = {}
    for name, source, engine in zip(names, models, engines, strict=True):
        model = load_causal_model(
            source, dtype=dtype, device=device, trust_remote_code=trust_remote_code
        )
        documents = score_documents(
            model,
            engine,
            documents_of,
            context=context,
            overlap=overlap,
            batch_tokens=batch_tokens,
            progress=None if progress is None else _of_subject(progress, name),
        )
        del model  # before the next one needs the room
        scored[name] = with_total(documents)
        rows += score_rows(name, scored[name])
    return ScoredModels(rows, tuple(compare_scores(scored)), scored)


def with_total(documents: Sequence[DocumentScore]) -> Sequence[DocumentScore]:
    """The documents, and behind them all of them again as "all" where there are more languages
    than one."""
    languages = {document.language for document in documents}
    if len(languages) == 1 or ALL in languages:
        return documents
    return [*documents, *(replace(document, language=ALL) for document in documents)]


def _read(
    texts: Corpus | Mapping[str, Iterable[str]] | Iterable[str],
) -> dict[str, list[str]]:
    """The documents by language, read once: standard input cannot be read for each model."""
    found: dict[str, list[str]] = {}
    for language, text in labelled(texts):
        found.setdefault(language, []).append(text)
    return found


def _checked(source: str | Path, trust_remote_code: bool) -> Engine:
    """The tokenizer that lies beside a model, once it is clear that the model can be judged."""
    check_model(source, trust_remote_code=trust_remote_code)
    try:
        return engine_of(source)
    except InvalidTokenizerError as error:
        raise VocabMismatchError(
            f"the tokenizer of {source} is needed beside the model, and cannot be used: {error}"
        ) from None


def _of_subject(
    progress: Callable[[str, int, int | None], None], name: str
) -> Callable[[int, int], Any]:
    return lambda done, total: progress(name, done, total)
