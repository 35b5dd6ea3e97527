"""What the glitch report says of each token: its class, its verdict, and what to do.

Owns the classes and their precedence, the thresholds with their reasons, and the table of actions.
Knows nothing of models, nor of how an indicator or a probability was measured. Source: the classes
of Land and Bartolo 2024 (section 3.1), and those that our self-tokenization test adds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.checks.check import check
from vocabshift.checks.vocabulary import our_unused
from vocabshift.checks.vocabulary_report import SPECIAL, classes_of
from vocabshift.results import UNLABELLED
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
) -> tuple[npt.NDArray[np.int64], dict[str, str]]:
    """(rows,) tokens of all documents, each once, unweighted: what tells a rare token from one that
    is used and unlearned. Strings of special tokens count as such. And the SHA-256 of the documents
    of each language, as in `Result.text_sha256`. CorpusError where there is no text."""
    encoder = Encoder(tokenizer)
    total = np.zeros(rows, dtype=np.int64)
    digests: dict[str, Any] = {}
    reader = CorpusReader(corpus, (), by_language=True)
    for block in reader.read(None):
        ids, _ = encoder.encode_documents(block.data, block.starts, block.ends, threads=threads)
        total += np.bincount(ids, minlength=rows)
        spans = zip(block.starts.tolist(), block.ends.tolist(), strict=True)
        lines = b"\n".join([block.data[start:end] for start, end in spans])
        digest = digests.setdefault(reader.groups[block.group].language or UNLABELLED, sha256())
        digest.update(lines + b"\n")
    return total, {language: digest.hexdigest() for language, digest in digests.items()}


def counts_inside(tokenizer: Tokenizer, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """(rows,) how often a corpus has the tokens that are merged from each, at any depth.

    `counts`: of `count_ids`.
    """
    found = np.zeros_like(counts)
    parts: dict[str, set[str]] = {}  # at any depth; of merges with one product, the first makes it
    vocab = tokenizer.model.vocab
    for left, right in tokenizer.model.merges:
        made = tokenizer.model.product(left, right)
        if made is None or made in parts:
            continue
        parts[made] = {left, right} | parts.get(left, set()) | parts.get(right, set())
        found[[vocab[part] for part in parts[made]]] += counts[vocab[made]]
    return found


Floats = npt.NDArray[np.float32]

PERCENTILE = 2.0
"""Of the tokens, in per cent, that are candidates where no reference is (Land and Bartolo)."""

_ROUNDING = 1e-6  # float32: reference rows that are one another differ by no less

STRONG_VERIFIED, WEAK_VERIFIED = "strong_verified", "weak_verified"
WEAK_REJECTED, STRONG_REJECTED = "weak_rejected", "strong_rejected"
NOT_ENCODED = "verification_encoding_failed"
VERDICTS = {
    STRONG_VERIFIED: "never above 0.001: the model cannot say it",
    WEAK_VERIFIED: "never above 0.1",
    NOT_ENCODED: "no prompt that names it comes back as it",
    WEAK_REJECTED: "above 0.1",
    STRONG_REJECTED: "above 0.9: the model says it when asked",
}
"""Land and Bartolo's program, by the token's highest probability over all prompts and steps."""

PRUNE, REINITIALIZE, IGNORE = "prune", "re-initialize", "ignore"
ACTIONS = (PRUNE, REINITIALIZE, IGNORE)

_ADDED = "it was added, and only whoever writes it into text yields it"
_PART = "rare characters are made of it; ordinary text seldom needs it"
_HARMLESS = {
    **dict.fromkeys((SPECIALS, ADDED, DUMMY, NO_TOKEN), _ADDED),
    **dict.fromkeys((BYTE, PARTIAL), _PART),
}


PARTIAL_UTF8, NOT_REACHED, RESIDUE = "partial UTF-8", "no text yields it", "merge residue"
NEVER, RARE, USED = "never in the text", "rare in the text", "in the text"
REASONS = {
    PARTIAL_UTF8: "it begins or ends inside a character",
    NOT_REACHED: "the tokenizer never writes it",
    RESIDUE: "longer tokens are made of it, and the corpus has them at least 10 times as often",
    NEVER: "the corpus has neither it nor such longer tokens",
    RARE: "the corpus has it less than 10 times",
    USED: "the corpus has it: why it is unlearned is not known",
}
"""Why a token may be unlearned, in this order: the first that is true. The corpus is not what the
model was trained on, so the last four are only as good as it is like that."""
_OFTEN = 10


def reason_of(kind: str, *, is_text: bool, count: int | None, inside: int | None) -> str | None:
    """Why a token of this class may be unlearned; None where only a corpus would tell.

    `is_text`: its bytes are whole characters; `count`: in a corpus; `inside`: that of the tokens
    that are merged from it.
    """
    if kind in (BYTE, PARTIAL) and not is_text:
        return PARTIAL_UTF8
    if kind in (BY_MERGES, BY_PIPELINE):
        return NOT_REACHED
    if count is None or inside is None or kind in (SPECIALS, ADDED, DUMMY, NO_TOKEN):
        return None
    if inside >= _OFTEN * max(count, 1):
        return RESIDUE
    return NEVER if count == 0 else RARE if count < _OFTEN else USED


@dataclass(frozen=True, slots=True)
class Threshold:
    """Rows with a value up to it are suspect."""

    value: float
    why: str  # one sentence for people
    is_by_reference: bool


def threshold(values: Floats, evaluated: npt.NDArray[np.bool_], of_reference: Floats) -> Threshold:
    """From the reference if it has two rows, else the lowest 2 % of the evaluated rows."""
    n = len(of_reference)
    if n > 1:
        highest = float(of_reference.max())
        return Threshold(
            highest + _ROUNDING,
            f"the highest value among the {n} reference rows, each against the others: a token "
            f"that was never trained is one more of their kind and lies above it with a chance of "
            f"1 in {n + 1}",
            True,
        )
    lowest = float(np.percentile(values[evaluated], PERCENTILE)) if evaluated.any() else 0.0
    return Threshold(
        lowest,
        f"the lowest {PERCENTILE:g} % of the tokens that text yields (Land and Bartolo): "
        "candidates for --verify and no more, for nothing is known to be unused here",
        False,
    )


def verdict_of(max_probability: float, *, is_encoded: bool) -> str:
    """What the highest probability says."""
    if max_probability > 0.9:
        return STRONG_REJECTED
    if max_probability > 0.1:
        return WEAK_REJECTED
    if not is_encoded:
        return NOT_ENCODED
    return STRONG_VERIFIED if max_probability < 0.001 else WEAK_VERIFIED


def action_of(
    kind: str, *, is_suspect: bool, count: int | None, verdict: str | None
) -> tuple[str, str] | None:
    """What to do about a token, and why; None where nothing is the matter.

    `kind`: its class; `count`: in a corpus, None where there was none.
    """
    if kind in (BY_MERGES, BY_PIPELINE):
        return PRUNE, "no text yields it, whatever the model is trained on"
    if not is_suspect and verdict not in (STRONG_VERIFIED, WEAK_VERIFIED):
        return None
    harmless = _HARMLESS.get(kind)
    if harmless is None and verdict in (WEAK_REJECTED, STRONG_REJECTED):
        harmless = "the model says it when asked: the indicator was wrong"
    if harmless is not None:
        return IGNORE, harmless
    if count is None:
        return REINITIALIZE, "unlearned; --corpus would tell whether it is needed or can be pruned"
    if count == 0:
        return PRUNE, "unlearned, and the corpus never uses it"
    return REINITIALIZE, "unlearned, and the corpus uses it: give it a new row and train"


def prunable(tokenizer: Tokenizer, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tokens of the model to prune that no token that stays is made of, in the order of `rows`."""
    going = {row["token"] for row in rows if row["action"] == PRUNE}
    going &= tokenizer.model.vocab.keys()
    needs: dict[str, set[str]] = defaultdict(set)  # part -> what merges make of it
    for left, right in tokenizer.model.merges:
        made = tokenizer.model.product(left, right)
        for part in (left, right):
            if made is not None and part in going:
                needs[part].add(made)
    while stay := {token for token in going if needs[token] - going}:
        going -= stay
    return [row["token"] for row in rows if row["token"] in going]
