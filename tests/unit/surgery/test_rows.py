"""Rows by id, padding behind and between, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.models import tables  # noqa: E402
from vocabshift.models.tables import (  # noqa: E402
    Matrices,
    Table,
    find_matrices,
)
from vocabshift.surgery import initialize  # noqa: E402
from vocabshift.surgery.row_sources import RowSources  # noqa: E402
from vocabshift.surgery.rows import (  # noqa: E402
    InitContext,
    check_rows,
    move_rows,
    new_matrix,
    padded_rows,
)


def _map(copied: dict[int, int], made: dict[int, list[int]], n_old: int) -> RowSources:
    """From {new id: old id} and {new id: pieces}."""
    offsets = np.cumsum([0, *map(len, made.values())])
    return RowSources(
        copied_from=np.array(list(copied.values()), dtype=np.int64),
        copied_to=np.array(list(copied), dtype=np.int64),
        made=np.array(list(made), dtype=np.int64),
        pieces=np.array([piece for ids in made.values() for piece in ids], dtype=np.int64),
        offsets=offsets.astype(np.int64),
        old_ids=np.arange(n_old),
    )


@pytest.fixture
def make_llama():
    def make(rows: int = 6, **changes):
        torch.manual_seed(3)
        settings = {
            "vocab_size": rows,
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "bos_token_id": None,
            "eos_token_id": None,
        }
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**(settings | changes)))

    return make


def test_rows_by_id(monkeypatch) -> None:
    """Copied, made and empty rows may come in any order of ids, and in blocks of any size."""
    monkeypatch.setattr(tables, "BLOCK_ELEMENTS", 4)
    old = torch.arange(10.0).reshape(5, 2).to(torch.bfloat16)  # row 4 is padding
    sources = _map({3: 0, 0: 3, 6: 1}, {5: [0, 1, 1], 2: [2]}, 4)
    new = new_matrix(old, sources, initialize.fvt, 8, 0)
    assert torch.bfloat16 == new.dtype
    assert torch.equal(old[[3, 0, 1]], new[[0, 3, 6]])
    mean = ((old[0].float() + 2 * old[1].float()) / 3).to(torch.bfloat16)
    assert torch.equal(torch.stack([mean, old[2]]), new[[5, 2]])
    assert torch.equal(old[[4, 4, 4]], new[[1, 4, 7]])  # padding is like the old padding


def test_padding_that_stays_padding_keeps_its_rows() -> None:
    """Whoever has written there finds it again, and the logits of a kept token stay."""
    old = torch.arange(14.0).reshape(7, 2)
    sources = replace(_map({0: 0}, {4: [0]}, 0), old_ids=np.array([0, 2, 3]))
    new = new_matrix(old, sources, initialize.fvt, 9, 0)
    assert torch.equal(old[[1, 5, 6]], new[[1, 5, 6]])  # a hole, and the end
    mean = old[[1, 4, 5, 6]].mean(0)  # where a token was, and where no row was
    assert torch.equal(mean.expand(4, -1), new[[2, 3, 7, 8]])
    smaller = new_matrix(old, sources, initialize.fvt, 6, 0)
    assert torch.equal(new[:6], smaller)


def test_padding_without_an_example_is_the_mean() -> None:
    """A row of zeros in the head would stand for a logit of 0, which may win."""
    old = torch.tensor([[1.0, -4.0], [3.0, -2.0]])
    new = new_matrix(old, _map({0: 0, 1: 1}, {}, 2), initialize.fvt, 3, 0)
    assert [2.0, -3.0] == new[2].tolist()


@pytest.mark.parametrize(
    ("rows", "old_rows", "new_rows", "multiple", "expected"),
    [
        (300, 300, 310, None, 310),  # was not padded
        (320, 300, 330, None, 384),  # was padded to 64
        (151_936, 151_665, 151_700, None, 151_808),  # to 128, not to more
        (152_064, 151_665, 151_700, None, 151_808),  # a multiple of 512 that need not be one
        (301, 300, 310, None, 310),  # an odd number is no alignment
        (300, 300, 310, 64, 320),
        (320, 300, 320, 64, 320),
        (320, 300, 310, 1, 310),
    ],
)
def test_padded_rows(make_llama, rows, old_rows, new_rows, multiple, expected) -> None:
    table = Table(("e",), "input", torch.zeros(rows, 1))
    matrices = Matrices((table,), tied=False)
    assert expected == padded_rows(matrices, old_rows, new_rows, multiple)


@pytest.mark.parametrize("tied", [True, False])
def test_the_tensors_decide_what_is_tied(make_llama, tied) -> None:
    """Both stay one tensor, or two, and the modules say their new size."""
    model = make_llama(tie_word_embeddings=tied)
    matrices = find_matrices(model)
    assert tied == matrices.tied
    sources = _map({i: i for i in range(6)}, {6: [0, 1]}, 6)
    move_rows(model, matrices, InitContext("fvt", 0, sources, sources, initialize.fvt), 7)
    embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
    assert (7, 7) == (embeddings.num_embeddings, head.out_features)
    assert tied == (embeddings.weight.data_ptr() == head.weight.data_ptr())
    assert (1, 4, 7) == tuple(model(torch.tensor([[0, 6, 3, 1]])).logits.shape)


def test_too_few_rows(make_llama) -> None:
    """Both numbers are said."""
    matrices = find_matrices(make_llama(6))
    with pytest.raises(VocabMismatchError, match="6 rows, but its tokenizer needs 9"):
        check_rows(matrices, _map({}, {}, 6), 9)


@pytest.mark.parametrize("padding", [[[3.0, -2.0]] * 2, [[torch.nan, 0.0]] * 2])
def test_padding_never_repeats_a_real_row(padding: list[list[float]]) -> None:
    """Some programs pad with the last token's row, and then that token wins many times over."""
    old = torch.tensor([[1.0, -4.0], [3.0, -2.0], *padding])
    new = new_matrix(old, _map({0: 0, 1: 1}, {2: [0, 0]}, 2), initialize.fvt, 64, 0)
    assert [1.0, -4.0] == new[2].tolist()  # of a token: it may be equal to another's
    assert not any(torch.equal(row, real) for row in new[3:] for real in new[:3])
    assert torch.equal(torch.tensor([[2.0, -3.0]] * 61), new[3:])


