"""What kind of token each id is (as `check` reports it), its script, and how often text uses it.

Owns the precedence of the classes. Source: the classes of Land and Bartolo 2024 (section 3.1), and
those that our self-tokenization test adds. Knows nothing of models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vocabshift.checks.check import check
from vocabshift.checks.vocabulary import our_unused
from vocabshift.checks.vocabulary_report import SPECIAL, classes_of
from vocabshift.text.corpus import Corpus
from vocabshift.text.counting import CorpusReader
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.token_bytes import byte_pieces, token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer

ORDINARY, SUPERWORD, ATOMIC = "ordinary", "superword", "atomic"
BYTE, PARTIAL = "byte_piece", "partial_utf8"
BY_MERGES, BY_PIPELINE = "unreachable", "unreachable_by_pipeline"
BY_SKIPPING = "only_by_merge_skipping"
SPECIALS, ADDED, DUMMY, NO_TOKEN = "special", "added", "dummy", "no_token"

CLASSES = {
    ORDINARY: "made by merges, whole text",
    SUPERWORD: "text on both sides of a space",
    ATOMIC: "one character that no merge makes",
    BYTE: "stands for one byte",
    PARTIAL: "begins or ends inside a character",
    BY_MERGES: "its merges do not rebuild it",
    BY_PIPELINE: "no text yields it",
    BY_SKIPPING: "only a whole pre-token yields it (merge skipping)",
    SPECIALS: "added, special",
    ADDED: "added, not special",
    DUMMY: "added as a reference, never in text",
    NO_TOKEN: "a row without a token",
}
"""Every class, with what it is for people."""

JUDGED = (ORDINARY, SUPERWORD, ATOMIC, BY_SKIPPING)
"""Classes that text yields whole: z-scores, shares and verdicts are about these."""


@dataclass(frozen=True, eq=False)
class TokenKinds:
    """Every row of a model."""

    tokens: list[str]  # as the vocabulary spells it; "" for a row without a token
    classes: npt.NDArray[np.str_]  # (rows,) one of CLASSES
    scripts: list[str]  # script, or class of `vocabulary_report`

    def is_in(self, *classes: str) -> npt.NDArray[np.bool_]:
        """(rows,) which rows are of these classes."""
        return np.isin(self.classes, classes)


def classify(tokenizer: Tokenizer, rows: int) -> TokenKinds:
    """The class of each of `rows` rows (at least those of the tokenizer)."""
    vocab = tokenizer.model.vocab
    found = np.full(rows, NO_TOKEN, dtype=object)
    found[list(vocab.values())] = ORDINARY
    report = check(tokenizer)
    made = {left + right for left, right in tokenizer.model.merges}
    spelled = token_bytes(tokenizer)
    atomic = [
        token
        for token, token_id in vocab.items()
        if token not in made and len(spelled.get(token_id, b"").decode(errors="replace")) == 1
    ]
    rare = set(report.only_in_rare_contexts)
    never = [token for token in report.unreachable_by_pipeline or () if token not in rare]
    for name, tokens in (  # the later, the stronger
        (ATOMIC, atomic),
        (SUPERWORD, report.superwords),
        (PARTIAL, report.partial_utf8),
        (BY_MERGES, report.unreachable),
        (BY_SKIPPING, report.only_by_merge_skipping),
        (BY_PIPELINE, never),
        (BYTE, byte_pieces(tokenizer)),
    ):
        found[[vocab[token] for token in tokens]] = name
    names = [""] * rows
    for token, token_id in vocab.items():
        names[token_id] = token
    for entry in tokenizer.added_tokens:
        found[entry.id] = SPECIALS if entry.special else ADDED
        names[entry.id] = entry.content
    found[our_unused(tokenizer)] = DUMMY
    scripts, numbers = classes_of(spelled, rows)
    by_row = [scripts[number] if number >= 0 else SPECIAL for number in numbers.tolist()]
    return TokenKinds(names, found.astype(str), by_row)


def count_ids(
    tokenizer: Tokenizer, corpus: Corpus, rows: int, *, threads: int = 1
) -> npt.NDArray[np.int64]:
    """(rows,) tokens of all documents, each once, unweighted: what tells a rare token from one that
    is used and unlearned. Strings of special tokens count as such. CorpusError where there is no
    text."""
    encoder = Encoder(tokenizer)
    total = np.zeros(rows, dtype=np.int64)
    for block in CorpusReader(corpus, (), by_language=True).read(None):
        ids, _ = encoder.encode_documents(block.data, block.starts, block.ends, threads=threads)
        total += np.bincount(ids, minlength=rows)
    return total
