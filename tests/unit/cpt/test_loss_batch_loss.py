"""The loss of a batch of packed rows, against logits and plain sums."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vocabshift.cpt.checkpoints import StepCheckpoints
from vocabshift.cpt.config import LoopConfig
from vocabshift.cpt.loop import Phase, Step, pretrain
from vocabshift.cpt.loss import batch_loss
from vocabshift.cpt.objectives import Masking, SpecialIds, masked, special_ids
from vocabshift.cpt.packing import pack, take
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram import Scored, unigram_tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

torch = pytest.importorskip("torch")

MASKED = LoopConfig(objective="masked")
MASKING = Masking(mask_id=4, special_ids=(0, 1, 2, 3, 4), n_ids=257, share=0.3)
SPECIAL = SpecialIds(separator=(1,), masking=MASKING)
ROWS = torch.randint(5, 257, (3, 17), generator=torch.Generator().manual_seed(1))
SEEDS = torch.tensor([5, 6, 7])


@pytest.fixture(scope="module")
def roberta() -> Any:
    """A masked language model of two layers."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    config = RobertaConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=66,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return RobertaForMaskedLM(config).eval()


def sum_of_nats(logits: Any, targets: Any) -> float:
    """Minus the logarithms of what the targets were given."""
    chosen = targets != -100
    return float(
        -torch.log_softmax(logits.detach().double(), dim=-1)[chosen, targets[chosen]].sum()
    )


def test_causal(make_model: Callable[..., Any]) -> None:
    """The sum over all next tokens, padding aside, and how many they are."""
    model = make_model().eval()
    rows = ROWS.clone()
    rows[2, 4:] = -1
    nats, n_targets = batch_loss(model, rows, LoopConfig(), SPECIAL)
    expected = sum(
        sum_of_nats(model(input_ids=row[None, :-1]).logits[0], row[1:])
        for row in (rows[0], rows[1], rows[2, :4])
    )
    assert float(nats.detach()) == pytest.approx(expected, rel=1e-5)
    assert int(n_targets) == 16 + 16 + 3


def test_masked(roberta: Any) -> None:
    """The sum over the masked tokens, from whole logits of the masked inputs."""
    nats, n_targets = batch_loss(roberta, ROWS, MASKED, SPECIAL, row_seeds=SEEDS)
    inputs, targets = masked(ROWS, SEEDS, MASKING)
    expected = sum_of_nats(roberta(input_ids=inputs).logits.flatten(0, 1), targets.flatten())
    assert float(nats.detach()) == pytest.approx(expected, rel=1e-5)
    assert int(n_targets) == int((targets != -100).sum()) > 0


def test_padding_is_not_seen_by_a_model_that_looks_both_ways(roberta: Any) -> None:
    """A row costs the same with padding behind it."""
    padded = torch.cat([ROWS[:1], torch.full((1, 9), -1)], dim=1)
    padded[0, 16] = -1  # the last token of a row belongs to the next
    nats, n = batch_loss(roberta, padded, MASKED, SPECIAL, row_seeds=SEEDS[:1])
    expected, n_expected = batch_loss(roberta, ROWS[:1], MASKED, SPECIAL, row_seeds=SEEDS[:1])
    assert float(nats.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert int(n) == int(n_expected)


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_padding_alone_costs_nothing(
    roberta: Any, make_model: Callable[..., Any], objective: str
) -> None:
    """Loss, number and all gradients are 0, none is missing where another process has some."""
    model = roberta if objective == "masked" else make_model()
    model.zero_grad(set_to_none=True)
    config = MASKED if objective == "masked" else LoopConfig()
    rows = torch.full((2, 9), -1)
    nats, n_targets = batch_loss(model, rows, config, SPECIAL, row_seeds=SEEDS[:2])
    nats.backward()
    assert (float(nats.detach()), int(n_targets)) == (0.0, 0)
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


def test_masked_needs_to_know_the_mask(roberta: Any) -> None:
    """Without masking or seeds the error names them."""
    with pytest.raises(ValueError, match="needs masking and row_seeds"):
        batch_loss(roberta, ROWS, MASKED, SpecialIds(separator=(1,)), row_seeds=SEEDS)


def test_what_a_model_cannot_be_asked(
    roberta: Any, make_model: Callable[..., Any], byte_tokenizer: Tokenizer
) -> None:
    """A model that sees the answer, one that reads one way only, a tokenizer without a mask."""
    with pytest.raises(ValueError, match="RobertaForMaskedLM sees the tokens that the causal"):
        special_ids(roberta, byte_tokenizer, (256,), LoopConfig())
    with pytest.raises(ValueError, match="LlamaForCausalLM reads text in one direction"):
        special_ids(make_model(), byte_tokenizer, (256,), MASKED)
    with pytest.raises(ValueError, match="no mask token"):
        special_ids(roberta, byte_tokenizer, (256,), MASKED)


def test_what_a_loss_must_know(
    roberta: Any, make_model: Callable[..., Any], byte_tokenizer: Tokenizer
) -> None:
    """The separator always, the mask where tokens are masked; the model's mode stays."""
    model = make_model().train()
    assert special_ids(model, byte_tokenizer, (256,), LoopConfig()) == SpecialIds(separator=(256,))
    assert model.training
    added = (*byte_tokenizer.added_tokens, AddedToken("<mask>", 257))
    special = special_ids(roberta, replace(byte_tokenizer, added_tokens=added), (256,), MASKED)
    assert special.masking == Masking(mask_id=257, special_ids=(256, 257), n_ids=258)


def test_masked_training_learns_and_goes_on(
    roberta: Any, byte_tokenizer: Tokenizer, tmp_path: Path
) -> None:
    """Through the loop: the loss falls, and a run that was stopped takes the same steps."""
    texts = ["abababab" * 3, "cdcdcdcd" * 3] * 4
    added = (*byte_tokenizer.added_tokens, AddedToken("<mask>", 257))
    tokenizer = replace(byte_tokenizer, added_tokens=added)
    config = replace(MASKED, sequence_length=32, batch_size=4, mask_share=0.3)
    phases = [Phase(n_bytes=24 * 8 * 12, learning_rate=1e-2)]
    runs = []
    for folder in (None, tmp_path / "run"):
        model = copy.deepcopy(roberta)
        model.config.bos_token_id = model.config.eos_token_id = 256
        checkpoints = folder and StepCheckpoints(folder, {}, every_steps=5, every_seconds=None)

        def stop(step: Step, folder: Path | None = folder) -> None:
            if folder is not None and step.step == 7:
                raise KeyboardInterrupt

        arguments = {"phases": phases, "config": config, "checkpoints": checkpoints}
        if folder is not None:
            with pytest.raises(KeyboardInterrupt):
                pretrain(copy.deepcopy(model), tokenizer, texts, on_step=stop, **arguments)
        runs.append(pretrain(model, tokenizer, texts, **arguments))
    assert runs[0][-1].loss < 0.6 * runs[0][0].loss
    assert runs[1] == runs[0][5:]


# What the loop gives to the loss.

TEXTS = [f"the {word} of the {word}" for word in ("hat", "mat", "cat", "रात", "बात", "बहुत रात")] * 3


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], int]]:
    """Rows and their seeds, in the order in which they reach the loss."""
    rows: list[tuple[list[int], int]] = []

    def recorded(model: Any, batch: Any, *args: Any, row_seeds: Any) -> Any:
        rows.extend(zip(batch.tolist(), row_seeds.tolist(), strict=True))
        return batch_loss(model, batch, *args, row_seeds=row_seeds)

    monkeypatch.setattr("vocabshift.cpt.training_module.batch_loss", recorded)
    return rows


