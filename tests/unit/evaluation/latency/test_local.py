"""A local model's answers, held against a plain greedy loop, and the memory that it took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import small_models
from vocabshift.errors import VocabMismatchError
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

END = 258
PROMPT = "the cat यह"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """The 256 bytes, two merges and one end token, as transformers has it."""
    vocab = {image: i for i, image in enumerate(byte_level.ALPHABET)} | {"at": 256, "cat": 257}
    pipeline = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return Tokenizer(
        BpeModel(vocab, (("a", "t"), ("c", "at"))),
        pre_tokenizer=pipeline | {"use_regex": False},
        decoder=pipeline | {"use_regex": False},
        added_tokens=(AddedToken("<|end|>", END),),
    ).to_hf()


def make_model(**changes: Any) -> Any:
    """A small Llama; without changes its last row makes the end of text likely."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = {
        "vocab_size": 259,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 64,
        "initializer_range": 0.5,
        "bos_token_id": END,
        "eos_token_id": END,
        "pad_token_id": None,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return LlamaForCausalLM(LlamaConfig(**(settings | changes)))


def greedy(model: Any, ids: list[int], n_new: int) -> list[int]:
    """The most likely tokens but the end, without a cache."""
    import torch

    ids = list(ids)
    for _ in range(n_new):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
        logits[END] = -torch.inf
        ids.append(int(logits.argmax()))
    return ids[-n_new:]


def test_an_answer_is_what_greedy_decoding_gives(tokenizer: Any) -> None:
    from vocabshift.evaluation.latency.local import LocalModel
    from vocabshift.tokenizer.formats.load import as_tokenizer
    from vocabshift.tokenizer.token_bytes import token_bytes

    model = make_model()
    answer = LocalModel(model, tokenizer, max_new_tokens=12).ask(PROMPT)
    ids = tokenizer(PROMPT)["input_ids"]
    bytes_of = token_bytes(as_tokenizer(tokenizer))
    expected = [bytes_of[token_id] for token_id in greedy(model, ids, 12)]
    assert (len(ids), 12) == (answer.input_tokens, answer.output_tokens)
    assert expected[0] == answer.first
    assert b"".join(expected[1:]) == answer.rest
    assert 0 < answer.first_token_seconds < answer.seconds


def test_a_prompt_that_ends_inside_a_superword_is_healed() -> None:
    """The token before the end is generated again: it is no text of the answer."""
    import torch

    from vocabshift.evaluation.latency.local import LocalModel

    words = small_models.joining_tokenizer(("o", "n"), ("Ġ", "on"), ("Ġ", "t"), ("Ġon", "Ġt"))
    hf = words.to_hf()
    model = make_model(vocab_size=words.row_count, bos_token_id=END, eos_token_id=END)
    local = LocalModel(model, hf, max_new_tokens=2)
    given = hf("cat on")["input_ids"]
    n, on_t = len(given), hf.convert_tokens_to_ids("ĠonĠt")
    plain = model.forward

    def forward(*args: Any, **options: Any) -> Any:
        out = plain(*args, **options)
        out.logits[..., hf.convert_tokens_to_ids("c")] = 1e6  # not allowed at first
        out.logits[..., on_t] = 1e5
        return out

    with pytest.MonkeyPatch.context() as patch, torch.inference_mode():
        patch.setattr(model, "forward", forward)
        answer = local.ask("cat on")
        assert (b" t", b"c") == (answer.first, answer.rest)
        assert (n - 1, 2) == (answer.input_tokens, answer.output_tokens)
        assert b"c" == local.ask("cat").first


@pytest.mark.parametrize(
    "own",
    [
        {"do_sample": True, "temperature": 5.0, "repetition_penalty": 9.0},
        {"do_sample": True, "num_return_sequences": 2},
        {"return_dict_in_generate": True, "output_scores": True},
        {"max_time": 1e-4},
        {"stop_strings": ["a", "e"]},
        {"cache_implementation": "offloaded"},
    ],
    ids=lambda own: next(reversed(own)),
)
def test_settings_of_a_model_do_not_count(own: dict[str, Any], tokenizer: Any) -> None:
    from vocabshift.evaluation.latency.local import LocalModel

    model = make_model()
    plain = LocalModel(model, tokenizer, max_new_tokens=12).ask(PROMPT)
    model.generation_config.update(**own)
    answer = LocalModel(model, tokenizer, max_new_tokens=12).ask(PROMPT)
    assert 12 == answer.output_tokens
    assert (plain.first, plain.rest) == (answer.first, answer.rest)


def test_memory_is_weights_and_what_lived_together(tokenizer: Any) -> None:
    """More positions need more, and a model that is twice as wide needs more weights."""
    from vocabshift.evaluation.latency.local import LocalModel

    model = make_model()
    local = LocalModel(model, tokenizer, max_new_tokens=4)
    weights = 4 * sum(parameter.numel() for parameter in model.parameters())
    short, long = local.peak_memory("the"), local.peak_memory("the" * 15)
    cache = 2 * 2 * 42 * 16 * 4  # keys and values, two layers, 42 more positions of 16 floats
    assert weights < short
    assert short + cache < long < short + 30 * cache


def test_the_tally_counts_what_is_alive() -> None:
    import torch

    from vocabshift.evaluation.latency.local import _peak_of_tensors

    def work() -> None:
        for _ in range(3):
            first = torch.zeros(1000)
            second = first + 1
            first.add_(1)
            view = second.view(10, 100)
            del first, second, view

    assert 8000 == _peak_of_tensors(work)


def test_what_cannot_be_timed_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    from vocabshift.evaluation.latency.local import LocalModel, load_local

    with pytest.raises(ValueError, match="64 positions"):
        LocalModel(make_model(), tokenizer, max_new_tokens=60).ask(PROMPT)
    with pytest.raises(ValueError, match="at least 2"):
        LocalModel(make_model(), tokenizer, max_new_tokens=1)
    with pytest.raises(VocabMismatchError, match="259 embedding rows and the model has 200"):
        LocalModel(make_model(vocab_size=200, eos_token_id=0, bos_token_id=0), tokenizer)
    with pytest.raises(ValueError, match="device 'nowhere'"):
        load_local(str(tmp_path), max_new_tokens=4, device="nowhere")
