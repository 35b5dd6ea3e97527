"""Unigram and WordPiece tokenizers as pruning sees them: no token is made of another.

Owns what must stay so that no text that could be written becomes unknown. Scores are kept: what
is left is as likely as before, so text without a removed token is cut as before.

Single characters stay: out of them any text can be put together again. A Unigram model gives an
unknown character the lowest score there is, minus 10, so that the token of the lowest score stays
as well. A character that is no token of its own keeps all tokens that it stands in; text around it
may be cut at other places all the same, and then it may become unknown: the check on the corpus
would tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.errors import CorpusError
from vocabshift.pruning.bpe import as_flags
from vocabshift.pruning.counts import Progress, Source, Texts, TokenCounts, count_tokens
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.components import SPACE
from vocabshift.tokenizer.post_processor import ids_of
from vocabshift.tokenizer.pretrained_folder import ROLES
from vocabshift.tokenizer.splits import Flags, Splits, no_splits
from vocabshift.tokenizer.unigram_or_wordpiece import PlainTokenizer

_BYTE_PIECE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
_BATCH = 1000  # texts encoded at once: `tokenizers` makes large objects of them


class PlainSubject:
    """One Unigram or WordPiece tokenizer."""

    orders = ("leaf-frequency", "frequency", "leaf-id", "id", "script")
    counts_alike = True

    def __init__(self, tokenizer: PlainTokenizer, seen: frozenset[str] | None = None) -> None:
        """`seen`: of single characters only these are protected; None: all are."""
        self.tokenizer = tokenizer
        self._seen = seen
        self.kind = tokenizer.kind
        self.may_have_holes = self.kind == "WordPiece"

    @property
    def name(self) -> str:
        """Its name."""
        return self.tokenizer.name

    @property
    def rows(self) -> int:
        """The highest id plus one."""
        return self.tokenizer.row_count

    @property
    def vocab(self) -> Mapping[str, int]:
        """Tokens of the model."""
        return self.tokenizer.vocab

    @property
    def present(self) -> set[int]:
        """Every id that names a token, added ones included."""
        return {*self.vocab.values(), *(token.id for token in self.tokenizer.added_tokens)}

    @property
    def fingerprint(self) -> str:
        """Its name in a token map."""
        return self.tokenizer.fingerprint

    @cached_property
    def splits(self) -> Splits:
        """No token is made of others; single characters and byte pieces are the smallest."""
        return no_splits(self.rows, as_flags(self._smallest(None), self.rows))

    @cached_property
    def spelled(self) -> dict[int, bytes]:
        """Text of every token that is not added, as bytes."""
        return {
            token_id: self._text_of(token).replace(SPACE, " ").encode()
            for token, token_id in self._ordinary.items()
        }

    def for_characters_of(self, corpus: Corpus) -> PlainSubject:
        """The same, where only the characters of this text are protected."""
        normalizer = self.tokenizer.backend.normalizer
        seen = {SPACE}
        for _, text in corpus.texts():
            seen.update(text if normalizer is None else normalizer.normalize_str(text))
        return PlainSubject(self.tokenizer, frozenset(seen))

    def protected(self) -> Flags:
        """(rows,) what is never removed."""
        tokenizer = self.tokenizer
        named = {tokenizer.unk_token, *(tokenizer.config.get(f"{role}_token") for role in ROLES)}
        ids = {token_id for token, token_id in self.vocab.items() if token in named}
        ids |= {token.id for token in tokenizer.added_tokens}
        ids |= ids_of(tokenizer.document.get("post_processor"))
        ids |= self._with_lone_characters()
        if scores := tokenizer.scores:
            ids.add(min(scores, key=scores.__getitem__))
        ids |= self._smallest(self._seen)
        return as_flags(ids, self.rows)

    def check_source(self, source: Source) -> None:
        """CorpusError for a folder of counts: words do not tell how these models cut text."""
        if not isinstance(source, Corpus):
            raise CorpusError(
                f"{self.name} is a {self.kind} tokenizer, and a folder of counts is for byte-level "
                "BPE; give a corpus"
            )

    def count(
        self,
        source: Source,
        *,
        own: bool,
        threads: int = 1,
        phase: str = "count",
        progress: Progress | None = None,
    ) -> TokenCounts:
        """Final tokens of a text; `own` and `threads` change nothing."""
        del own, threads  # there is no merge skipping, and `tokenizers` has threads of its own
        assert isinstance(source, Corpus)
        return count_tokens(self._encode, source, self.rows, phase=phase, progress=progress)

    def without(self, old_to_new: Mapping[int, int]) -> PlainSubject:
        """The tokenizer of these tokens alone."""
        return PlainSubject(self.tokenizer.with_tokens(old_to_new))

    def come_back(self, texts: list[str], threads: int = 1) -> list[str]:
        """Texts encoded and decoded."""
        del threads
        backend = self.tokenizer.backend
        ids = [encoding.ids for encoding in backend.encode_batch(texts, add_special_tokens=False)]
        return list(backend.decode_batch(ids, skip_special_tokens=False))

    def unreachable(self) -> set[str]:
        """None: there are no merges that could fail."""
        return set()

    def warnings(self) -> list[str]:
        """What the user should know before trusting the result."""
        return []

    @cached_property
    def _ordinary(self) -> dict[str, int]:
        """The tokens that are not added."""
        added = {token.content for token in self.tokenizer.added_tokens}
        return {token: token_id for token, token_id in self.vocab.items() if token not in added}

    def _text_of(self, token: str) -> str:
        """A token without the mark that it stands inside a word."""
        prefix = self.tokenizer.prefix
        return token.removeprefix(prefix) or token

    def _smallest(self, seen: frozenset[str] | None) -> set[int]:
        """Ids of byte pieces and single characters, where `seen` is given of these alone."""
        return {
            token_id
            for token, token_id in self._ordinary.items()
            if _BYTE_PIECE.fullmatch(token)
            or (len(text := self._text_of(token)) == 1 and (seen is None or text in seen))
        }

    def _with_lone_characters(self) -> set[int]:
        """Ids of tokens with a (protected) character that is no token of its own in its place."""
        seen, prefix = self._seen, self.tokenizer.prefix
        ids = set()
        for token, token_id in self._ordinary.items():
            inside = bool(prefix) and token.startswith(prefix) and token != prefix
            text = token[len(prefix) :] if inside else token
            for place, character in enumerate(text):
                alone = prefix + character if inside or place > 0 else character
                if alone not in self.vocab and (seen is None or character in seen):
                    ids.add(token_id)
                    break
        return ids

    def _encode(
        self, data: Texts, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        backend: Any = self.tokenizer.backend
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        ids: list[int] = []
        for begin in range(0, len(spans), _BATCH):
            texts = [str(data[start:end], "utf-8") for start, end in spans[begin : begin + _BATCH]]
            for encoding in backend.encode_batch_fast(texts, add_special_tokens=False):
                ids += encoding.ids
        return np.array(ids, dtype=np.int32)
