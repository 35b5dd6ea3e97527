"""Rows learned by distillation: equal to a plain version, and nothing else changes."""

from __future__ import annotations

import copy
import math
from itertools import accumulate
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import small_models  # noqa: E402
from reference.distill import learned_tables  # noqa: E402
from vocabshift.errors import CorpusError  # noqa: E402
from vocabshift.evaluation.scoring.score import score_documents  # noqa: E402
from vocabshift.surgery.options import DistillOptions, TransferOptions  # noqa: E402
from vocabshift.surgery.report import TransferReport  # noqa: E402
from vocabshift.surgery.student import TrainedRows  # noqa: E402
from vocabshift.surgery.transfer import transfer_model  # noqa: E402

TEXTS = [*small_models.HINDI[:3], "एक और बिल्ली", "the cat और the cat", "और वहाँ एक चिट्ठी थी"]


def distilled(
    model: Any, texts: list[str], *, new: Any = None, seed: int = 0, **options: Any
) -> tuple[Any, TransferReport]:
    """The model moved to the new tokenizer in place, and the report."""
    settings = TransferOptions(
        init="distill", corpus=texts, seed=seed, distill=DistillOptions(**options)
    )
    old, new = small_models.old_tokenizer(), new or small_models.new_tokenizer()
    tokenizer, report = transfer_model(model, old=old, new=new, options=settings)
    return tokenizer, report


def build(kind: str = "llama", **changes: Any) -> Any:
    return small_models.build(kind, small_models.old_tokenizer(), **changes)


def tables(model: Any) -> tuple[Any, Any]:
    return model.get_input_embeddings().weight.data, model.get_output_embeddings().weight.data


def readings(old: Any, new: Any, text: str) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Ids of a text in both tokenizers after a BOS, and the places at which tokens end alike."""
    ids, ends = [], []
    for tokenizer in (old, new):
        own = tokenizer.encode_batch([text])[0].tolist()
        bos = small_models.special_ids(tokenizer)["<s>"]
        ids.append([bos, *own])
        ends.append([*accumulate(len(tokenizer.token_bytes[i]) for i in own)])
    pairs = [(ends[0].index(end) + 1, at + 1) for at, end in enumerate(ends[1]) if end in ends[0]]
    return ids[0], ids[1], pairs


def usual_size(table: Any) -> float:
    """Root mean square of the rows that a token of the old tokenizer has."""
    used = table[: small_models.old_tokenizer().row_count]
    return float(used.square().mean().sqrt())


@pytest.mark.parametrize("kind", ["llama", "llama-tied"])
@pytest.mark.parametrize("layer", [-1, 1])
def test_equals_the_plain_version(kind: str, layer: int) -> None:
    """One snippet in float64, read in every step: the tables of torch's own Adam."""
    old = small_models.old_tokenizer()
    teacher = build(kind, num_hidden_layers=2).double()
    student, model = copy.deepcopy(teacher), copy.deepcopy(teacher)
    transfer_model(student, old=old, new=small_models.new_tokenizer())  # fvt: the start
    epochs, text = 10, "एक और दिन"
    new, report = distilled(model, [text], epochs=epochs, layer=layer)
    n_rows, lacking = report.vocab_size, {*report.distilled["without_snippets"]}
    learned = sorted(set(range(256, n_rows)) - lacking - kept_ids(report))
    assert len(learned) == report.distilled["n_learned"] > 2
    warm = [1.0]  # a tenth of the steps
    falling = [(1 + math.cos(math.pi * step / 9)) / 2 for step in range(9)]
    sizes = [usual_size(table) for table in tables(teacher)]
    rates = [tuple(0.015 * share * size for size in sizes) for share in (*warm, *falling)]
    plain = learned_tables(teacher, student, *readings(old, new, text), learned, rates, layer=layer)
    for own, expected in zip(tables(model), plain, strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-9, atol=1e-12)


def kept_ids(report: TransferReport) -> set[int]:
    """Ids of the new tokenizer above the bytes that the old one has too."""
    old = small_models.old_tokenizer().token_bytes.values()
    new = small_models.new_tokenizer().token_bytes
    made = {i for i, data in new.items() if data not in {*old}}
    return set(range(report.vocab_size)) - made


@pytest.mark.parametrize("kind", ["llama", "llama-tied", "gemma2", "opt", "bloom"])
def test_only_learned_rows_differ_from_the_start(kind: str) -> None:
    """Body, kept rows and rows without snippets: bit for bit; modes and flags are as before."""
    start, model = build(kind), build(kind).train()
    model.get_input_embeddings().weight.requires_grad_(False)
    transfer_model(start, old=small_models.old_tokenizer(), new=small_models.new_tokenizer())
    _, report = distilled(model, TEXTS, tokens=40)
    lacking = report.distilled["without_snippets"]
    assert lacking
    assert report.distilled["new_tokens"] <= 40
    learned = made_ids() - {*lacking}
    assert len(learned) == report.distilled["n_learned"]
    expected = start.state_dict()
    for name, tensor in model.state_dict().items():
        if tensor.shape[0] == report.rows:
            differs = (tensor != expected[name]).reshape(report.rows, -1).any(1)
            assert {*differs.nonzero().flatten().tolist()} <= learned, name
        else:
            assert torch.equal(tensor, expected[name]), name
    changed = (tables(model)[0] != tables(start)[0]).any(1).nonzero().flatten().tolist()
    assert learned == {*changed}
    assert not model.get_input_embeddings().weight.requires_grad
    assert all(module.training for module in model.modules())
    assert any(parameter.requires_grad for parameter in model.parameters())


