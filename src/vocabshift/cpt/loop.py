"""The training loop: next-token prediction over packed text, phase by phase.

Owns steps, schedule and optimizer. Knows nothing of files, the command line or evaluation. It is
plain torch: one device, no processes; everything random comes from `LoopConfig.seed`, so on a CPU
with one number of threads two runs give the same weights. Progress and the learning rate follow
bytes of text, not steps, so that runs with different tokenizers are compared like with like.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.freeze import check_phase, decay_groups, trained_parameters
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.cpt.packing import PADDING, PackedSequences, draw, pack, pack_ids, take
from vocabshift.errors import VocabMismatchError

if TYPE_CHECKING:
    import torch

    from vocabshift.bpe.encoder import Encoder
    from vocabshift.bpe.tokenizer import Tokenizer
    from vocabshift.text.corpus import Corpus

_IGNORED = -100  # torch's cross_entropy skips targets of this value


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One stretch of training: what is trained, on how much text, how fast."""

    trained: str = "all"  # a name of freeze.PHASES
    n_bytes: int  # budget in bytes of raw text; more than the corpus holds means several rounds
    learning_rate: float = 1e-3  # at its highest, after the warm-up

    def __post_init__(self) -> None:
        check_phase(self.trained)
        if self.n_bytes < 1:
            raise ValueError(f"n_bytes is {self.n_bytes}; at least 1 byte of text is needed")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate is {self.learning_rate}; it must be above 0")


