"""Likelihood matching with whole matrices, in plain PyTorch (arXiv 2503.20083, algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Span = tuple[int, int]
"""Tokens [start, end) of a row."""


def spans_in_common(
    student: Sequence[int], teacher: Sequence[int], allowed: set[int]
) -> list[tuple[Span, Span]]:
    """Tokens of the student and of the teacher between two bytes at which tokens of both end.

    `student`, `teacher`: bytes at which tokens end, ascending, the first one where the text begins.
    `allowed`: bytes at which a chunk may begin and end.
    """
    chunks = []
    before = None
    for byte in sorted({*student} & {*teacher} & allowed):
        # All tokens that end here are before the boundary, except where the text begins.
        at = tuple(
            ends.index(byte) if byte == ends[0] == 0 else len(ends) - 1 - ends[::-1].index(byte)
            for ends in (list(student), list(teacher))
        )
        if before is not None:
            chunks.append(((before[0], at[0]), (before[1], at[1])))
        before = at
    return chunks


def loss(
    student_logits: Any,
    student_ids: Any,
    student_chunks: Any,
    teacher_chunk_logprobs: Any,
    student_last: Any = None,
    boundary: Any = None,
    *,
    temperature: float = 100.0,
    epsilon: float = 1e-6,
) -> Any:
    """Sum over chunks of the binary cross-entropy less the teacher's entropy.

    `student_logits` (length, vocab) of inputs, `student_ids` (length + 1,), `student_chunks`
    (length + 1, n_chunks) of 0 and 1: which tokens make a chunk, `teacher_chunk_logprobs`
    (n_chunks,). `student_last` (n_chunks,): the last token of each; `boundary` (vocab,) of bool.
    """
    import torch

    logprobs = torch.log_softmax(student_logits, dim=-1)
    main_path = torch.take_along_dim(logprobs, student_ids[1:, None], dim=-1)[:, 0]
    of_chunks = main_path @ student_chunks[1:].to(main_path.dtype)
    if boundary is not None:
        of_chunks = of_chunks + (logprobs.exp() @ boundary.to(main_path.dtype)).log()[student_last]
    log_p = teacher_chunk_logprobs / temperature - epsilon
    log_q = of_chunks / temperature - epsilon
    p, q = log_p.exp(), log_q.exp()
    cross_entropy = -(p * log_q + (1 - p) * (1 - q).log())
    entropy = -(p * log_p + (1 - p) * (1 - p).log())
    return (cross_entropy - entropy).sum()
