"""Slow, obvious values of answers after a context: what `evaluation.harness.border` must give.

A language model is a function from the ids so far and the next id to a log probability. A request
is touched if the ids of context and answer together do not begin with the ids of the context.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

LogProbability = Callable[[Sequence[int], int], float]
Encode = Callable[[str], list[int]]


def moved(context: str, answer: str) -> tuple[str, str]:
    """Spaces at the end of the context belong to the answer, as in lm-eval."""
    bare = context.rstrip()
    return bare, context[len(bare) :] + answer


def is_touched(encode: Encode, context: str, answer: str) -> bool:
    context, answer = moved(context, answer)
    given, whole = encode(context), encode(context + answer)
    for place, token_id in enumerate(given):
        if place >= len(whole) or whole[place] != token_id:
            return True
    return False


def total(log_p: LogProbability, given: Sequence[int], ids: Sequence[int]) -> float:
    """Of `ids` after `given`, one by one."""
    value, before = 0.0, list(given)
    for token_id in ids:
        value += log_p(before, token_id)
        before.append(token_id)
    return value


def boundary(encode: Encode, context: str, answers: Sequence[str]) -> int:
    """How many ids the context and all touched answers' texts begin with alike."""
    bare = moved(context, "")[0]
    encodings = [encode(bare)]
    for answer in answers:
        if is_touched(encode, context, answer):
            encodings.append(encode("".join(moved(context, answer))))
    shared = 0
    while all(shared + 1 < len(ids) and ids[shared] == encodings[0][shared] for ids in encodings):
        shared += 1
    return shared


def healed(
    encode: Encode, log_p: LogProbability, start: int, context: str, answers: Sequence[str]
) -> list[float]:
    """The value of each answer: lm-eval's where it is not touched, else from the boundary."""
    bare = moved(context, "")[0]
    given = encode(bare)
    shared = boundary(encode, context, answers)
    values = []
    for answer in answers:
        whole = encode("".join(moved(context, answer)))
        if not is_touched(encode, context, answer):
            values.append(total(log_p, given, whole[len(given) :]))
            continue
        before = given[:shared] or [start]
        values.append(total(log_p, before, whole[shared:]) - total(log_p, before, given[shared:]))
    return values
