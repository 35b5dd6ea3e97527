"""Baselines of extension, which people use instead of continued BPE. For comparison only.

The rules are those of the published toolkit of "Teaching Old Tokenizers New Words"
(arXiv:2512.03989). All take the new tokens of an auxiliary tokenizer, in the order of its ids:

- regen (the paper's naive extension): for every new token, all its splits into two tokens become
  merges, after the old ones. Merges of the base may cut a new token before its own merges run.
- append: the auxiliary tokenizer's own merges come after the old ones, if all three of their tokens
  exist. Most new tokens cannot be built, because the base would have to split text as the
  auxiliary tokenizer does.
- prepend: the merges of regen come before all old ones. They cut old tokens and change old text.
- add-tokens: the texts of the new tokens become added tokens. These are cut out of the text before
  anything else, even inside words. The rest of such a word is segmented separately.

`extension_cost` measures the cost of each.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from vocabshift import _core
from vocabshift.errors import CorpusError
from vocabshift.extension.continued import Additions, check_room, extended
from vocabshift.extension.counting import CountedText
from vocabshift.extension.options import METHODS
from vocabshift.progress import PhaseProgress
from vocabshift.text.corpus import Corpus
from vocabshift.text.normalize import normalizer_function
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import SPACE, SentencePieceRules
from vocabshift.tokenizer.metaspace_reader import require_metaspace
from vocabshift.tokenizer.model import Merge, compile_merges
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer

# The auxiliary tokenizer is trained from scratch with the base's own pipeline. It equals the result
# of transformers' `train_new_from_iterator`: byte-level BPE after the base's normalizer and
# pre-tokenizer. Its size includes the special tokens and the 256 bytes.

BASELINES = tuple(name for name in METHODS if name != "continued")

SIZE = 64_000
"""Tokens of the auxiliary tokenizer in the paper's toolkit."""


@dataclass(frozen=True)
class Auxiliary:
    """Tokens and merges of a tokenizer trained from scratch, spelled as in the base."""

    tokens: tuple[str, ...]  # by id, special tokens left out
    merges: tuple[Merge, ...]  # by rank

    def new_tokens(self, base: Tokenizer) -> list[str]:
        """Return the tokens that the base lacks, in the order of their ids."""
        known = base.model.vocab.keys() | {token.content for token in base.added_tokens}
        return [token for token in self.tokens if token not in known]


def train_auxiliary(
    base: Tokenizer,
    text: CountedText,
    *,
    vocab_size: int = SIZE,
    threads: int = 1,
    progress: PhaseProgress | None = None,
) -> Auxiliary:
    """Train the auxiliary tokenizer of a byte-level base.

    `text` holds the words of the base's own pipeline and is not changed. `vocab_size` includes the
    base's special tokens and the 256 bytes. There are fewer tokens if the pairs run out. Raises
    ValueError if the base is not byte-level.
    """
    if not is_byte_level(base):
        raise ValueError(
            f"{base.name} is not byte-level; for a SentencePiece tokenizer use "
            "train_sentencepiece_auxiliary, for others there are no baselines"
        )
    single = [byte_level.to_bytes(image) for image in byte_level.ALPHABET]
    n_special = sum(token.special for token in base.added_tokens)
    trained = _core.continue_bpe(
        text.words,
        _core.WordWeights(text.reader.fixed_point_weights()),
        max(vocab_size - n_special, len(single)),
        compile_merges(single, np.zeros((0, 3), np.uint32)),
        single,
        [],
        min_frequency=text.reader.min_count(1),
        duplicates=_core.Duplicates.REUSE_ID,  # as the trainer of `tokenizers` does
        keep_words=True,
        threads=threads,
        progress=progress,
    )
    images = byte_level.all_to_images(trained.tokens)
    merges = [(images[left], images[right]) for left, right, _ in trained.merges.tolist()]
    # A byte that the base lacks is no new word: `complete_bytes` adds it, or nothing does.
    known = [image for image in images[: len(single)] if image in base.model.vocab]
    return Auxiliary((*known, *images[len(single) :]), tuple(merges))


# The four baselines.


def naive_extension(
    base: Tokenizer, auxiliary: Auxiliary, method: str, *, n_tokens: int
) -> Tokenizer:
    """Return `base` with up to `n_tokens` new tokens, added by one of the baselines.

    New ids come after all others. Raises ValueError if the method does not exist, or if the
    auxiliary tokenizer has no token that the base lacks.
    """
    if method not in BASELINES:
        raise ValueError(f"method is {method!r}; give one of {BASELINES}")
    if method == "add-tokens":
        return add_tokens(base, auxiliary, n_tokens=n_tokens)
    learned = (append if method == "append" else regen)(base, auxiliary, n_tokens=n_tokens)
    return extended(base, learned, merges_first=method == "prepend")


def regen(base: Tokenizer, auxiliary: Auxiliary, *, n_tokens: int) -> Additions:
    """Return new tokens with all their splits as merges, the longest left part first."""
    tokens = _first(auxiliary.new_tokens(base), base, n_tokens)
    known = base.model.vocab.keys() | set(tokens)
    old = set(base.model.merges)
    merges = [split for token in tokens for split in _splits(token, known) if split not in old]
    return Additions(tokens, tuple(merges), stopped_because=_stopped(tokens, n_tokens))