@pytest.fixture(scope="module")
def unigram() -> UnigramOrWordPieceTokenizer:
    """Bytes, the unknown piece, some words, and two special tokens."""
    words = ("▁the", "▁of", "▁hat", "at", "रात", "▁", "बहु")
    pieces = ("<unk>", *(f"<0x{i:02X}>" for i in range(256)), *words)
    scores = (0.0, *[-9.0] * 256, *(-2.0 - i for i in range(len(words))))
    made = unigram_tokenizer(Scored(pieces, scores), normalizer=None, name="unigram")
    return made.with_added([AddedToken("<end>", 264), AddedToken("<mask>", 265)])


def trained(model: Any, tokenizer: Any, n_bytes: int, config: LoopConfig) -> list[Step]:
    """Steps over TEXTS of a copy of the model, in which `<end>` or the like is 256 or above."""
    model = copy.deepcopy(model)
    end = next(token.id for token in tokenizer.added_tokens)
    model.config.bos_token_id = model.config.eos_token_id = end
    model.resize_token_embeddings(tokenizer.row_count)
    return pretrain(model, tokenizer, TEXTS, phases=[Phase(n_bytes=n_bytes)], config=config)


def test_every_sequence_has_its_copies_each_masked_anew(
    roberta: Any, byte_tokenizer: Tokenizer, seen: list[tuple[list[int], int]]
) -> None:
    """Duplication 3: a third of the text, each of its rows three times, with seeds of its own."""
    added = (*byte_tokenizer.added_tokens, AddedToken("<mask>", 257))
    tokenizer = replace(byte_tokenizer, added_tokens=added)
    config = replace(MASKED, sequence_length=16, batch_size=4, duplication=3, max_masks=2)
    steps = trained(roberta, tokenizer, 300, config)
    once = pack(take(TEXTS, 100), tokenizer.encode_batch, separator=[256], length=16)
    assert Counter(tuple(row) for row, _ in seen) == Counter(map(tuple, once.rows.tolist() * 3))
    assert len({seed for _, seed in seen}) == len(seen) == 3 * len(once.rows)
    assert steps[-1].n_bytes == 3 * once.n_bytes
    assert steps[-1].n_tokens <= 2 * len(seen)


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_a_unigram_vocabulary_is_trained_on_its_own_ids(
    roberta: Any,
    make_model: Callable[..., Any],
    unigram: UnigramOrWordPieceTokenizer,
    seen: list[tuple[list[int], int]],
    objective: Any,
) -> None:
    """Rows are the ids that `tokenizers` gives the drawn documents, cut one by one."""
    model = roberta if objective == "masked" else make_model()
    config = LoopConfig(objective=objective, sequence_length=16, batch_size=4)
    trained(model, unigram, 200, config)
    stream = [264]
    for text in take(TEXTS, 200):
        stream += [*unigram.backend.encode(text, add_special_tokens=False).ids, 264]
    stream += [-1] * (-(len(stream) - 1) % 16)
    expected = [stream[at : at + 17] for at in range(0, len(stream) - 1, 16)]
    assert sorted(row for row, _ in seen) == sorted(expected)
    assert 257 in stream  # "▁the"


def test_a_unigram_vocabulary_without_a_mask(
    roberta: Any, unigram: UnigramOrWordPieceTokenizer
) -> None:
    """Named before the first step, as for BPE."""
    scored = Scored(tuple(unigram.vocab), tuple(unigram.scores.values()))
    bare = unigram_tokenizer(scored, normalizer=None, name="bare")
    bare = bare.with_added([AddedToken("<end>", 264)])
    with pytest.raises(ValueError, match=r"no mask token \(\[MASK\] or <mask>\)"):
        trained(roberta, bare, 200, replace(MASKED, sequence_length=16))
