"""Objectives: what a model is asked about a packed row, next tokens or masked ones.

Owns inputs and targets of both, and which model and tokenizer can be asked. Knows nothing of
losses. What is masked depends on the
seed of a row and the place in it alone: no generator whose state would have to be saved, the same
on every device, and the same however rows are divided over steps and processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.cross_entropy import IGNORED
from vocabshift.cpt.documents import require_document_attention
from vocabshift.cpt.packing import PADDING
from vocabshift.cpt.probing import looks_ahead

if TYPE_CHECKING:
    import torch

    from vocabshift.bpe.tokenizer import Tokenizer
    from vocabshift.cpt.config import LoopConfig

_MASKED, _RANDOM = 0.8, 0.1  # of the chosen tokens; the rest stay as they are (Devlin 2019, 3.1)
_MASK_NAMES = ("[MASK]", "<mask>")


@dataclass(frozen=True, kw_only=True)
class Masking:
    """What masked language modelling needs to know of a tokenizer."""

    mask_id: int
    special_ids: tuple[int, ...]  # never chosen, never put in
    n_ids: int  # a random token is one of these, from 0
    share: float = 0.15  # of the tokens that are not special

    def __post_init__(self) -> None:
        if not 0 <= self.mask_id < self.n_ids:
            raise ValueError(f"mask_id is {self.mask_id}; an id below {self.n_ids} is needed")
        if not 0 < self.share <= 1:
            raise ValueError(f"share is {self.share}; more than 0 and at most 1 is needed")
        if len({token_id for token_id in self.special_ids if token_id < self.n_ids}) >= self.n_ids:
            raise ValueError("every id is special; there is nothing to mask")

    @classmethod
    def of(
        cls, tokenizer: Tokenizer, *, separator: Iterable[int] = (), share: float = 0.15
    ) -> Masking:
        """From a tokenizer with a mask token; `separator` stands between documents.

        ValueError where it has none.
        """
        named = tokenizer.config.get("mask_token")
        named = named.get("content") if isinstance(named, Mapping) else named
        names = _MASK_NAMES if named is None else (named,)
        ids = {token.content: token.id for token in tokenizer.added_tokens}
        found = [ids[name] for name in names if name in ids]
        if not found:
            raise ValueError(
                f"{tokenizer.name} has no mask token ({' or '.join(names)}), which the masked "
                "objective puts in place of tokens; add it as a special token, and a row for it"
            )
        special = {token.id for token in tokenizer.added_tokens if token.special}
        return cls(
            mask_id=found[0],
            special_ids=tuple(sorted(special | set(separator) | {found[0]})),
            n_ids=tokenizer.row_count,
            share=share,
        )


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    """The ids that a loss must tell apart from the rest."""

    separator: tuple[int, ...]  # between documents: EOS, or EOS and BOS
    masking: Masking | None = None  # where the objective is "masked"


def special_ids(
    model: Any, tokenizer: Tokenizer, separator: tuple[int, ...], config: LoopConfig
) -> SpecialIds:
    """What the loss of `config` needs; ValueError where model or tokenizer are not made for it."""
    is_masked = config.objective == "masked"
    if looks_ahead(model) != is_masked:
        name = type(model).__name__
        raise ValueError(
            f"{name} reads text in one direction, and the masked objective needs one that reads "
            "both (AutoModelForMaskedLM)"
            if is_masked
            else f"{name} sees the tokens that the causal objective asks for; take the masked one, "
            "or a model that reads in one direction (AutoModelForCausalLM)"
        )
    if config.document_attention:
        require_document_attention(model)
    if not is_masked:
        return SpecialIds(separator=separator)
    masking = Masking.of(tokenizer, separator=separator, share=config.mask_share)
    return SpecialIds(separator=separator, masking=masking)


def causal(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and the token after each, both (n, length), of rows (n, length + 1)."""
    following = rows[:, 1:]
    return rows[:, :-1].clamp(min=0), following.masked_fill(following == PADDING, IGNORED)


def masked(
    rows: torch.Tensor, row_seeds: torch.Tensor, masking: Masking
) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs with masked tokens, and what stood there; both (n, length), of rows (n, length + 1).

    Each token that is not special is chosen with a chance of `masking.share`: it is a target, and
    becomes the mask token (80 %), a random one that is not special (10 %) or stays (10 %), as in
    BERT (Devlin 2019, section 3.1) but drawn anew for every row, as in RoBERTa (Liu 2019, 4.1).
    The last token of a row is the first of the next and is left to it. `row_seeds` (n,) int64.
    """
    import torch

    tokens = rows[:, :-1]
    ordinary = torch.ones(masking.n_ids, dtype=torch.bool, device=rows.device)
    ordinary[[token_id for token_id in masking.special_ids if token_id < masking.n_ids]] = False
    drawable = ordinary.nonzero()[:, 0]
    maskable = (tokens != PADDING) & ordinary[tokens.clamp(min=0)]
    chosen = maskable & (_uniform(row_seeds, tokens.shape[1], draw=0) < masking.share)
    targets = tokens.masked_fill(~chosen, IGNORED)

    kind = _uniform(row_seeds, tokens.shape[1], draw=1)
    number = (_uniform(row_seeds, tokens.shape[1], draw=2) * len(drawable)).long()
    inputs = tokens.clamp(min=0)
    inputs = inputs.masked_fill(chosen & (kind < _MASKED), masking.mask_id)
    is_random = chosen & (kind >= _MASKED) & (kind < _MASKED + _RANDOM)
    return torch.where(is_random, drawable[number], inputs), targets


def _uniform(row_seeds: torch.Tensor, length: int, *, draw: int) -> torch.Tensor:
    """Numbers of [0, 1), (n, length) float64, one of 3 draws for each place of each row."""
    import torch

    places = torch.arange(length, dtype=torch.int64, device=row_seeds.device) * 3 + draw
    mixed = _mix(_mix(row_seeds)[:, None] + places[None])
    return _shift(mixed, 11).double() * 2.0**-53


def _mix(value: torch.Tensor) -> torch.Tensor:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014), in int64 that overflows."""
    value = value + (0x9E3779B97F4A7C15 - 2**64)
    value = (value ^ _shift(value, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
    value = (value ^ _shift(value, 27)) * (0x94D049BB133111EB - 2**64)
    return value ^ _shift(value, 31)


def _shift(value: torch.Tensor, bits: int) -> torch.Tensor:
    """To the right without the sign, which torch cannot do by itself."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)