def test_a_bias_of_padding_may_equal_a_token_s() -> None:
    old = torch.tensor([[0.0], [4.0], [0.0]])
    new = new_matrix(old, _map({0: 0, 1: 1}, {}, 2), initialize.fvt, 4, 0)
    assert [0.0, 4.0, 0.0, 0.0] == new[:, 0].tolist()


@pytest.mark.parametrize(
    ("rows", "tokens", "is_padding"),
    [
        (151_936, 151_665, True),
        (102_400, 100_015, True),
        (320, 283, True),
        (320, 191, False),
        (128_256, 32_000, False),
    ],
)
def test_more_rows_than_padding_explains(rows, tokens, is_padding) -> None:
    """Qwen2.5, DeepSeek-V2 and 128 rows of alignment are padding; Llama-2's tokens in Llama-3."""
    matrices = Matrices((Table(("embed",), "input", torch.zeros(rows, 1)),), tied=True)
    if is_padding:
        check_rows(matrices, _map({}, {}, tokens), tokens)
        return
    with pytest.raises(VocabMismatchError, match=f"{rows} rows, but its tokenizer has .* {tokens}"):
        check_rows(matrices, _map({}, {}, tokens), tokens)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_rows_that_are_not_finite(make_llama, bad) -> None:
    """A mean would spread them; in padding they are nobody's."""
    model = make_llama(6)
    matrices = find_matrices(model)
    with torch.no_grad():
        model.lm_head.weight[5, 1] = bad
    check_rows(matrices, _map({}, {}, 5), 5)
    with pytest.raises(VocabMismatchError, match="row 5 of the output head"):
        check_rows(matrices, _map({}, {}, 6), 6)


def test_quantized_models_in_memory(make_llama) -> None:
    """Their plain tables are found; those that are quantized are named, however they hide it."""

    class Packed(torch.Tensor):
        """Says that it is float32, as torchao's tensors do."""

    def quantized(**head):
        model = make_llama()
        model.config.quantization_config = {"quant_method": "gptq"}
        for name, value in head.items():
            if name in model.lm_head._parameters:
                del model.lm_head._parameters[name]
            if value is not None:
                model.lm_head.register_buffer(name, value)
        return model

    assert [6, 6] == [table.rows for table in find_matrices(quantized()).tables]
    for head, said in (
        ({"weight": torch.zeros(6, 8, dtype=torch.int8)}, "weight is torch.int8"),
        ({"weight": torch.zeros(6, 8).to(torch.float8_e4m3fn)}, "weight is torch.float8_e4m3fn"),
        ({"weight": None, "qweight": torch.zeros(1, 6).int()}, "qweight is torch.int32"),
        ({"weight_scale": torch.ones(6, 1)}, "weight_scale is torch.float32"),
        ({"weight": torch.zeros(6, 8).as_subclass(Packed)}, "weight is Packed"),
    ):
        message = rf"lm_head\.{said}: this table of LlamaForCausalLM is quantized \(gptq\)"
        with pytest.raises(ValueError, match=message):
            find_matrices(quantized(**head))


def test_models_that_are_refused(make_llama) -> None:
    """Without weights, with integers for every token, or no transformers model at all."""
    with torch.device("meta"):
        empty = make_llama()
    with pytest.raises(ValueError, match="on meta; load the model whole"):
        find_matrices(empty)

    class Routed(transformers.LlamaForCausalLM):
        """Like DeepSeek-V4, whose first layers choose experts by the token."""

        def __init__(self, config):
            super().__init__(config)
            self.register_buffer("experts", torch.zeros(config.vocab_size, 2, dtype=torch.long))

    with pytest.raises(ValueError, match="Routed has experts, which holds integers for every"):
        find_matrices(Routed(make_llama().config))
    with pytest.raises(TypeError, match="Linear is no transformers model"):
        find_matrices(torch.nn.Linear(1, 1))
