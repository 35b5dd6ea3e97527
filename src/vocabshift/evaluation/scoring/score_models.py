"""Several checkpoints on the same text: each is loaded, scored, released; pairs are compared.

The paired difference of bits per byte has a bootstrap interval over documents, a p value by
exchanging the two models within documents (Fisher's randomization test; Dror et al. 2018 advise it
for such sums), and Holm's correction over the pairs of a language. Documents differ far more from
each other than two models differ on one document, so an unpaired comparison would detect little.
`score` measures one model; `models.load` checks which models can be scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.evaluation.lines.subject import checksum_of, engine_of, subject_names
from vocabshift.evaluation.metrics.metric import Floats, estimate, grouped
from vocabshift.evaluation.scoring.score import (
    METRIC,
    DocumentScore,
    bits_of,
    bytes_of,
    read_documents,
    score_documents,
    score_rows,
)
from vocabshift.evaluation.significance import holm
from vocabshift.models.load import check_model, load_causal_model
from vocabshift.progress import Progress, renamed
from vocabshift.results import UNLABELLED, WHOLE, Results, with_sources
from vocabshift.tokenizer.engine import Engine

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus


EXACT_UP_TO = 12
"""Documents up to which all 2^n exchanges are tried."""

_DRAWS = 9999
_CHUNK = 1111
_SEED = 20_260


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """Subjects `a` and `b` on the documents of one language."""

    metric: str
    a: str
    b: str
    language: str
    n: int  # documents
    difference: float  # bits per byte of a, less those of b: below 0 where a is better
    ci_low: float | None  # 95 %, paired by document; None for a single document
    ci_high: float | None
    p_value: float  # two-sided; 1 where no document differs
    p_holm: float  # corrected over the pairs of subjects of this language

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)


def compare_scores(scores: Mapping[str, Sequence[DocumentScore]]) -> list[ScoreComparison]:
    """All pairs of subjects on every language, by language and then in the subjects' order.

    `scores`: the documents of each subject, as `score_documents` gives them, the same texts in
    the same order. ValueError where they are not. Where a tokenizer loses text of a language, its
    subject is not compared there.
    """
    for (a, of_a), (b, of_b) in combinations(scores.items(), 2):
        if [(d.language, d.n_bytes) for d in of_a] != [(d.language, d.n_bytes) for d in of_b]:
            raise ValueError(f"{a} and {b} were not scored on the same documents")
    languages = {d.language: None for documents in scores.values() for d in documents}
    found = []
    for language in languages:
        own = {s: [d for d in docs if d.language == language] for s, docs in scores.items()}
        valid = {s: docs for s, docs in own.items() if not any(d.is_lost for d in docs)}
        pairs = [_compare(language, a, b, valid) for a, b in combinations(valid, 2)]
        corrected = holm([pair.p_value for pair in pairs])
        found += [replace(pair, p_holm=p) for pair, p in zip(pairs, corrected, strict=True)]
    return found


def _compare(
    language: str, a: str, b: str, documents: Mapping[str, Sequence[DocumentScore]]
) -> ScoreComparison:
    differences = bits_of(documents[a]) - bits_of(documents[b])
    of_pair = estimate([(differences, bytes_of(documents[a]))])[0]
    p_value = exchange_p(differences)
    return ScoreComparison(
        *(METRIC, a, b, language, len(differences)),
        *(of_pair.value, of_pair.low, of_pair.high, p_value, p_value),
    )


def exchange_p(differences: Floats) -> float:
    """Two-sided p value of the sum of paired differences, (n,), under exchange within pairs.

    Exact up to EXACT_UP_TO pairs; above, of 9,999 random exchanges and the one that was seen.
    Above 4,096 pairs, groups of them are exchanged together, as the bootstrap draws them.
    """
    units = grouped(np.asarray(differences, dtype=np.float64)[:, None])[:, 0]
    if not units.any():
        return 1.0
    # Rounding must not tell sums apart that are equal.
    seen = abs(units.sum()) - 1e-12 * np.abs(units).sum()
    if len(units) <= EXACT_UP_TO:
        patterns = np.arange(2 ** len(units))[:, None] >> np.arange(len(units)) & 1
        return float((np.abs((2.0 * patterns - 1) @ units) >= seen).mean())
    generator = np.random.default_rng(_SEED)
    n_as_large = 0
    for _ in range(_DRAWS // _CHUNK):
        signs = 2.0 * generator.integers(0, 2, (_CHUNK, len(units)), dtype=np.int8) - 1
        n_as_large += int((np.abs(signs @ units) >= seen).sum())
    return (1 + n_as_large) / (1 + _DRAWS)


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
    progress: Progress | None = None,
) -> ScoredModels:
    """Bits per byte of model folders or Hub names on `texts`, per language and over "all".

    "all" (bits of all documents over bytes of all) follows the languages where there are several.
    Models are compared by document. One model is in memory at a time; all are checked, and their
    tokenizers opened, before the first is loaded.

    Parameters:
        models: folders or Hub names; rows and pairs call each by its last part, made unique.
        texts, context, overlap, batch_tokens: as in `score`.
        dtype: of the weights in memory: "float32", "bfloat16", "float16", or "auto" for the
            checkpoint's own.
        device: "auto" (a GPU where there is one), "cpu", "cuda", …
        trust_remote_code: run code that lies beside a model; otherwise such a model is refused.
        progress: called with the subject as phase, tokens done and all tokens.

    Raises ValueError for a model that cannot be loaded or fits no tokenizer (VocabMismatchError),
    FileNotFoundError for one that is not there, and what `score` raises.
    """
    names = subject_names(models)
    engines = [_checked(source, trust_remote_code) for source in models]
    read = read_documents(texts)
    rows = Results()
    scored: dict[str, Sequence[DocumentScore]] = {}
    for name, source, engine in zip(names, models, engines, strict=True):
        model = load_causal_model(
            source, dtype=dtype, device=device, trust_remote_code=trust_remote_code
        )
        documents = score_documents(
            model,
            engine,
            read,
            context=context,
            overlap=overlap,
            batch_tokens=batch_tokens,
            progress=renamed(progress, name),
        )
        del model  # before the next one needs the room
        scored[name] = with_total(documents)
        rows += score_rows(name, scored[name])
    own = {name: checksum_of(e.tokenizer) for name, e in zip(names, engines, strict=True)}
    rows = with_sources(rows, read, own)
    return ScoredModels(rows, tuple(compare_scores(scored)), scored)


def with_total(documents: Sequence[DocumentScore]) -> Sequence[DocumentScore]:
    """The documents, followed by all of them again as "all" where there are more languages
    than one."""
    languages = {document.language for document in documents}
    if len(languages) == 1 or UNLABELLED in languages:
        return documents
    return [*documents, *(replace(document, language=WHOLE) for document in documents)]


def _checked(source: str | Path, trust_remote_code: bool) -> Engine:
    """The tokenizer in a model's folder, after checking that the model can be scored."""
    check_model(source, trust_remote_code=trust_remote_code)
    try:
        return engine_of(source)
    except InvalidTokenizerError as error:
        raise VocabMismatchError(
            f"the tokenizer of {source} is needed with the model, and cannot be used: {error}"
        ) from None
