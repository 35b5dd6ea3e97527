"""Objectives: inputs and targets of a packed row, for next-token or masked prediction.

Also owns which models and tokenizers an objective fits. Masking depends only on the row's seed and
the position in the row. There is no generator state to save, and the result is the same on every
device and for every division of rows over steps and processes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vocabshift.cpt.config import MATCHING
from vocabshift.cpt.packing import PADDING
from vocabshift.models.cross_entropy import IGNORED
from vocabshift.models.token_loss import probing
from vocabshift.tokenizer.added_tokens import role_text

if TYPE_CHECKING:
    import torch

    from vocabshift.cpt.config import LoopConfig
    from vocabshift.tokenizer.any_tokenizer import AnyTokenizer


# Probing a model on a few tokens, without side effects.


def logits_of(model: Any, ids: Sequence[int], *, first_id: int | None = None) -> torch.Tensor:
    """Logits of one row of ids, (length, vocab) float32; within `probing`.

    `first_id`: that of documents, with which positions are to start again.
    """
    import torch

    row = torch.tensor([ids], device=model.get_input_embeddings().weight.device)
    inputs = {"input_ids": row} if first_id is None else document_inputs(model, row, first_id)
    logits: torch.Tensor = model(**inputs, use_cache=False).logits[0]
    return logits.float()


def looks_ahead(model: Any) -> bool:
    """Whether a token's logits depend on the tokens after it, as in a masked language model."""
    with probing(model):
        change = (logits_of(model, [1, 2, 3]) - logits_of(model, [1, 2, 4])).abs().amax(dim=-1)
    return bool(change[:2].max() > 1e-4 * change[2])


# Document-aware attention: no token of a packed row sees another document.
#
# transformers implements it. Where positions restart, its masks (eager, sdpa, flex) let a token see
# only its own run (`masking_utils.find_packed_sequence_indices`). Its flash attention cuts the row
# into runs too (`_is_packed_sequence`), but looks at positions only in a batch of one row.


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
    """Targets without those that belong to the next document: the BOS after an EOS.

    If EOS is the only separator, it ends one document and begins the next, and stays a target.
    """
    return targets.masked_fill(targets == separator[-1], IGNORED) if len(separator) > 1 else targets


def document_inputs(model: Any, input_ids: torch.Tensor, first_id: int) -> dict[str, torch.Tensor]:
    """The arguments for the model: `input_ids` and `position_ids`."""
    inputs = {"input_ids": input_ids, "position_ids": positions(input_ids, first_id)}
    if "flash" in str(model.config.get_text_config()._attn_implementation):
        # All rows end to end as one: otherwise flash attention does not separate documents.
        return {name: value.reshape(1, -1) for name, value in inputs.items()}
    return inputs


def require_document_attention(model: Any) -> None:
    """Raise ValueError unless the model keeps documents apart, tested on short ones.

    Models that mix tokens without attention (Mamba, convolutions), or that have another kind of
    positions (ALiBi), do not. Nor do those whose masks do not follow the positions (OpenAI's GPT).
    """
    import torch

    name, remedy = type(model).__name__, "leave document_attention off"
    if "position_ids" not in inspect.signature(model.forward).parameters:
        raise ValueError(f"document_attention: {name} takes no position_ids; {remedy}")
    # Ids 1 to 4, none of them 0: the first id of a document is 0 here.
    ids, others = [0, 3, 1, 4], ([0, 1, 2, 3, 2, 4], [0, 4, 4, 1, 3, 3])
    with probing(model):
        alone = logits_of(model, ids)
        seen = [logits_of(model, [*before, *ids])[-len(ids) :] for before in others]
        apart = [logits_of(model, [*before, *ids], first_id=0)[-len(ids) :] for before in others]
    weight, least = model.get_input_embeddings().weight, 1e-5 * float(alone.abs().max())
    is_exact = weight.dtype == torch.float32 and not torch.is_autocast_enabled(weight.device.type)
    share = 1e-3 if is_exact else 0.01
    # What another document changes must be rounding: small against its effect when it is visible.
    # It is 0 between rows of one length, except where experts get other numbers of tokens.
    is_apart = _change(*apart) <= max(share * _change(*seen), least)
    # Against the document alone, positions too have an effect, and the length may change rounding.
    if not (is_apart and _change(apart[0], alone) <= max(0.05 * _change(seen[0], alone), least)):
        raise ValueError(
            f"document_attention: {name} does not keep documents apart when positions start again "
            f"(attention {model.config.get_text_config()._attn_implementation}); {remedy}"
        )


def _change(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max())


# The objectives.

_MASKED, _RANDOM = 0.8, 0.1  # of the chosen tokens; the rest stay as they are (Devlin 2019, 3.1)
_MASK_NAMES = ("[MASK]", "<mask>")


