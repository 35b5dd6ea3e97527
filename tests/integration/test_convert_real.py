"""A real model, SmolLM2-135M-Instruct, converted: weights, answers, tokenizer, chat template."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import vocabshift as vs  # noqa: E402
from vocabshift.tokenizer.formats.load import load_tokenizer  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.slow]

GENERAL = (
    "In 2024, 12345 people came.",
    "  two spaces\tand a tab\n\nnew",
    "don't, I'll; हिन्दी १२३",
)


def test_weights_equal_those_that_transformers_reads(smollm2_gguf: Path, smollm2: Path) -> None:
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        smollm2_gguf.parent, gguf_file=smollm2_gguf.name, dtype=torch.float32
    ).state_dict()
    ours = transformers.AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    assert 134_515_008 == ours.num_parameters()
    assert theirs.keys() == ours.state_dict().keys()
    for key, values in ours.state_dict().items():
        assert torch.equal(theirs[key], values), key


def test_it_answers(smollm2: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2)
    model = transformers.AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32)
    given = tokenizer("The capital of France is", return_tensors="pt")
    answer = model.generate(**given, max_new_tokens=2, do_sample=False)
    new = tokenizer.decode(answer[0, given["input_ids"].shape[1] :])
    assert new.startswith(" Paris"), new


def test_digits_are_single_as_the_file_says(smollm2: Path) -> None:
    """`smollm`: each digit alone, then GPT-2's pattern, by `tokenizers`' own components."""
    from tokenizers import pre_tokenizers

    ours = load_tokenizer(smollm2)
    backend = ours.backend
    split = backend.pre_tokenizer.pre_tokenize_str("in 2024")
    assert ["in", "Ġ", "2", "0", "2", "4"] == [text for text, _ in split]
    got = [backend.encode(text).ids for text in GENERAL]
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    assert [backend.encode(text).ids for text in GENERAL] == got
    fast = transformers.AutoTokenizer.from_pretrained(smollm2)
    assert [fast.encode(text) for text in GENERAL] == got  # no BOS: the file says so


def test_special_tokens_and_chat_template(smollm2: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2)
    roles = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert (1, 2, 2, 0) == (*roles, tokenizer.unk_token_id)
    assert 17 == len(load_tokenizer(smollm2).added_tokens)
    chat = [{"role": "user", "content": "Hi"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert 1 == tokenizer.encode(text)[0]


def test_the_file_loses_tokens_and_nothing_else(smollm2_gguf: Path, tmp_path: Path) -> None:
    """Its table is Q8_0, and most of its matrices are Q4_1: none is written anew."""
    gguf = pytest.importorskip("gguf")
    own = load_tokenizer(smollm2_gguf)
    smaller = own.without(range(own.row_count - 9000, own.row_count))
    result = vs.transfer_gguf(smollm2_gguf, smaller, tmp_path / "small.gguf")
    assert {"token_embd.weight": "Q8_0"} == result["tables"]
    assert 9000 * 576 // 32 * 34 <= result["bytes_before"] - result["bytes_after"] < 6_500_000
    before = gguf.GGUFReader(smollm2_gguf).tensors
    after = gguf.GGUFReader(tmp_path / "small.gguf").tensors
    for old, new in zip(before, after, strict=True):
        is_table = old.name == "token_embd.weight"
        expected = old.data[: smaller.row_count] if is_table else old.data
        assert (expected == new.data).all(), old.name
    again = load_tokenizer(tmp_path / "small.gguf").backend
    assert [again.encode(text).ids for text in GENERAL] == [
        smaller.backend.encode(text).ids for text in GENERAL
    ]
