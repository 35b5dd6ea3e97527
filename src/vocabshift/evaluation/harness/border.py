"""An lm-eval model that scores whole answers where a token spans the border of context and answer.

lm-eval scores encode(context + answer)[len(encode(context)):]. This is right where the whole ids
begin with the context's. Otherwise the request is *touched*: a token spans the border (or the
tokens before it change), and the slice loses the answer's first words, or all of it. Superword
tokenizers do this often. Rules for touched requests, by `border`:

- "heal": log P(whole) - log P(context), the ids of each as the tokenizer gives them for the text.
  Both are scored from the last token boundary that the context and all touched answers of the
  question share; what is before it cancels.
- "split": context and answer are encoded apart.
- "lm-eval": as lm-eval does it.

Prompts of generation that end inside a superword are healed by `models.healing` in "heal". Imports
lm-eval and torch, so import this module inside functions.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from lm_eval.models.huggingface import HFLM

from vocabshift.models.healing import PromptHealer, healer_of

_LOG = logging.getLogger("lm_eval")  # where lm-eval reports what it truncates

Ids = list[int]
Part = tuple[tuple[int, ...], tuple[int, ...]]  # given ids, scored ids
_Request = tuple[Any, Ids, Ids]  # of lm-eval: strings or None, given ids, scored ids


@dataclass(slots=True)
class BorderCounts:
    """What the requests of a task were; generation counts its prompts."""

    requests: int = 0
    touched: int = 0


def is_touched(context: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether the ids of context and answer together do not begin with the context's."""
    return list(whole[: len(context)]) != list(context)


def shared_length(sequences: Sequence[Sequence[int]]) -> int:
    """Ids that all sequences begin with; at least one id of each is left out."""
    pairs = zip(*(ids[:-1] for ids in sequences), strict=False)
    return sum(1 for _ in takewhile(lambda ids: len(set(ids)) == 1, pairs))