@dataclass(frozen=True, kw_only=True)
class LoopConfig:
    """What all phases share."""

    sequence_length: int = 256  # tokens
    batch_size: int = 16  # sequences a step
    warmup: float = 0.05  # share of a phase's bytes over which the rate climbs from 0
    final_rate: float = 0.1  # share of the learning rate at which the cosine ends
    weight_decay: float = 0.1  # on matrices only, see freeze.decay_groups
    betas: tuple[float, float] = (0.9, 0.95)
    max_gradient_norm: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}; at least 1 sequence is needed")
        for name in ("warmup", "final_rate"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; a share of 0 to 1 is needed")


@dataclass(frozen=True, slots=True)
class Step:
    """What one optimizer step did; the argument of `on_step`."""

    phase: int  # index
    trained: str
    step: int  # within the phase, from 1
    n_steps: int
    loss: float  # nats per token, before the step
    bits_per_byte: float  # the same loss, over the bytes of the batch
    learning_rate: float
    gradient_norm: float  # before clipping
    n_bytes: int  # bytes of text seen in this phase, this step included
    n_tokens: int  # tokens predicted in this phase, this step included


def pretrain(
    model: Any,
    tokenizer: Any,
    corpus: Corpus | PackedIds | Iterable[str],
    *,
    phases: Sequence[Phase],
    config: LoopConfig | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> list[Step]:
    """Train `model` IN PLACE on `corpus` through `phases`, and return its steps.

    Documents are shuffled, joined with the EOS (and BOS, where it is another id) of
    `model.config`, and cut to `config.sequence_length`; the text of a phase depends on budget,
    corpus and seed alone, never on the tokenizer. AdamW; linear warm-up, then a cosine to
    `config.final_rate`. Every phase begins with a fresh optimizer and another order of documents.
    `corpus` may be PackedIds that were made with this tokenizer; the steps are the same.

    Raises VocabMismatchError where the tokenizer has ids beyond the model's rows, CorpusError
    where there is no text, ValueError for a sequence longer than the model's positions, and
    where a loss or gradient is not finite: the weights are then those before that step.
    """
    from vocabshift.bpe.encoder import Encoder
    from vocabshift.bpe.load import as_tokenizer

    config = config or LoopConfig()
    ours = as_tokenizer(tokenizer)
    separator = _check(model, ours.row_count, config)
    encoder = Encoder(ours)
    source = _source(corpus, ours)
    steps: list[Step] = []
    was_training = model.training
    model.train()
    try:
        for index, phase in enumerate(phases):
            packed = _packed(
                source,
                encoder,
                phase.n_bytes,
                seed=config.seed + index,
                separator=separator,
                length=config.sequence_length,
            )
            steps += _run_phase(model, packed, phase, index=index, config=config, on_step=on_step)
    finally:
        model.train(was_training)
    return steps


def learning_rate_share(progress: float, *, warmup: float, final_rate: float) -> float:
    """Share of the highest learning rate at `progress`, both 0-1: linear, then cosine."""
    if progress < warmup:
        return progress / warmup
    if warmup == 1.0:
        return 1.0
    after = (progress - warmup) / (1 - warmup)
    return final_rate + (1 - final_rate) * (1 + math.cos(math.pi * after)) / 2


def _check(model: Any, n_rows: int, config: LoopConfig) -> tuple[int, ...]:
    """Refuse what cannot be trained; return the ids that stand between documents."""
    rows = model.get_input_embeddings().weight.shape[0]
    if n_rows > rows:
        raise VocabMismatchError(
            f"the tokenizer needs {n_rows} embedding rows and the model has {rows}; "
            "transfer the model to this tokenizer first"
        )
    settings = model.config.get_text_config()
    positions = getattr(settings, "max_position_embeddings", None)
    if positions is not None and config.sequence_length > positions:
        raise ValueError(
            f"sequence_length is {config.sequence_length} and the model has {positions} positions; "
            "choose a shorter one"
        )
    eos = settings.eos_token_id
    eos = eos[0] if isinstance(eos, list) else eos
    if eos is None:
        raise ValueError(
            "the model's config has no eos_token_id, which must stand between documents; set one"
        )
    bos = settings.bos_token_id
    separator = (eos,) if bos is None or bos == eos else (eos, bos)
    if not all(0 <= token_id < rows for token_id in separator):
        raise VocabMismatchError(
            f"the model's config names the special ids {separator} but the model has {rows} rows; "
            "set bos_token_id and eos_token_id to ids of its tokenizer"
        )
    return separator


def _source(
    corpus: Corpus | PackedIds | Iterable[str], tokenizer: Tokenizer
) -> PackedIds | list[str]:
    if isinstance(corpus, PackedIds):
        corpus.require(tokenizer)
        return corpus
    if hasattr(corpus, "texts"):
        return [text for _, text in corpus.texts()]
    return list(corpus)


def _packed(
    source: PackedIds | list[str],
    encoder: Encoder,
    n_bytes: int,
    *,
    seed: int,
    separator: tuple[int, ...],
    length: int,
) -> PackedSequences:
    """Rows of the documents that a budget takes."""
    if isinstance(source, PackedIds):
        sizes = source.document_bytes
        chosen = draw(sizes, n_bytes, seed=seed)
        ids, offsets = source.gather(chosen)
        return pack_ids(ids, offsets, sizes[chosen], separator=separator, length=length)
    texts = take(source, n_bytes, seed=seed)
    return pack(texts, encoder.encode_batch, separator=separator, length=length)


def _run_phase(
    model: Any,
    packed: PackedSequences,
    phase: Phase,
    *,
    index: int,
    config: LoopConfig,
    on_step: Callable[[Step], None] | None,
) -> list[Step]:
    import torch

    order = np.random.default_rng((config.seed, index)).permutation(len(packed.rows))
    batches = [order[at : at + config.batch_size] for at in range(0, len(order), config.batch_size)]
    n_bytes = n_tokens = 0
    steps: list[Step] = []
    with trained_parameters(model, phase.trained) as parameters, torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed + index)  # dropout
        optimizer = torch.optim.AdamW(
            decay_groups(model, parameters, config.weight_decay),
            lr=phase.learning_rate,
            betas=config.betas,
        )
        for number, batch in enumerate(batches, start=1):
            loss, n_targets = _backward(model, packed.rows[batch])
            norm = float(torch.nn.utils.clip_grad_norm_(parameters, config.max_gradient_norm))
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise ValueError(
                    f"training diverged in phase {index} ({phase.trained}), step {number}: "
                    f"loss {loss}, gradient norm {norm}; "
                    f"lower the learning rate of {phase.learning_rate:g} or lengthen the warm-up"
                )
            batch_bytes = int(packed.row_bytes[batch].sum())
            n_bytes += batch_bytes
            n_tokens += n_targets
            rate = phase.learning_rate * learning_rate_share(
                n_bytes / packed.n_bytes, warmup=config.warmup, final_rate=config.final_rate
            )
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step = Step(
                phase=index,
                trained=phase.trained,
                step=number,
                n_steps=len(batches),
                loss=loss,
                bits_per_byte=loss * n_targets / math.log(2) / max(batch_bytes, 1),
                learning_rate=rate,
                gradient_norm=norm,
                n_bytes=n_bytes,
                n_tokens=n_tokens,
            )
            steps.append(step)
            if on_step:
                on_step(step)
    return steps


def _backward(model: Any, rows: NDArray[np.int32]) -> tuple[float, int]:
    """Leave the gradients of packed `rows` in the model; mean loss in nats, number of targets."""
    import torch

    device = model.get_input_embeddings().weight.device
    ids = torch.from_numpy(rows).to(device, torch.int64)
    targets = ids[:, 1:].masked_fill(ids[:, 1:] == PADDING, _IGNORED)
    loss = next_token_loss(model, ids[:, :-1].clamp(min=0), targets)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), int((targets != _IGNORED).sum())


def next_token_loss(model: Any, input_ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy in nats per target; both (batch, length), targets of -100 are skipped."""
    import torch

    logits = model(input_ids=input_ids, use_cache=False).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=_IGNORED
    )