def append(base: Tokenizer, auxiliary: Auxiliary, *, n_tokens: int) -> Additions:
    """Return new tokens with the auxiliary tokenizer's merges whose three tokens exist."""
    if not auxiliary.merges:
        raise ValueError(
            f"the auxiliary tokenizer names no merges that could be appended to those of "
            f"{base.name} (SentencePiece's trainer reports none); compare with regen or prepend"
        )
    tokens = _first(auxiliary.new_tokens(base), base, n_tokens)
    known = base.model.vocab.keys() | set(tokens)
    old = set(base.model.merges)
    merges = tuple(
        (left, right)
        for left, right in auxiliary.merges
        if left in known and right in known and left + right in known and (left, right) not in old
    )
    n_repaired = sum(left + right in base.model.vocab for left, right in merges)
    stopped = _stopped(tokens, n_tokens)
    return Additions(tokens, merges, stopped_because=stopped, n_repaired=n_repaired)


def add_tokens(base: Tokenizer, auxiliary: Auxiliary, *, n_tokens: int) -> Tokenizer:
    """Return `base` with added tokens that have the flags of transformers' `add_tokens`.

    Tokens that are not whole characters have no text and are skipped. Tokens whose text is already
    a token of the base are skipped too (the text "õ" spells the byte 0xF5 there).
    """
    taken = base.model.vocab.keys() | {token.content for token in base.added_tokens}
    texts = [text for text in _texts(base, auxiliary.new_tokens(base)) if text not in taken]
    chosen = _first(texts, base, n_tokens)
    first = base.row_count
    added = (
        AddedToken(text, first + i, special=False, normalized=True) for i, text in enumerate(chosen)
    )
    return replace(base, added_tokens=(*base.added_tokens, *added))


def _first(tokens: list[str], base: Tokenizer, n_tokens: int) -> tuple[str, ...]:
    if n_tokens < 1:
        raise ValueError(f"n_tokens is {n_tokens}; give at least 1")
    if not tokens:
        raise ValueError(
            f"the auxiliary tokenizer has no token that {base.name} lacks; give more text, or text "
            "in a language that it does not know well"
        )
    check_room(base, min(n_tokens, len(tokens)))
    return tuple(tokens[:n_tokens])


def _stopped(tokens: tuple[str, ...], n_tokens: int) -> str:
    """Return why the method stopped: enough tokens, or no token left in the auxiliary one."""
    return "n_tokens" if len(tokens) == n_tokens else "no_token_left"


def _splits(token: str, known: Iterable[str] | Mapping[str, int]) -> list[Merge]:
    """Return all splits of a token into two known ones, the longest left part first."""
    return [
        (token[:at], token[at:])
        for at in range(len(token) - 1, 0, -1)
        if token[:at] in known and token[at:] in known
    ]


def _texts(base: Tokenizer, tokens: Iterable[str]) -> list[str]:
    """Return the texts of those tokens that are whole characters."""
    if not is_byte_level(base):
        return [token.replace(SPACE, " ") for token in tokens]
    texts = []
    for image in tokens:
        try:
            texts.append(byte_level.to_bytes(image).decode())
        except UnicodeDecodeError:
            continue
    return texts


# The auxiliary tokenizer for SentencePiece BPE, by SentencePiece's own trainer.
#
# No other trainer reproduces the dead tokens of the published runs on Mistral-7B, because
# SentencePiece breaks ties in its own way. In this room only these baselines need its package.

_LONGEST = 1 << 30  # bytes; SentencePiece drops longer sentences
_N_ROLES = 3 + 256  # <unk> <s> </s> and the byte pieces: the trainer's smallest vocabulary


def train_sentencepiece_auxiliary(
    base: Tokenizer,
    corpus: Corpus,
    *,
    rules: SentencePieceRules | None = None,
    vocab_size: int = SIZE,
    normalizer: str | None = None,
    threads: int = 1,
) -> Auxiliary:
    """Train the auxiliary tokenizer of a base that spells the space "▁". It has no merges.

    `rules` replace those of the base's own model. Every character of the text becomes a token.
    `vocab_size` includes three role tokens and 256 byte pieces. There are fewer tokens if the pairs
    run out. Corpus weights are ignored. Raises ValueError for a base of another kind, or if the
    package sentencepiece is missing, and CorpusError for text that it cannot train on.
    """
    require_metaspace(base)
    try:
        import sentencepiece
    except ImportError:
        raise ValueError(
            "the baselines of a SentencePiece tokenizer are trained by SentencePiece itself; "
            "install it with: pip install sentencepiece"
        ) from None
    rules = rules or base.piece_rules or SentencePieceRules()
    corpus.require_text()
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_sentences(corpus, normalizer),
            model_writer=model,
            model_type="bpe",
            vocab_size=max(vocab_size, _N_ROLES + 1),
            hard_vocab_limit=False,
            character_coverage=1.0,
            byte_fallback=True,
            normalization_rule_name="identity",
            max_sentence_length=_LONGEST,
            max_sentencepiece_length=rules.max_length,
            split_by_unicode_script=rules.split_by_script,
            split_by_number=rules.split_by_number,
            split_by_whitespace=rules.split_by_whitespace,
            split_digits=rules.split_digits,
            treat_whitespace_as_suffix=rules.whitespace_as_suffix,
            allow_whitespace_only_pieces=rules.whitespace_only,
            num_threads=threads,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise CorpusError(f"SentencePiece cannot train on this text: {error}") from None
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    plain = (
        piece_id
        for piece_id in range(pieces.get_piece_size())
        if not (
            pieces.is_control(piece_id) or pieces.is_unknown(piece_id) or pieces.is_byte(piece_id)
        )
    )
    return Auxiliary(tuple(pieces.id_to_piece(piece_id) for piece_id in plain), ())


def _sentences(corpus: Corpus, normalizer: str | None) -> Iterator[str]:
    normalize = normalizer_function(normalizer)
    for _, text in corpus.texts():
        yield text if normalize is None else normalize(text)
