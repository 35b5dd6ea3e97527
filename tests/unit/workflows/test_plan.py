"""`plan`: every row is what extending or pruning by so many tokens would give."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.text.held_out import hold_out
from vocabshift.workflows.plan import Plan, PlanRow, knee, plan

TEXTS = {
    "en": ["the cat sat on the mat", "the dog ran to the cat", "a cat and a dog sat there"] * 12,
    "hi": ["राम घर गया और सीता घर आई", "हिन्दी में राम घर आया", "सीता की किताब मेज पर है"] * 12,
}


def base() -> vs.Tokenizer:
    """A small tokenizer that knows English."""
    corpus = vs.Corpus.from_texts(TEXTS["en"])
    return vs.BpeTrainer(vocab_size=290, pre_tokenizer="cl100k").train(corpus)


def measured(tokenizer: vs.Tokenizer, corpus: vs.Corpus) -> float:
    """Bytes per token of a corpus."""
    texts = [text for _, text in corpus.texts()]
    ids, _ = vs.Encoder(tokenizer).encode_batch(texts)
    return sum(len(text.encode()) for text in texts) / len(ids)


def test_rows_are_what_extend_and_prune_give() -> None:
    """On the same held-out documents."""
    corpus = vs.Corpus.from_texts(TEXTS)
    training, held_out = hold_out(corpus)
    found = plan(base(), corpus, max_tokens=30)

    for row in found.rows:
        if row.n_tokens > 0:
            tokenizer = vs.extend(
                base(), training, n_tokens=row.n_tokens, pre_tokenizer=row.pre_tokenizer
            )
        elif row.n_tokens < 0:
            tokenizer = vs.prune(base(), training, n_tokens=-row.n_tokens)
        else:
            continue
        assert row.bytes_per_token == pytest.approx(measured(tokenizer, held_out), abs=1e-3)
    kinds = {(row.pre_tokenizer, row.n_tokens > 0) for row in found.rows}
    assert {("kept", True), ("repaired", True), ("kept", False)} <= kinds


def test_tokens_that_the_text_lacks_change_no_figure() -> None:
    """That of all languages together is made of counts: rounded figures would shift it here."""
    longer = vs.extend(base(), vs.Corpus.from_texts(["qqqq zzzz xxxx"] * 9), n_tokens=9)
    english = ["the cat sat"] * 7 + ["a dog"] * 12
    corpus = vs.Corpus.from_texts({"en": english, "hi": ["राम घर"] * 5 + ["the राम"] * 2})
    removed, whole, *_ = plan(longer, corpus, text=corpus, max_tokens=1).rows
    assert (-1, 0) == (removed.n_tokens, whole.n_tokens)
    assert removed.by_language == whole.by_language
    assert removed.bytes_per_token == whole.bytes_per_token


def test_the_repaired_curve_is_suggested_where_it_lifts_a_ceiling() -> None:
    """Hindi has vowel signs, English has none."""
    found = plan(base(), vs.Corpus.from_texts(TEXTS), max_tokens=30)
    assert found.suggested.pre_tokenizer == "repaired"
    english = vs.Corpus.from_texts({"en": TEXTS["en"]})
    text = vs.Corpus.from_texts({"en": ["the zebra sat on a mat"]})
    learned = plan(base(), vs.Corpus.from_texts({"en": ["zebras zigzag"] * 9}), text=text)
    assert learned.suggested.pre_tokenizer == "kept"
    assert found.knee_of("kept") >= 1
    assert english.languages == ["en"]


def test_a_model_prices_every_row(tmp_path: Path) -> None:
    """More rows cost parameters and speed; text per second is what counts."""
    config = {
        "hidden_size": 64,
        "vocab_size": 320,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "tie_word_embeddings": False,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = plan(base(), vs.Corpus.from_texts(TEXTS), max_tokens=40, model=tmp_path)
    by_size = {row.n_tokens: row for row in found.rows if row.pre_tokenizer == "kept"}
    assert by_size[0].extra_parameters == 0
    beyond_padding = base().row_count + 40 - 320
    assert by_size[40].extra_parameters == beyond_padding * 2 * 64 > 0
    smaller = min(by_size)
    assert by_size[smaller].extra_parameters == smaller * 2 * 64
    for row in found.rows:
        assert row.tokens_per_second is not None
        assert row.bytes_per_second == pytest.approx(
            row.tokens_per_second * row.bytes_per_token, rel=1e-3
        )
    assert json.loads(json.dumps(found.to_dict()))["model"]["hidden_size"] == 64


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0], 0), ([1.0, 2.0], 0), ([1.0, 1.0, 1.0], 0), ([0.0, 8.0, 9.0, 9.5, 10.0], 1)],
)
def test_the_knee_stands_farthest_above_the_chord(values: list[float], expected: int) -> None:
    """0 where a curve has no bend."""
    assert knee(values) == expected


def test_a_tokenizer_that_nothing_can_be_taken_from_can_still_grow() -> None:
    """Bytes alone: rows of new tokens, none of removed ones."""
    tokenizer = vs.BpeTrainer(vocab_size=256).train(vs.Corpus.from_texts(["a"]))
    found = plan(tokenizer, vs.Corpus.from_texts(TEXTS), max_tokens=5)
    assert found.n_removable == 0
    assert 0 == min(row.n_tokens for row in found.rows)
    assert 5 == max(row.n_tokens for row in found.rows)


def test_as_many_are_removable_as_can_be_pruned() -> None:
    """One more is refused."""
    corpus, tokenizer = vs.Corpus.from_texts(TEXTS), base()
    n = plan(tokenizer, corpus, max_tokens=5).n_removable
    assert vs.prune(tokenizer, corpus, n_tokens=n).vocab_size == tokenizer.vocab_size - n
    with pytest.raises(ValueError, match="can be"):
        vs.prune(tokenizer, corpus, n_tokens=n + 1)


@pytest.mark.parametrize("bad", [{"max_tokens": 0}, {"bandwidth": 0.0}])
def test_bad_options(bad: dict[str, float]) -> None:
    """Refused before any work."""
    with pytest.raises(ValueError, match="give"):
        plan(base(), vs.Corpus.from_texts(TEXTS), **bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "lost", "expected"),
    [
        (5_000, {}, 1),  # nothing can be taken away: pruning says so itself
        (5_000, {1_000: 0.0, 2_000: 0.001, 4_000: 0.009, 8_000: 0.02}, 4_000),
        (3_000, {1_000: 0.0, 2_000: 0.001, 4_000: 0.009, 8_000: 0.02}, 3_000),
        (5_000, {1_000: 0.5, 2_000: 0.6}, 1_000),  # any number costs: the smallest that is known
        (0, {1_000: 0.0}, 1),
    ],
)
def test_what_is_exchanged_costs_no_language_much(
    at: int, lost: dict[int, float], expected: int
) -> None:
    """The knee, or as many as cost each language at most one per cent; one of two suffers."""
    rows = [
        PlanRow(-n, "kept", 4.0, {"en": 5 * (1 - share), "hi": 3.0}) for n, share in lost.items()
    ]
    start = PlanRow(0, "kept", 4.0, {"en": 5.0, "hi": 3.0}, is_knee=at == 0)
    rows += [start] if at == 0 else [start, replace(start, n_tokens=at, is_knee=True)]
    found = Plan("t", tuple(rows), {}, {}, max(lost, default=0), 1, None)
    assert expected == found.exchange_of("kept")


def test_characters_that_the_vocabulary_lacks_are_no_part_of_the_base(make_metaspace: Any) -> None:
    """They come with the first token: the table begins at the tokenizer itself."""
    tokenizer = make_metaspace("ab", "bc")
    corpus = vs.Corpus.from_texts({"hi": TEXTS["hi"], "a": ["ab bc abc"] * 36})
    training, held_out = hold_out(corpus)
    found = plan(tokenizer, training, text=held_out, max_tokens=20)
    rows = {row.n_tokens: row for row in found.rows}
    assert rows[0].bytes_per_token == pytest.approx(measured(tokenizer, held_out), abs=1e-3)
    assert 0 == rows[0].n_characters
    options = ExtensionOptions(n_tokens=found.knee_of("kept"))
    longer = extend_with_report(tokenizer, training, options)
    knee = rows[found.knee_of("kept")]
    assert 0 < longer.report.n_characters == knee.n_characters
    assert knee.bytes_per_token == pytest.approx(measured(longer.tokenizer, held_out), abs=1e-3)
    first = longer.report.effect.curve()[0]  # of extend itself, on the text that it learned from
    assert (0, pytest.approx(measured(tokenizer, training), abs=1e-3)) == astuple(first)
