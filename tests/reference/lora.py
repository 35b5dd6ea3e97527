"""LoRA as it is written (arXiv:2106.09685, section 4.1): h = W x + scaling · B A x."""

from __future__ import annotations

import torch


class LoraLinear(torch.nn.Module):
    """W (out, in) is held still; A (rank, in) and B (out, rank) are trained."""

    def __init__(
        self,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        a: torch.Tensor,
        b: torch.Tensor,
        scaling: float,
    ) -> None:
        super().__init__()
        self.weight, self.bias, self.scaling = weight, bias, scaling
        self.a, self.b = torch.nn.Parameter(a), torch.nn.Parameter(b)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output = x @ (self.weight + self.scaling * self.b @ self.a).T
        return output if self.bias is None else output + self.bias


def merged(weight: torch.Tensor, a: torch.Tensor, b: torch.Tensor, scaling: float) -> torch.Tensor:
    """W + scaling · B A, one number after the other, in float64."""
    result = weight.double().clone()
    for i in range(weight.shape[0]):
        for j in range(weight.shape[1]):
            for k in range(a.shape[0]):
                result[i, j] += scaling * b[i, k].double() * a[k, j].double()
    return result