class BorderLM(HFLM):  # type: ignore[misc]
    """`HFLM` whose scored answers are whole; batches, request cache and logits cache are lm-eval's.

    A request that is not touched keeps lm-eval's value to the last digit, batches of several
    included: they are composed as lm-eval composes them. `is_greedy` of a healed answer asks that
    each token from the shared boundary is the likeliest.
    """

    def __init__(self, *args: Any, border: str = "heal", **options: Any) -> None:
        """`border`: "heal", "split" or "lm-eval"; the rest is for `HFLM` (backend "causal")."""
        super().__init__(*args, **options)
        self.border = border
        self.counts = BorderCounts()
        self._touched: dict[tuple[str, str], tuple[Ids, Ids]] = {}
        self._last: tuple[str, Ids] = ("", [])
        self._healer = healer_of(self.tokenizer)

    def reset_counts(self) -> None:
        """Begin another task."""
        self.counts = BorderCounts()

    def _encode_pair(self, context: str, continuation: str) -> tuple[Ids, Ids]:
        """lm-eval's ids; notes the whole ids of a touched request."""
        moved = len(context) - len(context.rstrip())
        bare, answer = (
            (context[:-moved], context[-moved:] + continuation)
            if moved
            else (context, continuation)
        )
        if self._last[0] != bare:
            self._last = (bare, self.tok_encode(bare))
        given, whole = self._last[1], self.tok_encode(bare + answer)
        scored = whole[len(given) :]
        if is_touched(given, whole):
            self._touched[context, continuation] = (given, whole)
        return given, scored

    def loglikelihood(self, requests: list[Any], **options: Any) -> list[tuple[float, bool]]:
        """(log probability, is greedy) of each (context, answer)."""
        self._touched.clear()
        self.counts.requests += len(requests)
        return list(super().loglikelihood(requests, **options))

    def _loglikelihood_tokens(
        self, requests: list[_Request], disable_tqdm: bool = False, override_bs: int | None = None
    ) -> list[tuple[float, bool]]:
        """As lm-eval's, touched requests by the rule; windows of whole texts (None) are not."""
        touched = [
            place
            for place, (strings, _, _) in enumerate(requests)
            if strings is not None and tuple(strings) in self._touched
        ]
        self.counts.touched += len(touched)
        options: Any = {"disable_tqdm": disable_tqdm, "override_bs": override_bs}
        if self.border == "lm-eval" or not touched:
            return list(super()._loglikelihood_tokens(requests, **options))
        found: list[Any] = [None] * len(requests)
        kept = self._composing_batches(requests, set(touched))
        values = super()._loglikelihood_tokens([request for _, request in kept], **options)
        for (place, _), value in zip(kept, values, strict=True):
            found[place] = value
        own = [tuple(requests[place][0]) for place in touched]
        for place, strings, value in zip(touched, own, self._score(own, options), strict=True):
            found[place] = value
            self.cache_hook.add_partial("loglikelihood", strings, value)
        return found

    def _composing_batches(
        self, requests: list[_Request], touched: set[int]
    ) -> list[tuple[int, _Request]]:
        """What lm-eval is to score, so that requests that are not touched get its very digits.

        The padding of a batch changes the last digits. So where batches hold several requests,
        touched ones keep their places (without strings: their values are not cached). Those without
        an id to score have no place of their own: lm-eval refuses them, or reuses another's logits.
        """
        if len(touched) == len(requests):
            return []
        is_single = self.batch_size == 1
        places = [i for i in range(len(requests)) if not (is_single and i in touched)]
        return [
            (i, (None if i in touched else requests[i][0], requests[i][1], requests[i][2]))
            for i in places
            if requests[i][2] or i not in touched
        ]

    def _score(self, strings: list[tuple[str, str]], options: Any) -> list[tuple[float, bool]]:
        """The values of touched requests: log P(first part) - log P(second, where there is one)."""
        by_context: dict[str, list[tuple[Ids, Ids]]] = {}
        for context, answer in strings:
            by_context.setdefault(context, []).append(self._touched[context, answer])
        boundary = {
            context: shared_length([ids for pair in pairs for ids in pair])
            for context, pairs in by_context.items()
        }
        wanted: list[tuple[Part, Part | None]] = []
        for context, answer in strings:
            given, whole = self._touched[context, answer]
            apart = self._apart(context, answer, given, whole) if self.border == "split" else None
            if apart is not None:
                wanted.append((apart, None))
            else:
                n = boundary[context]
                wanted.append(
                    (self._part(given, whole, n, given), self._part(given, given, n, whole))
                )
        parts = list(dict.fromkeys(part for both in wanted for part in both if part is not None))
        priced = dict(zip(parts, self._price(parts, options), strict=True))
        return [
            (priced[first][0] - (0.0 if second is None else priced[second][0]), priced[first][1])
            for first, second in wanted
        ]

    def _part(self, given: Ids, ids: Ids, boundary: int, other: Ids) -> Part:
        """`ids` from the boundary on, after what fits of the rest beside the longer of the two."""
        room = self.max_length + 1 - max(len(ids), len(other)) + boundary
        before = given[:boundary][-max(room, 1) :] or [self.prefix_token_id]
        if len(before) < boundary:
            _LOG.warning("Truncating %d tokens from the left.", boundary - len(before))
        return tuple(before), tuple(ids[boundary:])

    def _apart(self, context: str, answer: str, given: Ids, whole: Ids) -> Part | None:
        """Context and answer encoded apart; None where they then spell another text.

        SentencePiece tokenizers put a space before an answer that has none.
        """
        moved = context[len(context.rstrip()) :]
        scored = self.tok_encode(moved + answer, add_special_tokens=False)
        is_same = self.tok_decode([*given, *scored]) == self.tok_decode(whole)
        return (tuple(given), tuple(scored)) if scored and is_same else None

    def _price(self, parts: list[Part], options: Any) -> list[tuple[float, bool]]:
        """lm-eval's values of ids.

        Its cache of logits joins requests that give the model the same ids. It would misplace
        the scored ids where these begin at different places, so then it is not used.
        """
        starts: dict[tuple[int, ...], set[int]] = {}
        for given, scored in parts:
            starts.setdefault((*given, *scored[:-1]), set()).add(len(given))
        before: bool = vars(self)["logits_cache"]
        self.logits_cache = before and all(len(own) == 1 for own in starts.values())
        try:
            rows = [(None, list(given), list(scored)) for given, scored in parts]
            return list(super()._loglikelihood_tokens(rows, **options))
        finally:
            self.logits_cache = before

    def generate_until(self, requests: list[Any], **options: Any) -> list[str]:
        """The generated texts, without what was taken back of a healed prompt."""
        self.counts.requests += len(requests)
        return list(super().generate_until(requests, **options))

    def _model_generate(
        self, context: Any, max_length: int, stop: list[str], **options: Any
    ) -> Any:
        """As lm-eval's, in two batches: prompts as they are, and those that are healed.

        Returns (rows, n) ids that begin with the prompts as given, as lm-eval expects.
        """
        mask = options.pop("attention_mask", torch.ones_like(context))
        tails = [self._tail(row, own) for row, own in zip(context, mask, strict=True)]
        healed = [row for row, (n_back, _) in enumerate(tails) if n_back]
        self.counts.touched += len(healed)
        if not healed or self._healer is None or self.border != "heal":
            return super()._model_generate(
                context=context, max_length=max_length, stop=stop, attention_mask=mask, **options
            )
        rows: list[Ids] = [[] for _ in tails]
        width = context.shape[1]
        plain = [row for row in range(len(tails)) if row not in healed]
        if plain:
            found = super()._model_generate(
                context=context[plain],
                max_length=max_length,
                stop=stop,
                attention_mask=mask[plain],
                **options,
            )
            for row, ids in zip(plain, found[:, width:].tolist(), strict=True):
                rows[row] = ids
        n_new = max_length - width
        own = [tails[row] for row in healed]
        found = self._generate_healed(
            self._healer, context[healed], mask[healed], own, n_new=n_new, stop=stop, **options
        )
        for row, ids in zip(healed, found, strict=True):
            rows[row] = ids[:n_new]
        longest, pad = max(map(len, rows)), self.tokenizer.pad_token_id
        padded = [ids + [pad] * (longest - len(ids)) for ids in rows]
        return torch.cat([context, context.new_tensor(padded).reshape(len(rows), -1)], dim=1)

    def _tail(self, row: Any, mask: Any) -> tuple[int, bytes]:
        return (0, b"") if self._healer is None else self._healer.tail(row[mask.bool()].tolist())

    def _generate_healed(
        self,
        healer: PromptHealer,
        context: Any,
        mask: Any,
        tails: list[tuple[int, bytes]],
        *,
        n_new: int,
        stop: list[str],
        **options: Any,
    ) -> list[Ids]:
        """New ids of each row after the end of its prompt."""
        least, most = min(n for n, _ in tails), max(n for n, _ in tails)
        for row, (n_back, _) in enumerate(tails):  # the ends of all prompts stay in one column
            context[row], mask[row] = context[row].roll(n_back), mask[row].roll(n_back)
            context[row, :n_back], mask[row, :n_back] = self.tokenizer.pad_token_id, 0
        context, mask = context[:, least:], mask[:, least:]
        width = context.shape[1]
        texts = [data for _, data in tails]
        found = super()._model_generate(
            context=context,
            max_length=min(width + n_new + most, max(self.max_length, width + 1)),
            # lm-eval looks for the stop strings in all that is generated, the tail included. It
            # cuts the text at those left out here afterwards.
            stop=[end for end in stop if not any(_begins_in(end.encode(), own) for own in texts)],
            attention_mask=mask,
            logits_processor=[healer.constraint(texts, width)],
            **options,
        )
        new = found[:, width:].tolist()
        return [healer.after(data, ids) for data, ids in zip(texts, new, strict=True)]


def _begins_in(end: bytes, tail: bytes) -> bool:
    """Whether a stop string begins inside the tail."""
    return end in tail or any(tail.endswith(end[:n]) for n in range(1, len(end)))