def made_ids() -> set[int]:
    """Ids of the new tokens whose bytes no old token has."""
    old = {*small_models.old_tokenizer().token_bytes.values()}
    new = small_models.new_tokenizer().token_bytes
    return {i for i, data in new.items() if data not in old}


def bits(model: Any, tokenizer: Any, texts: list[str]) -> float:
    """Nats of the texts under the model."""
    return sum(document.nats for document in score_documents(model, tokenizer, texts))


@pytest.mark.parametrize("kind", ["llama", "llama-tied"])
def test_a_swap_reads_text_better_than_the_start(kind: str) -> None:
    """Distance and nats fall, and the text costs less than after fvt."""
    start, model = build(kind), build(kind)
    old, new = small_models.old_tokenizer(), small_models.new_tokenizer()
    tokenizer, _ = transfer_model(start, old=old, new=new)
    _, report = distilled(model, TEXTS, epochs=20, step_tokens=30)
    (first, last), (before, after) = (report.distilled[k] for k in ("distance", "nats_per_token"))
    assert last < 0.6 * first
    assert after < before
    assert bits(model, tokenizer, TEXTS) < bits(start, tokenizer, TEXTS)


def test_batches_decide_about_memory_alone() -> None:
    """One snippet at a time, or all at once: the same sums up to rounding. Seeds matter more."""
    whole, single, other = (build().double() for _ in range(3))
    options = {"epochs": 3, "step_tokens": 40}
    distilled(whole, TEXTS, **options)
    distilled(single, TEXTS, batch_tokens=1, **options)
    distilled(other, TEXTS, seed=1, **options)
    for one, two in zip(tables(whole), tables(single), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(tables(whole)[0], tables(other)[0])


@pytest.mark.parametrize("kind", ["llama", "llama-tied"])
def test_a_row_moves_by_its_own_snippets(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs: only rows of tokens in the step; a head, and a table that serves as one: all rows."""
    moved: list[int | None] = []
    step = TrainedRows.step

    def recorded(self: Any, rate: float, touched: Any) -> None:
        before = self.values.detach().clone()
        step(self, rate, touched)
        differs = (before != self.values.detach()).any(1).nonzero().flatten()
        assert touched is None or {*differs.tolist()} <= {*touched.tolist()}
        moved.append(None if touched is None else len(touched))

    monkeypatch.setattr(TrainedRows, "step", recorded)
    _, report = distilled(build(kind), TEXTS, step_tokens=1)
    if kind == "llama-tied":
        assert {None} == {*moved}
    else:
        assert {None} == {*moved[1::2]}
        assert all(0 < n < report.distilled["n_learned"] for n in moved[::2] if n is not None)
        assert None not in moved[::2]


def test_rows_start_from_another_initializer() -> None:
    """A token that the corpus lacks keeps the row that `start` made."""
    start, model = build(), build()
    settings = TransferOptions(init="focus", corpus=TEXTS)
    old, new = small_models.old_tokenizer(), small_models.new_tokenizer()
    transfer_model(start, old=old, new=new, options=settings)
    _, report = distilled(model, TEXTS, start="focus", tokens=30)
    lacking = report.distilled["without_snippets"]
    assert report.distilled["start"] == "focus"
    assert torch.equal(tables(model)[0][lacking], tables(start)[0][lacking])


def test_heads_may_keep_the_start() -> None:
    """Without the next-token loss an untied head is as the start made it."""
    start, model = build(), build()
    transfer_model(start, old=small_models.old_tokenizer(), new=small_models.new_tokenizer())
    _, report = distilled(model, TEXTS, next_token_weight=0.0)
    assert torch.equal(tables(model)[1], tables(start)[1])
    assert not torch.equal(tables(model)[0], tables(start)[0])
    assert report.distilled["nats_per_token"] is None


@pytest.mark.parametrize("kind", ["xlm-roberta", "bert", "classifier"])
def test_encoders_learn_by_hidden_states(kind: str) -> None:
    """They predict no next token; the template's tokens stand around each snippet."""
    model = build(kind)
    _, report = distilled(model, TEXTS, epochs=20, step_tokens=30, learning_rate=0.1)
    first, last = report.distilled["distance"]
    assert last < 0.6 * first
    assert report.distilled["nats_per_token"] is None


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_model_in_training_learns_like_one_that_is_not(kind: str) -> None:
    """Dropout is off, and does not make a causal model look like an encoder either."""
    dropout = {"resid_pdrop": 0.5} if kind == "gpt2" else {"attention_dropout": 0.5}
    at_rest, training = build(kind, **dropout), build(kind, **dropout).train()
    reports = [distilled(each, TEXTS)[1] for each in (at_rest, training)]
    assert reports[0].distilled["nats_per_token"] is not None
    assert reports[0] == reports[1]
    for one, two in zip(tables(at_rest), tables(training), strict=True):
        assert torch.equal(one, two)


def test_a_model_for_several_tasks_is_an_encoder() -> None:
    """BertForPreTraining has a head, and no logits by that name."""
    bert = build("bert")
    model = transformers.BertForPreTraining(bert.config).eval()
    _, report = distilled(model, TEXTS)
    assert report.distilled["n_learned"] > 2
    assert report.distilled["nats_per_token"] is None


def test_several_states_of_each_token() -> None:
    """Gemma 3n carries four streams through its layers: all of them are compared."""
    model = build("gemma3n-per-layer")
    _, report = distilled(model, TEXTS, epochs=20, step_tokens=30)
    first, last = report.distilled["distance"]
    assert last < 0.7 * first
    assert report.distilled["nats_per_token"] is not None


def test_a_classifier_without_a_pad_token() -> None:
    """It refuses several texts at once, so that its body is run."""
    config = build("llama").config
    config.pad_token_id = None
    model = transformers.LlamaForSequenceClassification(config).eval()
    _, report = distilled(model, TEXTS, epochs=20, step_tokens=30)
    first, last = report.distilled["distance"]
    assert last < 0.7 * first


def test_the_new_reading_fits_the_positions() -> None:
    """English tokens for a model of Hindi ones: Hindi is then read in many more tokens."""
    old = small_models.old_tokenizer(small_models.HINDI, 340)
    new = small_models.train(["a dog the dog"] * 5, 270)
    text = "a dog बिल्ली और a dog और दूसरी बिल्ली the dog वहाँ बैठी थी the dog"
    longest = old.encode_batch([text])[0].size + 1
    assert longest < new.encode_batch([text])[0].size
    model = small_models.build("gpt2", old, n_positions=longest)
    settings = TransferOptions(init="distill", corpus=[text])
    _, report = transfer_model(model, old=old, new=new, options=settings)
    assert report.distilled["snippets"] > 1


@pytest.mark.parametrize("n_positions", [40, 80])
def test_positions_that_are_counted_from_the_pad_token(n_positions: int) -> None:
    """The embeddings of the positions up to its id are never read: so many tokens fewer fit."""
    model = build("xlm-roberta", max_position_embeddings=n_positions)
    _, report = distilled(model, ["बिल्ली और दूसरी बिल्ली वहाँ बैठी थी " * 3])
    assert report.distilled["snippets"] > 1
    assert report.distilled["n_learned"] > 2


def test_two_tensors_under_a_tied_config() -> None:
    """The tensors decide: a table and a head, each with rows of its own."""
    plain, model = build("llama"), build("llama-tied", rope_theta=500_000.0)
    with torch.no_grad():
        head = model.lm_head.weight + 0.01
    model.lm_head.weight = torch.nn.Parameter(head.clone())
    plain.load_state_dict(model.state_dict())
    for each in (plain, model):
        distilled(each, TEXTS, start="first-last")  # another one for a head
    for one, two in zip(tables(plain), tables(model), strict=True):
        assert torch.equal(one, two)


def test_what_cannot_be_learned() -> None:
    """Each with what to do, and the model as it was."""
    model = build()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    for options, said in (
        ({"layer": 2}, r"layer is 2, and LlamaForCausalLM has 1 layers: give 0"),
        ({"snippets": 0}, "snippets is 0; give at least 1"),
        ({"hidden_weight": 0.0, "next_token_weight": 0.0}, "both weights are 0"),
        ({"start": "distill"}, "'distill' cannot be the start"),
        ({"start": "magic"}, "unknown init 'magic'"),
        ({"start": "omp"}, "init 'omp' needs donor="),
    ):
        with pytest.raises(ValueError, match=said):
            distilled(model, TEXTS, **options)
    with pytest.raises(ValueError, match=r"init 'distill' needs corpus=.*--corpus"):
        distilled(model, None)  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match=r"none of the 3. new tokens .* \(13 bytes\); give"):
        distilled(model, ["1234 5678 901"])
    with pytest.raises(ValueError, match=r"MT5ForConditionalGeneration is an encoder with"):
        distilled(build("mt5"), TEXTS)
    with pytest.raises(ValueError, match=r"BertForMaskedLM predicts no next token.*nothing"):
        distilled(build("bert"), TEXTS, hidden_weight=0.0)
    quantized = build()
    quantized.config.quantization_config = {"quant_method": "gptq", "bits": 4}
    with pytest.raises(ValueError, match=r"gradients through LlamaForCausalLM.*unquantized"):
        distilled(quantized, TEXTS)
    model.model.norm.weight.data.fill_(math.nan)
    with pytest.raises(ValueError, match="loss of 'distill' is not finite at step 1"):
        distilled(model, TEXTS)
    model.model.norm.weight.data.copy_(before["model.norm.weight"])
    after = model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
