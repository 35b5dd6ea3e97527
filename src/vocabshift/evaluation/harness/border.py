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

from vocabshift.evaluation.harness.answers import Answers, Part
from vocabshift.models.healing import PromptHealer, healer_of
from vocabshift.progress import PhaseProgress

_LOG = logging.getLogger("lm_eval")  # where lm-eval reports what it truncates

Ids = list[int]
_Request = tuple[Any, Ids, Ids]  # of lm-eval: strings or None, given ids, scored ids
_AUTO_TOKENS = {"cpu": 4096}  # read at once where the batch size is "auto"; elsewhere 16,384


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
    """`HFLM` whose scored answers are whole; the request cache is lm-eval's.

    A request that is not touched has lm-eval's value up to rounding: the answers of a question
    share one pass over it (`answers`). With the border "lm-eval" lm-eval scores, to the last digit.
    `is_greedy` of a healed answer asks that each token from the shared boundary is the likeliest.
    """

    def __init__(self, *args: Any, border: str = "heal", **options: Any) -> None:
        """`border`: "heal", "split" or "lm-eval"; the rest is for `HFLM` (backend "causal")."""
        super().__init__(*args, **options)
        self.border = border
        self.counts = BorderCounts()
        self._touched: dict[tuple[str, str], tuple[Ids, Ids]] = {}
        self._last: tuple[str, Ids] = ("", [])
        self._healer = healer_of(self.tokenizer)
        self._answers = Answers(self.model)
        self.report: PhaseProgress | None = None  # called with the answers that are done
        self.tokenizer_sha256: str | None = None  # as in Result

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
        if not given:  # white space alone, and no BOS: as of an empty context
            return [self.prefix_token_id], whole
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
        if self.border == "lm-eval":
            options: Any = {"disable_tqdm": disable_tqdm, "override_bs": override_bs}
            return list(super()._loglikelihood_tokens(requests, **options))
        own = [tuple(requests[place][0]) for place in touched]
        healed = dict(zip(touched, self._wanted(own), strict=True))
        wanted = [
            healed[place] if place in healed else (self._fitting(given, scored), None)
            for place, (_, given, scored) in enumerate(requests)
        ]
        parts = list(dict.fromkeys(part for both in wanted for part in both if part is not None))
        values = self._answers.log_probabilities(parts, self._batch_tokens(parts), self.report)
        by_part = dict(zip(parts, values, strict=True))
        found = [
            (by_part[first][0] - (0.0 if second is None else by_part[second][0]), by_part[first][1])
            for first, second in wanted
        ]
        for (strings, _, _), value in zip(requests, found, strict=True):
            if strings is not None:
                self.cache_hook.add_partial("loglikelihood", strings, value)
        return found

    def _fitting(self, given: Ids, scored: Ids) -> Part:
        """The ids, without the first ones of the context where the model has no positions left."""
        if not 1 <= len(scored) <= self.max_length:
            raise ValueError(
                f"an answer has {len(scored)} tokens after its context; it must have at least one, "
                f"and at most as many as the model has positions (max_length, {self.max_length})"
            )
        excess = max(len(given) + len(scored) - self.max_length - 1, 0)
        if excess:
            _LOG.warning("Truncating %d tokens from the left.", excess)
        return tuple(given[excess:]), tuple(scored)

    def _batch_tokens(self, parts: Sequence[Part]) -> int:
        """Room for as many of the longest as the batch size says."""
        if isinstance(self.batch_size, str):
            return _AUTO_TOKENS.get(self.device.type, 1 << 14)
        longest = max((len(given) + len(scored) for given, scored in parts), default=1)
        return int(self.batch_size) * longest

    def _wanted(self, strings: list[tuple[str, str]]) -> list[tuple[Part, Part | None]]:
        """Of touched requests: a value is log P(first part) - log P(second, where there is one)."""
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
        return wanted

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
