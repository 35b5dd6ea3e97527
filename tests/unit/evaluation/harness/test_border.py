"""Answers whose first token spans the border to their context, on tokenizers made for it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("lm_eval")

import torch
import transformers
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM

import small_models
from vocabshift.evaluation.harness import answers
from vocabshift.evaluation.harness.border import BorderLM, is_touched, shared_length
from vocabshift.evaluation.harness.run import _accelerate_as_it_was
from vocabshift.models.token_loss import token_choices

QUESTION = "Who sat?\nA. the cat\nB. the day\nAnswer:"
LETTERS = (" A", " B", " C", " D")


def make_tokenizer(*merges: tuple[str, str]) -> Any:
    return small_models.joining_tokenizer(*merges).to_hf()


PLAIN = make_tokenizer(("Ġ", "A"), ("t", "h"), ("th", "e"))
ONE_LETTER = make_tokenizer(*(("Ġ", letter) for letter in "ABCD"), (":", "ĠA"))  # a token ": A"
FOUR_LETTERS = make_tokenizer(*((":", "Ġ"), *((":Ġ", letter) for letter in "ABCD")))
WORDS = make_tokenizer(
    *(("o", "n"), ("Ġ", "on"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġon", "Ġthe")),
    *(("m", "a"), ("ma", "t"), ("Ġ", "mat")),
)


def make_lm(kind: Any, tokenizer: Any, batch_size: int = 1, **options: Any) -> Any:
    """A random Llama under lm-eval; the same for the same number of tokens."""
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=128,
        initializer_range=0.6,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]), _accelerate_as_it_was():
        torch.manual_seed(7)
        model = transformers.LlamaForCausalLM(config).eval()
        return kind(
            pretrained=model,
            tokenizer=tokenizer,
            backend="causal",
            batch_size=batch_size,
            **options,
        )


def asked(pairs: list[tuple[Any, ...]], kind: str = "loglikelihood") -> list[Instance]:
    return [Instance(kind, {}, pair, i, task_name="t") for i, pair in enumerate(pairs)]


def values(lm: Any, pairs: list[tuple[Any, ...]]) -> list[float]:
    return [value for value, _ in lm.loglikelihood(asked(pairs), disable_tqdm=True)]


def log_p(lm: Any, given: list[int], scored: list[int]) -> float:
    """By transformers alone."""
    with torch.no_grad():
        logits = lm.model(torch.tensor([[*given, *scored]])).logits[0].log_softmax(-1)
    return sum(float(logits[len(given) + i - 1, token]) for i, token in enumerate(scored))


def test_a_learned_token_at_the_border_gave_an_answer_for_nothing() -> None:
    """lm-eval's slice of " A" is empty after "Answer:", and nothing costs 0.0."""
    pairs = [(QUESTION, letter) for letter in LETTERS]
    assert 0.0 == values(make_lm(HFLM, ONE_LETTER), pairs)[0]
    lost = make_lm(BorderLM, ONE_LETTER, border="lm-eval")
    assert 0.0 == values(lost, pairs)[0]
    assert (4, 1) == (lost.counts.requests, lost.counts.touched)

    given = ONE_LETTER.encode(QUESTION)
    whole = ONE_LETTER.encode(QUESTION + " A")
    assert len(given) == len(whole)
    healed = make_lm(BorderLM, ONE_LETTER, border="heal")
    split = make_lm(BorderLM, ONE_LETTER, border="split")
    before, last = given[:-1], given[-1:]
    expected = log_p(healed, before, whole[-1:]) - log_p(healed, before, last)
    assert values(healed, pairs)[0] == pytest.approx(expected, abs=1e-5)
    apart = log_p(split, given, ONE_LETTER.encode(" A"))
    assert values(split, pairs)[0] == pytest.approx(apart, abs=1e-5)
    for lm in (healed, split):
        assert (4, 1) == (lm.counts.requests, lm.counts.touched)


