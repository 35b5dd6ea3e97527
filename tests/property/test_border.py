"""Scored answers, on any tokenizer: whole, never empty, and of the slow definition's value."""

from __future__ import annotations

import functools
from typing import Any

import pytest

pytest.importorskip("lm_eval")

import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

import vocabshift as vs
from reference import border as reference
from strategies import examples
from vocabshift.evaluation.harness.answers import Answers
from vocabshift.evaluation.harness.border import BorderLM, is_touched
from vocabshift.evaluation.harness.run import _accelerate_as_it_was

TEXTS = [
    "the cat sat on the mat and the dog sat on the cat",
    "one of the most: A\nAnswer: A\nAnswer: B",
    "on the other day, on the mat: one of the dogs",
    "यह एक दिन है और यह एक बिल्ली है",
] * 6
END = "</s>"
words = st.sampled_from(
    [
        *("the", "cat", "sat", "on", "the mat", "one", "of the", "most", "A", "B", "Answer:", ":"),
        *("यह", "एक दिन", "है", "x", "é", "—", "7"),
    ]
)
spaces = st.sampled_from([" ", " ", " ", "", "\n", "  "])
texts = st.lists(st.tuples(words, spaces), min_size=1, max_size=6).map(
    lambda parts: "".join(word + space for word, space in parts)
)
contexts = texts.map(lambda text: "x" + text)  # lm-eval refuses one of spaces alone
answers = st.lists(
    st.tuples(st.sampled_from([" ", " ", ""]), texts).map("".join).map(str.rstrip),
    min_size=1,
    max_size=4,
).map(lambda found: list(dict.fromkeys(text for text in found if text)))


def _of(backend: Backend) -> Any:
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token=END, clean_up_tokenization_spaces=False
    )


def _metaspace(backend: Backend, trainer: Any) -> Any:
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.train_from_iterator(TEXTS, trainer)
    return _of(backend)


def _byte_level(trainer: Any) -> Any:
    hf = trainer.train(vs.Corpus.from_texts(TEXTS)).to_hf()
    hf.add_special_tokens({"eos_token": END})
    return hf


@functools.cache
def _tokenizers() -> dict[str, Any]:
    alphabet = sorted({*"".join(TEXTS), *"xé—7"})
    return {
        "bpe": _byte_level(vs.BpeTrainer(vocab_size=300)),
        "superwords": _byte_level(vs.SuperwordTrainer(vocab_size=380, transition=0.8)),
        "unigram": _metaspace(
            Backend(models.Unigram()),
            trainers.UnigramTrainer(
                vocab_size=90,
                initial_alphabet=alphabet,
                unk_token="<unk>",
                special_tokens=[END, "<unk>"],
                show_progress=False,
            ),
        ),
        "metaspace": _metaspace(
            Backend(models.BPE(unk_token="<unk>")),
            trainers.BpeTrainer(
                vocab_size=120,
                initial_alphabet=alphabet,
                special_tokens=[END, "<unk>"],
                show_progress=False,
            ),
        ),
    }


@functools.cache
def _model(name: str, border: str, batch_size: int) -> Any:
    """lm-eval around a small random Llama, whose every token depends on all ids before."""
    tokenizer = _tokenizers()[name]
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=512,
        initializer_range=0.6,
    )
    with torch.random.fork_rng(devices=[]), _accelerate_as_it_was():
        torch.manual_seed(11)
        lm = BorderLM(
            border=border,
            pretrained=transformers.LlamaForCausalLM(config).eval(),
            tokenizer=tokenizer,
            backend="causal",
            batch_size=batch_size,
        )

    @functools.lru_cache(maxsize=4096)
    def after(before: tuple[int, ...]) -> Any:
        with torch.no_grad():
            return lm.model(torch.tensor([before])).logits[0, -1].double().log_softmax(-1)

    lm.log_p = lambda before, token_id: float(after(tuple(before))[token_id])
    return lm


def _ask(lm: Any, context: str, asked: list[str]) -> list[float]:
    lm.reset_counts()
    requests = [
        Instance("loglikelihood", {}, (context, answer), i) for i, answer in enumerate(asked)
    ]
    return [value for value, _ in lm.loglikelihood(requests, disable_tqdm=True)]


@pytest.mark.parametrize("name", ["bpe", "superwords", "unigram", "metaspace"])
@pytest.mark.parametrize("batch_size", [1, 3])
@given(context=contexts, asked=answers)
@examples(25)
def test_healed_values_are_those_of_the_slow_definition(
    name: str, batch_size: int, context: str, asked: list[str]
) -> None:
    lm = _model(name, "heal", batch_size)
    found = _ask(lm, context, asked)
    expected = reference.healed(lm.tok_encode, lm.log_p, lm.prefix_token_id, context, asked)
    assert found == pytest.approx(expected, abs=1e-3)
    touched = [reference.is_touched(lm.tok_encode, context, answer) for answer in asked]
    assert sum(touched) == lm.counts.touched
    assert len(asked) == lm.counts.requests


@pytest.mark.parametrize("name", ["bpe", "superwords", "unigram", "metaspace"])
@pytest.mark.parametrize("border", ["heal", "split"])
@given(context=contexts, asked=answers)
@examples(25)
def test_no_answer_is_scored_empty_or_in_part(
    name: str, border: str, context: str, asked: list[str]
) -> None:
    """What the model is given spells the context's text or a beginning; both spell all of it."""
    lm = _model(name, border, 1)
    priced: list[Any] = []
    lm._answers.log_probabilities = lambda parts, *options: (
        priced.extend(parts),
        Answers.log_probabilities(lm._answers, parts, *options),
    )[1]
    try:
        _ask(lm, context, asked)
    finally:
        del lm._answers.log_probabilities
    bare = context.rstrip()
    start = lm.tok_decode(lm.tok_encode(bare), skip_special_tokens=False)
    for given_ids, scored in priced:
        before = [] if list(given_ids) == [lm.prefix_token_id] else list(given_ids)
        assert scored
        assert start.startswith(lm.tok_decode(before, skip_special_tokens=False).rstrip("\ufffd"))
    spelt = {
        lm.tok_decode([i for i in (*before, *scored) if i != lm.prefix_token_id])
        for before, scored in priced
    }
    for answer in asked:
        whole = lm.tok_encode(context + answer)
        if is_touched(lm.tok_encode(bare), whole):
            assert lm.tok_decode(whole) in spelt


def test_the_tokenizers_differ_in_what_they_join() -> None:
    """Else these tests would show nothing: plain BPE never joins at a space, superwords do."""
    joined = {}
    for name in _tokenizers():
        lm = _model(name, "heal", 1)
        _ask(lm, "x sat on", [" the mat", " the"])
        joined[name] = lm.counts.touched
    assert joined == {"bpe": 0, "superwords": 2, "unigram": 0, "metaspace": 0}
    lm = _model("metaspace", "heal", 1)
    _ask(lm, "x th", ["e", "at"])
    assert lm.counts.touched > 0  # inside a word
