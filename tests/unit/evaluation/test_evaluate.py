"""evaluate: rows from tokenizers and texts."""

from __future__ import annotations

import pytest

from vocabshift.bpe.model import BpeModel
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.errors import CorpusError, InvalidTokenizerError
from vocabshift.evaluation import evaluate as module
from vocabshift.evaluation.evaluate import evaluate
from vocabshift.results import Result


def test_rows(make_tokenizer) -> None:
    """Rows come by metric, language and subject, with the number of lines."""
    small, large = make_tokenizer(name="small"), make_tokenizer([("a", "b")], name="large")
    results = evaluate([small, large], {"x": ["ab ab", "ab"], "y": ["b"]})
    assert [
        ("fertility", "x", "small"),
        ("fertility", "x", "large"),
        ("fertility", "y", "small"),
        ("fertility", "y", "large"),
    ] == [(row.metric, row.language, row.subject) for row in results[:4]]
    assert 7 / 3 == results.value("small", "x", "fertility")
    assert 4 / 3 == results.value("large", "x", "fertility")
    assert Result("small", "y", "bytes_per_token", 1.0, 1) == results[-2]
    assert {("x", 2), ("y", 1)} == {(row.language, row.n) for row in results}


def test_a_base_adds_the_normalized_length(make_tokenizer) -> None:
    """With a base and no metrics named, sequence lengths are compared with it as well."""
    base, ours = make_tokenizer(name="base"), make_tokenizer([("a", "b")], name="ours")
    results = evaluate(ours, {"x": ["abab"]}, base=base)
    assert ["fertility", "bytes_per_token", "normalized_sequence_length"] == results.distinct(
        "metric"
    )
    assert 0.5 == results.value("ours", "x", "normalized_sequence_length")
    assert ["ours"] == results.distinct("subject")


def test_metrics_are_checked_first(make_tokenizer) -> None:
    """An unknown metric and a missing base are refused before any text is read."""
    unread = {"x": iter(["a"])}
    with pytest.raises(ValueError, match="known are"):
        evaluate(make_tokenizer(), unread, ("fertility", "speed"))
    with pytest.raises(ValueError, match="give one as base"):
        evaluate(make_tokenizer(), unread, metrics="normalized_sequence_length")
    assert ["a"] == list(unread["x"])


def test_text_is_tokenized_once(make_tokenizer, monkeypatch) -> None:
    """More metrics do not mean more tokenization."""
    calls = []
    encode = module.count_texts

    def counting(tokenizers, texts, threads):
        calls.append(len(tokenizers))
        return encode(tokenizers, texts, threads=threads)

    monkeypatch.setattr(module, "count_texts", counting)
    metrics = ("fertility", "bytes_per_token", "sequence_reduction", "single_character_rate")
    assert 4 == len(evaluate(make_tokenizer(), {"x": ["a b"]}, metrics))
    assert [1] == calls


def test_an_empty_language_is_refused(make_tokenizer) -> None:
    """A language without text has no figures."""
    with pytest.raises(CorpusError, match="no line of text for y"):
        evaluate(make_tokenizer(), {"x": ["a"], "y": []})


def test_a_tokenizer_that_drops_everything_is_refused() -> None:
    """Without a single token there is no ratio, and the subject and language are named."""
    only_a = Tokenizer(BpeModel({"a": 0}, ()), name="only_a")
    assert 2.0 == evaluate(only_a, {"x": ["aabb"]}).value("only_a", "x", "bytes_per_token")
    with pytest.raises(InvalidTokenizerError, match="only_a gives no token for any line of y"):
        evaluate(only_a, {"x": ["a"], "y": ["b"]})


def test_threads_change_nothing(make_tokenizer) -> None:
    """One thread and two give the same rows, intervals included."""
    tokenizer = make_tokenizer([("a", "b")])
    texts = {"x": ["ab " * n + "c" for n in range(1, 200)]}
    assert evaluate(tokenizer, texts, threads=1) == evaluate(tokenizer, texts, threads=2)


FERTILITY = {  # side by side: published table of vendor fertilities on the same lines
    "llama3": {"hi": 2.68, "ta": 12.21, "en": 1.23, "mni_Mtei": 17.58, "ur": 3.02},
    "qwen25": {"hi": 4.78, "ta": 9.95, "en": 1.25, "mni_Mtei": 17.61, "ur": 3.15},
    "mistral7b-v1": {"hi": 5.35, "ta": 10.36, "en": 1.36, "mni_Mtei": 18.58, "ur": 4.66},
}


@pytest.mark.shared
@pytest.mark.parametrize("name", FERTILITY)
def test_vendor_fertilities(shared_data, name: str) -> None:
    """The fertilities of vendor tokenizers are those that were measured independently."""
    eval_folder = shared_data / "eval" / "sib200-flores"
    expected = FERTILITY[name]
    texts = {
        language: (eval_folder / f"{language}.txt").read_text(encoding="utf-8").split("\n")
        for language in expected
    }
    results = evaluate(shared_data / "tokenizers-hf" / name, texts, metrics="fertility")
    assert {name} == set(results.distinct("subject"))
    assert expected == {row.language: round(row.value, 2) for row in results}
    assert all(row.n == 1004 for row in results)