@pytest.mark.parametrize("border", ["heal", "split", "lm-eval"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_untouched_requests_keep_lm_evals_value(border: str, batch_size: int) -> None:
    """With the border "lm-eval" to the last digit; else up to rounding, as answers share passes."""
    pairs = [
        (f"{'word ' * n}{QUESTION}", answer)
        for n in range(4)
        for answer in (*LETTERS, " the cat", "the day")
    ]
    for tokenizer, n_touched in ((PLAIN, 0), (ONE_LETTER, 4)):
        theirs = values(make_lm(HFLM, tokenizer, batch_size), pairs)
        lm = make_lm(BorderLM, tokenizer, batch_size, border=border)
        ours = values(lm, pairs)
        assert n_touched == lm.counts.touched
        for (context, answer), own, other in zip(pairs, ours, theirs, strict=True):
            whole = tokenizer.encode(context + answer)
            if border == "lm-eval" or not is_touched(tokenizer.encode(context), whole):
                assert own == (other if border == "lm-eval" else pytest.approx(other, abs=1e-4))
            else:
                assert 0.0 == other
                assert own != 0.0


@pytest.mark.parametrize("border", ["heal", "split", "lm-eval"])
def test_a_context_of_white_space_alone(border: str) -> None:
    """It belongs to the answer, and without BOS nothing is left before: as of an empty context."""
    pairs = [("\n", " A"), (" ", "B"), (QUESTION, " the cat"), (QUESTION, " the day")]
    found = values(make_lm(BorderLM, PLAIN, 4, border=border), pairs)
    lm = make_lm(HFLM, PLAIN, 4)
    expected = values(lm, [("", "\n A"), ("", " B"), *pairs[2:]])
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("batch_size", [1, 8])
def test_all_answers_are_scored_where_lm_eval_refuses(batch_size: int) -> None:
    """Every letter is in a token with the colon: lm-eval has nothing left to score."""
    pairs = [(QUESTION, letter) for letter in LETTERS]
    with pytest.raises(AssertionError):
        values(make_lm(HFLM, FOUR_LETTERS, batch_size), pairs)
    lm = make_lm(BorderLM, FOUR_LETTERS, batch_size)
    found = values(lm, pairs)
    assert (4, 4) == (lm.counts.requests, lm.counts.touched)
    given = FOUR_LETTERS.encode(QUESTION)
    for letter, value in zip(LETTERS, found, strict=True):
        whole = FOUR_LETTERS.encode(QUESTION + letter)
        expected = log_p(lm, given[:-1], whole[-1:]) - log_p(lm, given[:-1], given[-1:])
        assert value == pytest.approx(expected, abs=1e-5)
    assert len(set(found)) == 4


def test_one_pass_of_the_model_serves_all_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The context's end and four answers after the same ids."""
    lm = make_lm(BorderLM, FOUR_LETTERS)
    shapes: list[tuple[int, ...]] = []

    def choices(model: Any, ids: Any, *args: Any, **inputs: Any) -> Any:
        shapes.append(tuple(ids.shape))
        return token_choices(model, ids, *args, **inputs)

    monkeypatch.setattr(answers, "token_choices", choices)
    values(lm, [(QUESTION, letter) for letter in LETTERS])
    assert [(1, len(FOUR_LETTERS.encode(QUESTION)) - 1)] == shapes


def test_logits_are_not_shared_by_ids_that_begin_at_different_places() -> None:
    """After "x on " two questions have the same logits, of which one scores three and one the last;
    lm-eval's cache would give both the first."""
    lm = make_lm(BorderLM, WORDS)
    pairs = [("x on th", "e"), ("x on t", "h")]
    for (context, answer), value in zip(pairs, values(lm, pairs), strict=True):
        given, whole = WORDS.encode(context), WORDS.encode(context + answer)
        n = shared_length([given, whole])
        expected = log_p(lm, given[:n], whole[n:]) - log_p(lm, given[:n], given[n:])
        assert value == pytest.approx(expected, abs=1e-5)


def test_the_request_cache_gets_the_value_of_the_rule() -> None:
    """Once and whole: never lm-eval's slice."""
    lm = make_lm(BorderLM, ONE_LETTER, 4)
    kept: dict[Any, list[Any]] = {}

    class Hook:
        def add_partial(self, _: str, request: Any, answer: Any) -> None:
            kept.setdefault(tuple(request), []).append(answer)

    lm.cache_hook = Hook()
    pairs = [(QUESTION, letter) for letter in LETTERS]
    found = lm.loglikelihood(asked(pairs), disable_tqdm=True)
    assert {pair: [value] for pair, value in zip(pairs, found, strict=True)} == kept


def test_whole_texts_have_no_border() -> None:
    """Rolling log likelihood is lm-eval's, up to rounding."""
    requests = asked([(QUESTION + " A",), ("the cat" * 60,)], "loglikelihood_rolling")
    theirs = make_lm(HFLM, ONE_LETTER).loglikelihood_rolling(requests, disable_tqdm=True)
    lm = make_lm(BorderLM, ONE_LETTER)
    ours = lm.loglikelihood_rolling(requests, disable_tqdm=True)
    assert theirs == pytest.approx(ours, rel=1e-6)
    assert 0 == lm.counts.touched


def test_a_context_that_does_not_fit_is_cut_alike_for_both_terms(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """127 ids and those of the answer are all that 128 positions take."""
    context = "word " * 60 + QUESTION
    lm = make_lm(BorderLM, ONE_LETTER)
    with caplog.at_level("WARNING", logger="lm_eval"):
        (found,) = values(lm, [(context, " A")])
    assert "Truncating" in caplog.text
    before = ONE_LETTER.encode(context)[:-1][-128:]
    whole, colon = ONE_LETTER.encode(": A"), ONE_LETTER.encode(":")
    assert found == pytest.approx(log_p(lm, before, whole) - log_p(lm, before, colon), abs=1e-5)


def test_the_shared_boundary_leaves_something_of_each() -> None:
    assert 2 == shared_length([[1, 2, 3], [1, 2, 4, 5]])
    assert 1 == shared_length([[1, 2], [1, 2, 4, 5]])
    assert 0 == shared_length([[1], [2, 3]])


def generated(lm: Any, prompts: list[str], n_new: int = 6) -> list[str]:
    options = {"until": ["</s>"], "max_gen_toks": n_new, "do_sample": False}
    requests = asked([(prompt, options) for prompt in prompts], "generate_until")
    return list(lm.generate_until(requests, disable_tqdm=True))


def test_prompts_without_a_superword_at_their_end_generate_as_in_lm_eval() -> None:
    prompts = ["the mat is", "sat on", "x"]
    lm = make_lm(BorderLM, PLAIN, 2)
    assert generated(make_lm(HFLM, PLAIN, 2), prompts) == generated(lm, prompts)
    assert (3, 0) == (lm.counts.requests, lm.counts.touched)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_prompt_that_ends_inside_a_superword_may_go_on_in_it(
    batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that loves " on the" writes " the" after "sat on", and keeps to " on" otherwise."""
    lm = make_lm(BorderLM, WORDS, batch_size)
    loved = [WORDS.convert_tokens_to_ids(token) for token in ("ĠonĠthe", "Ġmat", "</s>")]
    onlys = WORDS.convert_tokens_to_ids("Ġthe")
    head = lm.model.forward

    def forward(*args: Any, **options: Any) -> Any:
        out = head(*args, **options)
        out.logits *= 0
        for row, ids in enumerate(options["input_ids"].tolist()):
            follows = dict(pairwise(loved)).get(ids[-1], loved[0])
            out.logits[row, -1, follows] = 9.0
            out.logits[row, -1, onlys] = 20.0 if ids[-1] not in loved else 0.0  # not allowed
        return out

    monkeypatch.setattr(lm.model, "forward", forward)
    found = generated(lm, ["he sat on", "sat on", "x"])
    assert [" the mat", " the mat"] == found[:2]
    assert found[2].startswith(" the")
    assert (3, 2) == (lm.counts.requests, lm.counts.touched)
    lm.border = "split"
    assert generated(lm, ["sat on"])[0].startswith(" the the")
