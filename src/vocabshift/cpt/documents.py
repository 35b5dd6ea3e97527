"""Document-aware attention: no token of a packed row sees another document.

Owns where documents begin in a row, and whether a model can keep them apart. transformers does the
rest: where positions start again, its masks (eager, sdpa, flex) let a token see its own run only
(`masking_utils.find_packed_sequence_indices`), and its flash attention, which looks at positions
for a batch of one alone, cuts the row into runs (`_is_packed_sequence`).
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.cross_entropy import IGNORED
from vocabshift.cpt.probing import logits_of, probing

if TYPE_CHECKING:
    import torch


def positions(input_ids: torch.Tensor, first_id: int) -> torch.Tensor:
    """Positions that start at 0 with every document, (n, length) as `input_ids`.

    A document begins with `first_id`, the last id of the separator (BOS, or EOS in a model without
    BOS); a row that begins within a document begins at 0 too.
    """
    import torch

    places = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
    begins = (input_ids == first_id) | (places == 0)
    return places - places.masked_fill(~begins, 0).cummax(dim=1).values


def within_documents(targets: torch.Tensor, separator: tuple[int, ...]) -> torch.Tensor:
    """Targets without those that stand in the next document: the BOS after an EOS.

    Where EOS alone stands between documents it ends one and begins the next, and stays.
    """
    return targets.masked_fill(targets == separator[-1], IGNORED) if len(separator) > 1 else targets


def document_inputs(model: Any, input_ids: torch.Tensor, first_id: int) -> dict[str, torch.Tensor]:
    """What the model must be called with: `input_ids` and `position_ids`."""
    inputs = {"input_ids": input_ids, "position_ids": positions(input_ids, first_id)}
    if "flash" in str(model.config.get_text_config()._attn_implementation):
        # One batch of all rows, end to end: flash attention tells documents apart only so.
        return {name: value.reshape(1, -1) for name, value in inputs.items()}
    return inputs


def require_document_attention(model: Any) -> None:
    """ValueError unless the model keeps documents apart; found out on two short ones.

    Models that mix tokens otherwise than by attention (Mamba, convolutions), or have positions of
    another kind (ALiBi), do not.
    """
    import torch

    name = type(model).__name__
    remedy = "leave document_attention off"
    if "position_ids" not in inspect.signature(model.forward).parameters:
        raise ValueError(f"document_attention: {name} takes no position_ids; {remedy}")
    # Ids 1 to 4, none of them 0: the first id of a document is 0 here.
    documents = [[0, 1, 2, 3, 2, 4], [0, 3, 1, 4]]
    with probing(model):
        expected = logits_of(model, documents[1])
        together = [token_id for ids in documents for token_id in ids]
        seen = logits_of(model, together)[-len(expected) :]
        inputs = torch.tensor([together], device=model.get_input_embeddings().weight.device)
        apart = model(use_cache=False, **document_inputs(model, inputs, 0)).logits[0].float()
    leak = float((seen - expected).abs().max())
    rest = float((apart[-len(expected) :] - expected).abs().max())
    # What is left must be rounding: small beside what the other document does when it is seen.
    if not rest <= max(0.05 * leak, 1e-5 * float(expected.abs().max())):
        raise ValueError(
            f"document_attention: {name} does not keep documents apart when positions start again "
            f"(attention {model.config.get_text_config()._attn_implementation}); {remedy}"
        )
