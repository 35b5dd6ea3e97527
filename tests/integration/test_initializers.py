"""Every initializer on whole models: tables of a head, rolling back, and what `auto` keeps."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import vocabshift as vs  # noqa: E402
from vocabshift.surgery.omp import Donor  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder, transfer_model  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402
from vocabshift.workflows.transfer import bits_per_byte  # noqa: E402

TEXT = ["the cat and the other cat sat by the heater", "बिल्ली और दूसरी बिल्ली वहाँ बैठी थी"] * 8
INITS = ("fvt", "fvt-weighted", "first-last", "omp", "focus", "mean", "normal", "random", "zeros")


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    tokenizer = vs.BpeTrainer(vocab_size=270, special_tokens=("<s>",)).train(
        vs.Corpus.from_texts(TEXT[:1])
    )
    return Tokenizer(**{**vars(tokenizer), "config": {"bos_token": "<s>"}})


@pytest.fixture(scope="module")
def new() -> Tokenizer:
    return vs.BpeTrainer(vocab_size=320).train(vs.Corpus.from_texts(TEXT))


def _model(tokenizer: Tokenizer, *, kind: str = "gptj", tied: bool = False, seed: int = 5) -> Any:
    config = transformers.AutoConfig.for_model(
        kind,
        vocab_size=tokenizer.row_count + 2,
        n_embd=16,
        n_layer=1,
        n_head=2,
        rotary_dim=4,
        n_positions=64,
        bos_token_id=next(iter(tokenizer.added_tokens)).id if tokenizer.added_tokens else None,
        eos_token_id=None,
        tie_word_embeddings=tied,
    )
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    torch.nn.init.normal_(model.lm_head.bias)
    return model


def _tensors(model: Any) -> dict[str, Any]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def _options(new: Tokenizer, init: str) -> dict[str, Any]:
    return {
        "donor": Donor.of_model(_model(new, seed=9), new) if init == "omp" else None,
        "corpus": TEXT if init == "focus" else None,
    }


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("init", INITS)
def test_every_initializer_fills_every_table(old, new, init, tied) -> None:
    """Kept rows stay, new ones are finite, head and bias have their own; the seed repeats."""
    made = []
    for _ in range(2):
        model = _model(old, tied=tied)
        before = _tensors(model)
        _, tokenizer = vs.transfer(model, old=old, new=new, init=init, **_options(new, init))
        made.append(_tensors(model))
    after = made[0]
    assert all(torch.equal(after[name], made[1][name]) for name in after)
    kept = [token for token in old.model.vocab if token in tokenizer.model.vocab]
    assert len(kept) > 256
    for name in ("transformer.wte.weight", "lm_head.weight", "lm_head.bias"):
        assert bool(torch.isfinite(after[name]).all())
        assert tokenizer.row_count <= len(after[name])
        assert torch.equal(
            before[name][[old.model.vocab[token] for token in kept]],
            after[name][[tokenizer.model.vocab[token] for token in kept]],
        )
    assert tied == (model.lm_head.weight is model.transformer.wte.weight)


def test_bias_and_head_of_first_last(old, new) -> None:
    """Both take the first piece's, the input the last one's."""
    model = _model(old)
    before = _tensors(model)
    _, tokenizer = vs.transfer(model, old=old, new=new, init="first-last")
    added = [token for token in tokenizer.model.vocab if token not in old.model.vocab]
    assert len(added) > 20
    for token in added:
        pieces = [piece.id for piece in old.backend.model.tokenize(token)]
        row = tokenizer.model.vocab[token]
        for name, piece in (
            ("lm_head.weight", 0),
            ("lm_head.bias", 0),
            ("transformer.wte.weight", -1),
        ):
            assert torch.equal(before[name][pieces[piece]], model.state_dict()[name][row])


@pytest.mark.parametrize("tied", [False, True])
def test_auto_keeps_the_cheapest(old, new, tied) -> None:
    """Its prices are those of each initializer by itself, and its rows those of the best one."""
    options = {"donor": Donor.of_model(_model(new, seed=9), new), "corpus": TEXT}
    price = bits_per_byte(TEXT)
    model = _model(old, tied=tied)
    tokenizer, report = transfer_model(
        model, old=old, new=new, options=TransferOptions(init="auto", score=price, **options)
    )
    names = {"fvt", "fvt-weighted", "first-last", "mean", "normal", "omp", "focus"}
    assert names == set(report.tried)
    assert sorted(report.tried.values()) == list(report.tried.values())
    for init, expected in report.tried.items():
        single = _model(old, tied=tied)
        _, own = vs.transfer(single, old=old, new=new, init=init, **options)
        assert expected == pytest.approx(price(single, own), abs=1e-9)
        if init == report.init:
            mine, theirs = model.state_dict(), single.state_dict()
            assert all(torch.equal(mine[name], theirs[name]) for name in theirs)
    assert report.init == next(iter(report.tried))
    assert price(model, tokenizer) == pytest.approx(report.tried[report.init], abs=1e-9)


def test_a_try_that_fails_leaves_the_model_as_it_was(old, new) -> None:
    """Rows, sizes and config; also where no price is a number."""
    model = _model(old)
    before, config = _tensors(model), model.config.to_dict()

    def fail(model: Any, tokenizer: Any) -> float:
        assert model.config.vocab_size == len(model.transformer.wte.weight) > 280
        raise RuntimeError("no")

    for score, error in ((fail, RuntimeError), (lambda *_: math.nan, ValueError)):
        with pytest.raises(error):
            vs.transfer(model, old=old, new=new, init="auto", score=score)
        after = model.state_dict()
        assert all(torch.equal(before[name], after[name]) for name in before)
        assert config == model.config.to_dict()
        assert (model.transformer.wte.num_embeddings, model.lm_head.out_features) == (
            len(before["lm_head.bias"]),
        ) * 2


def test_the_face_takes_text(old, new) -> None:
    """`text=` prices in bits per byte; without it, auto says what it needs."""
    model, tokenizer = vs.transfer(_model(old), old=old, new=new, init="auto", text=TEXT)
    assert tokenizer.row_count <= model.get_input_embeddings().weight.shape[0]
    with pytest.raises(ValueError, match="--text SPEC"):
        vs.transfer(_model(old), old=old, new=new, init="auto")
    with pytest.raises(ValueError, match="--donor MODEL"):
        vs.transfer(_model(old), old=old, new=new, init="omp")
    with pytest.raises(ValueError, match="--corpus SPEC"):
        vs.transfer(_model(old), old=old, new=new, init="focus")


@pytest.mark.parametrize("init", [*INITS, "auto"])
def test_a_folder_gets_the_rows_of_the_model_in_memory(old, new, init, tmp_path) -> None:
    """Streamed or in memory, head and input by their own maps, the choice of auto included."""
    model = _model(old)
    path = old.save_pretrained(tmp_path / "model")
    model.save_pretrained(path)
    score = bits_per_byte(TEXT) if init == "auto" else None
    options = TransferOptions(init=init, score=score, **_options(new, init))
    report = transfer_folder(path, new, tmp_path / "out", options)
    _, own = transfer_model(model, old=old, new=new, options=options)
    assert (own.init, own.tried) == (report.init, pytest.approx(report.tried))
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").state_dict()
    assert all(torch.equal(tensor, loaded[name]) for name, tensor in model.state_dict().items())


def test_overrides_reach_the_rows(old, new, tmp_path) -> None:
    """From a file, through the face, into every table; the report counts them."""
    file = tmp_path / "overrides.toml"
    file.write_text('b = "a"\nc = ["a", "b"]\n', encoding="utf-8")
    model = _model(old)
    before = _tensors(model)
    tokenizer, report = transfer_model(
        model, old=old, new=new, options=TransferOptions(overrides=file)
    )
    assert 2 == report.n_overridden
    a, b = (old.model.vocab[text] for text in "ab")
    for name in ("transformer.wte.weight", "lm_head.weight", "lm_head.bias"):
        after = model.state_dict()[name]
        assert torch.equal(before[name][a], after[tokenizer.model.vocab["b"]])
        mean = (before[name][a] + before[name][b]) / 2
        torch.testing.assert_close(mean, after[tokenizer.model.vocab["c"]])


@pytest.mark.parametrize("tied", [False, True])
def test_a_donor_is_read_from_its_folder(new, tied, tmp_path) -> None:
    """The same rows as of the model in memory; a tied donor has no head of its own."""
    model = _model(new, tied=tied)
    model.save_pretrained(new.save_pretrained(tmp_path / "donor"))
    loaded, own = Donor.load(tmp_path / "donor"), Donor.of_model(model, new)
    ids = torch.arange(len(own.embeddings))
    assert torch.equal(own.embeddings, loaded.embeddings.index_select(0, ids))
    assert (own.head is None) == (loaded.head is None) == tied
    assert tied or torch.equal(own.head, loaded.head.index_select(0, ids))


def test_rows_from_a_donor_folder(old, new, tmp_path) -> None:
    """`donor=` takes a path; its rows lie in the file and are the same."""
    donor = _model(new, seed=9)
    donor.save_pretrained(new.save_pretrained(tmp_path / "donor"))
    made = []
    for source in (tmp_path / "donor", Donor.of_model(donor, new)):
        model, _ = vs.transfer(_model(old), old=old, new=new, init="omp", donor=source)
        made.append(model.state_dict())
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