@dataclass(frozen=True, kw_only=True)
class Masking:
    """The facts about a tokenizer that masked language modelling needs."""

    mask_id: int
    special_ids: tuple[int, ...]  # never masked, never inserted
    n_ids: int  # random tokens are drawn from 0 to n_ids - 1
    share: float = 0.15  # of the tokens that are not special
    most: int | None = None  # of a row; None: as many as are drawn

    def __post_init__(self) -> None:
        if not 0 <= self.mask_id < self.n_ids:
            raise ValueError(f"mask_id is {self.mask_id}; an id below {self.n_ids} is needed")
        if not 0 < self.share <= 1:
            raise ValueError(f"share is {self.share}; more than 0 and at most 1 is needed")
        if len({token_id for token_id in self.special_ids if token_id < self.n_ids}) >= self.n_ids:
            raise ValueError("every id is special; there is nothing to mask")

    @classmethod
    def of(
        cls,
        tokenizer: AnyTokenizer,
        *,
        separator: Iterable[int] = (),
        share: float = 0.15,
        most: int | None = None,
    ) -> Masking:
        """From a tokenizer with a mask token; `separator` stands between documents.

        ValueError where it has none.
        """
        named = role_text(tokenizer.config, "mask")
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
            most=most,
        )


@dataclass(frozen=True, kw_only=True)
class SpecialIds:
    """The ids that the loss treats specially."""

    separator: tuple[int, ...]  # between documents: EOS, or EOS and BOS
    masking: Masking | None = None  # where the objective is "masked"
    boundary_ids: tuple[int, ...] | None = None  # see `boundary_ids`; for likelihood matching


def special_ids(
    model: Any, tokenizer: AnyTokenizer, separator: tuple[int, ...], config: LoopConfig
) -> SpecialIds:
    """The ids for the loss of `config`; ValueError if model or tokenizer do not fit it."""
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
    if config.objective == MATCHING and config.debiasing:
        return SpecialIds(separator=separator, boundary_ids=boundary_ids(tokenizer))
    if not is_masked:
        return SpecialIds(separator=separator)
    masking = Masking.of(
        tokenizer, separator=separator, share=config.mask_share, most=config.max_masks
    )
    return SpecialIds(separator=separator, masking=masking)


def boundary_ids(tokenizer: AnyTokenizer) -> tuple[int, ...]:
    """The tokens that begin a new word: those that begin with white space, and special ones.

    ValueError where there is none: the tokenizer does not write spaces.
    """
    spelled = tokenizer.token_bytes.items()
    spaces = {token_id for token_id, data in spelled if data[:1] in (b" ", b"\t", b"\n", b"\r")}
    if not spaces:
        raise ValueError(
            f"no token of {tokenizer.name} begins with white space, by which debiasing knows where "
            "a word may end; set debiasing = false"
        )
    return tuple(sorted(spaces | {token.id for token in tokenizer.added_tokens if token.special}))


def causal(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and the token after each, both (n, length), of rows (n, length + 1)."""
    following = rows[:, 1:]
    return rows[:, :-1].clamp(min=0), following.masked_fill(following == PADDING, IGNORED)


def causal_inputs(
    model: Any, rows: torch.Tensor, config: LoopConfig, special: SpecialIds
) -> tuple[torch.Tensor, dict[str, Any]]:
    """Targets and the model's arguments for next-token prediction of packed rows."""
    input_ids, targets = causal(rows)
    if not config.document_attention:
        return targets, {"input_ids": input_ids}
    targets = within_documents(targets, special.separator)
    inputs = document_inputs(model, input_ids, special.separator[-1])
    return targets.reshape(inputs["input_ids"].shape), inputs


def masked(
    rows: torch.Tensor, row_seeds: torch.Tensor, masking: Masking
) -> tuple[torch.Tensor, torch.Tensor]:
    """Masked inputs and the original tokens, both (n, length), from rows (n, length + 1).

    Each non-special token is chosen with probability `masking.share`. A chosen token is a target;
    it becomes the mask token (80 %), a random non-special token (10 %), or stays (10 %), as in BERT
    (Devlin 2019, section 3.1). The choice is drawn anew for every row, as in RoBERTa (Liu 2019,
    4.1). Of more than `masking.most` chosen tokens in a row, that many remain, drawn at random.
    The last token of a row is the first of the next row and is masked only there. `row_seeds` (n,)
    int64.
    """
    import torch

    tokens = rows[:, :-1]
    ordinary = torch.ones(masking.n_ids, dtype=torch.bool, device=rows.device)
    ordinary[[token_id for token_id in masking.special_ids if token_id < masking.n_ids]] = False
    drawable = ordinary.nonzero()[:, 0]
    maskable = (tokens != PADDING) & ordinary[tokens.clamp(min=0)]
    draws = _uniform(row_seeds, tokens.shape[1], draw=0)
    chosen = maskable & (draws < masking.share)
    if masking.most is not None:
        in_order = draws.masked_fill(~chosen, torch.inf).argsort(dim=1, stable=True)
        chosen = chosen.scatter(1, in_order[:, masking.most :], value=False)
    targets = tokens.masked_fill(~chosen, IGNORED)

    kind = _uniform(row_seeds, tokens.shape[1], draw=1)
    number = (_uniform(row_seeds, tokens.shape[1], draw=2) * len(drawable)).long()
    inputs = tokens.clamp(min=0)
    inputs = inputs.masked_fill(chosen & (kind < _MASKED), masking.mask_id)
    is_random = chosen & (kind >= _MASKED) & (kind < _MASKED + _RANDOM)
    return torch.where(is_random, drawable[number], inputs), targets


def _uniform(row_seeds: torch.Tensor, length: int, *, draw: int) -> torch.Tensor:
    """Numbers in [0, 1), (n, length) float64: one of 3 draws for each position of each row."""
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
    """Logical (unsigned) right shift, which torch does not have."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)
