"""Token distillation written plainly: one snippet, whole tables, autograd and torch's own Adam.

What the compact rows, the replaced look-up, the chunked loss of the head and the batches are held
against. arXiv 2505.20133, section 3, with the distance relative to the length of the teacher's
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def learned_tables(
    teacher: Any,
    student: Any,
    old: Sequence[int],
    new: Sequence[int],
    common: Sequence[tuple[int, int]],
    learned: Sequence[int],
    rates: Sequence[tuple[float, float]],
    *,
    layer: int = -1,
    next_token_weight: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Input table and head after one step for each of `rates` (of inputs, of the head).

    `student`: a model that has the new tables, on which this function runs; tied or not, its
    tensors decide. `common`: places of the tokens that end alike, in `old` and in `new`. `learned`:
    the new ids whose rows change.
    """
    table, head = student.get_input_embeddings().weight, student.get_output_embeddings().weight
    parameters = [table] if head is table else [table, head]
    groups = [{"params": [parameter]} for parameter in parameters]
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.95), eps=1e-8)
    is_learned = torch.zeros(len(table), 1, dtype=torch.bool)
    is_learned[list(learned)] = True
    with torch.no_grad():
        states = teacher(torch.tensor([old]), output_hidden_states=True).hidden_states[layer][0]
    ids = torch.tensor([new])
    for pair in rates:
        outputs = student(ids, output_hidden_states=True)
        distances = [
            (outputs.hidden_states[layer][0, place] - states[at]).square().sum()
            / states[at].square().sum()
            for at, place in common
        ]
        loss = torch.stack(distances).mean()
        nats = torch.nn.functional.cross_entropy(outputs.logits[0, :-1], ids[0, 1:])
        if head is table:
            (gradient,) = torch.autograd.grad(loss + next_token_weight * nats, [table])
            gradients = [gradient]
        else:  # the head learns by the next token alone, the inputs by hidden states alone
            gradients = [
                torch.autograd.grad(loss, table, retain_graph=True)[0],
                torch.autograd.grad(next_token_weight * nats, head)[0],
            ]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient * is_learned
        for group, rate in zip(optimizer.param_groups, pair, strict=False):
            group["lr"] = rate
        optimizer.step()
    return table.detach(), head.detach()
