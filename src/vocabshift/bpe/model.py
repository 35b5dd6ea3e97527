"""BpeModel: a vocabulary and its merges, checked once, then trusted.

Owns what a BPE model is and which contradictions are refused. Knows nothing of JSON or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property

from vocabshift.bpe import byte_level, model_strings
from vocabshift.bpe.model_strings import Strings
from vocabshift.errors import InvalidTokenizerError

Merge = tuple[str, str]

MAX_ID = 2**24 - 1
"""Highest id that is believed: tables are as long as the highest id, and a damaged file must not
ask for gigabytes. The largest vocabularies in use have some 300 thousand tokens."""


@dataclass(frozen=True, eq=False)
class BpeModel:
    """A BPE vocabulary, as `tokenizers`' BPE model reads it.

    Token strings are those of `tokenizer.json`: in the byte-level image for byte-level models,
    with "▁" for the space and "<0xNN>" byte pieces for SentencePiece models.
    """

    vocab: Mapping[str, int]  # token -> id; ids may have holes
    merges: tuple[Merge, ...]  # by rank; a pair listed twice has its later rank
    ignore_merges: bool = False  # merge skipping: a whole piece in the vocabulary is one token
    byte_fallback: bool = False  # unknown characters become "<0xNN>" pieces
    unk_token: str | None = None
    fuse_unk: bool = False
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    _checked: bool = field(default=False, repr=False)
    strings: InitVar[Strings | None] = None  # of the same, where they have been read already

    def __post_init__(self, strings: Strings | None) -> None:
        if self._checked:
            return
        if self.continuing_subword_prefix:
            self._check_ids()
            self._check_merges()
        else:
            self._check_strings(strings)
        # Subtle: a byte-level model never meets an unknown character, and several vendors name
        # an unk_token there that is an added token only.
        unk = self.unk_token
        if unk is not None and unk not in self.vocab and not self.is_byte_level:
            raise InvalidTokenizerError(f"unk_token {unk!r} is not in the vocabulary")

    def _check_strings(self, strings: Strings | None) -> None:
        strings = strings or model_strings.read_strings(self.vocab, self.merges, MAX_ID)
        if strings is not None:
            return model_strings.keep(self, strings)
        self._check_ids()
        self._check_merges()
        raise InvalidTokenizerError("a token holds half a surrogate pair, which is no text")

    def _check_ids(self) -> None:
        ids = set(self.vocab.values())
        if len(ids) != len(self.vocab):
            raise InvalidTokenizerError(
                f"the vocabulary gives {len(self.vocab)} tokens only {len(ids)} distinct ids; "
                "every token needs an id of its own"
            )
        if ids and min(ids) < 0:
            raise InvalidTokenizerError(f"the vocabulary holds the negative id {min(ids)}")
        if ids and max(ids) > MAX_ID:
            raise InvalidTokenizerError(
                f"the vocabulary holds the id {max(ids)}, above the highest possible, {MAX_ID}"
            )

    def _check_merges(self) -> None:
        for rank, (left, right) in enumerate(self.merges):
            for part in (left, right, self.product(left, right)):
                if part is None:
                    raise InvalidTokenizerError(
                        f"merge {rank} joins {left!r} and {right!r}, but the right part lacks the "
                        f"continuing_subword_prefix {self.continuing_subword_prefix!r}"
                    )
                if part not in self.vocab:
                    raise InvalidTokenizerError(
                        f"merge {rank} joins {left!r} and {right!r}, "
                        f"but {part!r} is not in the vocabulary"
                    )

    def product(self, left: str, right: str) -> str | None:
        """The token that a merge makes; None where `right` lacks the continuing prefix."""
        prefix = self.continuing_subword_prefix
        if not prefix:
            return left + right
        return left + right[len(prefix) :] if right.startswith(prefix) else None

    @cached_property
    def is_byte_level(self) -> bool:
        """Whether all 256 byte images are tokens (then no text can be lost)."""
        return all(image in self.vocab for image in byte_level.ALPHABET)

    @cached_property
    def tokens(self) -> dict[int, str]:
        """id -> token."""
        return {token_id: token for token, token_id in self.vocab.items()}

    @cached_property
    def size(self) -> int:
        """Rows needed for the vocabulary: the highest id plus one."""
        return max(self.vocab.values(), default=-1) + 1
