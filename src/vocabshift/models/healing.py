"""Prompts that end inside a superword: where generation begins, and what it may begin with.

In the training text of a superword tokenizer " on" before " the" is the token " on the". A prompt
that ends in " on" shows the model the token " on" alone, after which it has hardly ever seen
" the". Token healing (Lundberg, "The Art of Prompt Design: Prompt Boundaries and Token Healing",
2023) takes the last tokens back and lets the model choose them anew, among the tokens whose bytes
agree with those taken back.

Here it is applied only where a superword spans the end of the prompt at one of its spaces: the
prompt's last word is complete, as it is for other tokenizers. Without superwords nothing changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.token_bytes import is_superword

_SPACE = 0x20


class PromptHealer:
    """Token healing for one tokenizer; holds its tokens by their bytes."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self._bytes: Mapping[int, bytes] = tokenizer.token_bytes
        self._ids: dict[bytes, list[int]] = {}
        for token_id, data in self._bytes.items():
            if data:
                self._ids.setdefault(data, []).append(token_id)
        self._sorted = sorted(self._ids)
        superwords = [data for data in self._sorted if is_superword(data)]
        self._beginnings = {
            data[:end]
            for data in superwords
            for end in range(1, len(data))
            if _is_border(data, end)
        }
        self._longest = max(map(len, self._beginnings), default=0)
        self._allowed: dict[bytes, list[int]] = {}

    def tail(self, ids: Sequence[int]) -> tuple[int, bytes]:
        """How many tokens at the end of a prompt to take back, and their bytes: (0, b"") for none.

        As many as are the beginning of a superword, up to one of its spaces; the first token of the
        prompt stays.
        """
        taken, data, found = 0, b"", (0, b"")
        for token_id in reversed(ids[1:]):
            own = self._bytes.get(token_id, b"")
            if not own or len(own) + len(data) > self._longest:
                break
            taken, data = taken + 1, own + data
            if data in self._beginnings:
                found = (taken, data)
        return found

    def allowed(self, left: bytes) -> list[int]:
        """The tokens that may come while the bytes `left` of a tail are still to be generated.

        Those that are a beginning of `left`, and those that begin with it and continue at a space.
        A beginning whose rest no token can go on with does not count: a vocabulary may lack bytes.
        """
        if left not in self._allowed:
            for start in range(len(left) - 1, 0, -1):  # the shortest first: no deep recursion
                self.allowed(left[start:])
            found = [
                token_id
                for end in range(1, len(left) + 1)
                if left[:end] in self._ids and (end == len(left) or self.allowed(left[end:]))
                for token_id in self._ids[left[:end]]
            ]
            for place in range(bisect_left(self._sorted, left), len(self._sorted)):
                data = self._sorted[place]
                if not data.startswith(left):
                    break
                if len(data) > len(left) and _is_border(data, len(left)):
                    found += self._ids[data]
            self._allowed[left] = found
        return self._allowed[left]

    def left(self, tail: bytes, ids: Sequence[int]) -> bytes:
        """What of `tail` the generated `ids` have not spelt yet."""
        n_bytes = 0
        for token_id in ids:
            if n_bytes >= len(tail):
                break
            n_bytes += len(self._bytes.get(token_id, b""))
        return tail[n_bytes:]

    def after(self, tail: bytes, ids: Sequence[int]) -> list[int]:
        """Generated ids without the tail: a token that spans its end is replaced by others."""
        n_bytes = 0
        for place, token_id in enumerate(ids):
            if n_bytes >= len(tail):
                return list(ids[place:])
            own = self._bytes.get(token_id, b"")
            n_bytes += len(own)
            if n_bytes > len(tail):
                return self._spell(own[len(tail) - n_bytes :]) + list(ids[place + 1 :])
        return []

    def constraint(self, tails: Sequence[bytes], n_prompt: int) -> Any:
        """A logits processor for `generate`: each tail comes before anything else.

        `tails`: one a row (of beam search: one a group of rows). `n_prompt`: the width of the
        prompts in `input_ids`, padding included.
        """
        return _Constraint(self, tails, n_prompt)

    def _spell(self, data: bytes) -> list[int]:
        """Any ids with these bytes: the longest tokens first."""
        ids: list[int] = []
        while data:
            size = next((n for n in range(len(data), 0, -1) if data[:n] in self._ids), 0)
            if not size:  # a vocabulary that lacks the byte
                break
            ids.append(self._ids[data[:size]][0])
            data = data[size:]
        return ids


class _Constraint:
    """Only tokens that agree with what is left of a row's tail have a probability."""

    def __init__(self, healer: PromptHealer, tails: Sequence[bytes], n_prompt: int) -> None:
        self._healer, self._tails, self._n_prompt = healer, tails, n_prompt
        self._is_done = False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """(rows, n) ids and (rows, vocabulary) scores; returns scores."""
        if self._is_done:  # without a look at the ids, which would wait for the GPU
            return scores
        group = len(input_ids) // len(self._tails)
        generated = input_ids[:, self._n_prompt :].tolist()
        left = [
            self._healer.left(self._tails[row // group], ids) for row, ids in enumerate(generated)
        ]
        self._is_done = not any(left)
        scores = scores.clone()
        for row, data in enumerate(left):
            if data:
                allowed = self._healer.allowed(data)
                kept = scores[row, allowed]
                scores[row] = float("-inf")
                scores[row, allowed] = kept
        return scores


def healer_of(tokenizer: Any) -> PromptHealer | None:
    """Healing for a tokenizer of transformers; None for a kind that is not read here."""
    try:
        return PromptHealer(open_tokenizer(tokenizer))
    except (InvalidTokenizerError, TypeError):
        return None


def _is_border(data: bytes, end: int) -> bool:
    """Whether a space is on either side of data[:end]."""
    return data[end] == _SPACE or data[end - 1] == _SPACE
