"""`prune` on a small byte-level tokenizer: requests, protection, weights, ids, counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.cli.main import main
from vocabshift.errors import CorpusError, InvalidTokenizerError
from vocabshift.pruning.options import PruningOptions, parse_keep
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import bos_template
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.workflows.prune import prune

ENGLISH = ["the cat and the other cat sat by the heater", "another day, another letter"] * 3
HINDI = ["बिल्ली और दूसरी बिल्ली वहाँ बैठी थी", "एक और दिन, एक और चिट्ठी"] * 3
CORPUS = Corpus.from_texts({"en": ENGLISH, "hi": HINDI})


@pytest.fixture(scope="module")
def base() -> Tokenizer:
    """320 tokens and three special ones behind them, of which the template puts two."""
    trained = BpeTrainer(vocab_size=320).train(CORPUS)
    return replace(
        trained,
        added_tokens=tuple(
            AddedToken(token, 320 + i) for i, token in enumerate(("<s>", "</s>", "<x>"))
        ),
        post_processor=bos_template("<s>", 320, ("</s>", 321)),
        config={"bos_token": "<s>", "eos_token": "</s>", "pad_token_id": 322, "x_token_ids": [321]},
        chat_template="{{ bos_token }}",
    )


def tokens(tokenizer: Any) -> set[str]:
    return set(tokenizer.model.vocab)


def test_everything_that_holds_an_id_follows(base: Tokenizer) -> None:
    small = prune(base, CORPUS, n_tokens=10)
    assert (small.vocab_size, small.row_count) == (310, 313)
    assert [token.id for token in small.added_tokens] == [310, 311, 312]
    assert small.config["pad_token_id"] == 312
    assert small.config["x_token_ids"] == [311]
    assert small.chat_template == base.chat_template
    encoding = small.backend.encode("the cat<x>")
    assert encoding.tokens[0] == "<s>"
    assert encoding.tokens[-2:] == ["<x>", "</s>"]
    assert encoding.ids[0] == 310
    assert encoding.ids[-2:] == [312, 311]
    assert encoding.ids[1:-1] == vs.Encoder(small).encode("the cat<x>").tolist()


def test_ids_may_be_kept_with_holes(base: Tokenizer, tmp_path: Path) -> None:
    pruning = prune_with_report(
        base, CORPUS, PruningOptions(n_tokens=10, order="frequency", keep_ids=True)
    )
    small = pruning.tokenizer
    assert isinstance(small, Tokenizer)
    assert small.row_count == base.row_count
    assert small.model.vocab.items() < base.model.vocab.items()
    assert small.added_tokens == base.added_tokens
    again = vs.load_tokenizer(small.save_pretrained(tmp_path / "out"))
    assert [t.id for t in again.added_tokens] == [320, 321, 322]
    assert again.backend.encode("the<x>").ids == small.backend.encode("the<x>").ids
    assert pruning.report.vocab_size == 310


def test_either_number_may_be_given(base: Tokenizer) -> None:
    assert tokens(prune(base, CORPUS, vocab_size=300)) == tokens(prune(base, CORPUS, n_tokens=20))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "one of them"),
        ({"n_tokens": 1, "vocab_size": 300}, "one of them"),
        ({"n_tokens": 0}, "give at least 1"),
        ({"n_tokens": -3}, "give at least 1"),
        ({"n_tokens": 1, "order": "size"}, "unknown order 'size'; known are: leaf-frequency"),
        ({"n_tokens": 65}, r"65 tokens .* at most 64 of the 320 .* \(vocab_size 256\)"),
        ({"vocab_size": 255}, "at most 64"),
        ({"vocab_size": 320}, "leaves nothing to prune"),
        ({"n_tokens": 1, "threads": 0}, "threads is 0"),
        ({"n_tokens": 1, "keep": ["zebra"]}, "no such token"),
        ({"n_tokens": 1, "keep": ["language:ta"]}, "no 'ta'"),
        ({"n_tokens": 1, "keep": ["script:Tamil"]}, "no token is in that script"),
        ({"n_tokens": 1, "drop_unseen_characters": True}, "leave drop_unseen_characters out"),
    ],
)
def test_what_cannot_be_is_told(base: Tokenizer, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prune(base, CORPUS, **options)


def test_numbers_are_whole(base: Tokenizer) -> None:
    with pytest.raises(TypeError, match=r"n_tokens is 1\.5"):
        prune(base, CORPUS, n_tokens=1.5)  # type: ignore[arg-type]


def test_orders_that_look_at_text_need_some(base: Tokenizer) -> None:
    with pytest.raises(ValueError, match="looks at text; give a corpus"):
        prune(base, n_tokens=1)
    assert prune(base, n_tokens=1, order="leaf-id").vocab_size == 319


def test_kept_tokens_keep_what_they_are_made_of(base: Tokenizer) -> None:
    longest = max(base.model.vocab, key=len)
    pruning = prune_with_report(
        base, None, PruningOptions(n_tokens=1, order="id", keep=parse_keep([longest]))
    )
    most = pruning.report.n_removable
    bone = prune(base, n_tokens=most, order="id", keep=[longest])
    assert longest in bone.model.vocab
    assert vs.check(bone).unreachable == ()
    assert most < 64


def test_a_kept_script_stays_whole(base: Tokenizer) -> None:
    plain = prune_with_report(base, CORPUS, PruningOptions(n_tokens=30))
    rows = {row.name: row for row in plain.report.removed_by_script}
    assert rows["Devanagari"].removed > 0
    assert sum(row.removed for row in rows.values()) == 30
    kept = prune_with_report(
        base, CORPUS, PruningOptions(n_tokens=20, keep=parse_keep(["script:Deva"]))
    )
    assert {row.name: row.removed for row in kept.report.removed_by_script}["Devanagari"] == 0


def test_the_order_by_script_begins_with_the_script_least_used(base: Tokenizer) -> None:
    english = Corpus.from_texts({"en": ENGLISH})
    pruning = prune_with_report(base, english, PruningOptions(n_tokens=7, order="script"))
    removed = {row.name: row.removed for row in pruning.report.removed_by_script}
    assert removed["Devanagari"] == 7


def test_weights_decide_what_is_rare(base: Tokenizer) -> None:
    """The language that counts little loses its tokens first."""
    both = {"en": ENGLISH, "hi": HINDI}
    for small, large in (("en", "hi"), ("hi", "en")):
        corpus = Corpus.from_texts(both, weights={small: 0.001})
        report = prune_with_report(base, corpus, PruningOptions(n_tokens=20)).report
        after = {row.language: row.bytes_per_token_after for row in report.languages}
        before = {row.language: row.bytes_per_token_before for row in report.languages}
        assert after[large] / before[large] > after[small] / before[small]


def test_threads_change_nothing(base: Tokenizer) -> None:
    one, two = (
        prune_with_report(base, CORPUS, PruningOptions(n_tokens=30), threads=n) for n in (1, 3)
    )
    assert one.removed.tolist() == two.removed.tolist()
    assert one.report == two.report


def test_ties_are_counted_and_warned_of(base: Tokenizer) -> None:
    other = Corpus.from_texts({"ta": ["அவன் வந்தான்"]})
    report = prune_with_report(base, other, PruningOptions(n_tokens=5)).report
    assert report.n_decided_by_ties == 5
    assert any("decided by a tie alone" in warning for warning in report.warnings)
    every = prune_with_report(base, other, PruningOptions(n_tokens=64)).report
    assert every.n_decided_by_ties == 0
    assert every.warnings == ()
    assert (
        prune_with_report(
            base, None, PruningOptions(n_tokens=5, order="leaf-id")
        ).report.n_decided_by_ties
        == 0
    )


def test_counts_stand_for_a_corpus(base: Tokenizer, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for label, texts in (("en", ENGLISH), ("hi", HINDI)):
        (tmp_path / f"{label}.txt").write_text("\n".join(texts), encoding="utf-8")
    specs = [f"{label}={tmp_path}/{label}.txt" for label in ("en", "hi")]
    assert main(["count", *specs, "-o", str(tmp_path / "counts")]) == 0
    folder = CountFolder.open(tmp_path / "counts")
    for ignore_merges in (False, True):
        model = replace(base.model, ignore_merges=ignore_merges)
        tokenizer = replace(base, model=model)
        for order in ("leaf-frequency", "frequency", "merge"):
            from_text = prune_with_report(
                tokenizer, CORPUS, PruningOptions(n_tokens=40, order=order)
            )
            from_counts = prune_with_report(
                tokenizer,
                folder,
                PruningOptions(n_tokens=40, order=order, keep=parse_keep(["language:hi"][:0])),
            )
            assert from_text.removed.tolist() == from_counts.removed.tolist()
            assert from_text.report.languages == from_counts.report.languages
            assert from_counts.report.round_trip_failures == 0
    assert main(["count", *specs, "--pattern", "gpt2", "-o", str(tmp_path / "other")]) == 0
    with pytest.raises(CorpusError, match="was counted with the pattern gpt2"):
        prune(base, CountFolder.open(tmp_path / "other"), n_tokens=1)
    assert main(["count", *specs, "--special-tokens", "<z>", "-o", str(tmp_path / "z")]) == 0
    with pytest.raises(CorpusError, match="special token '<z>'"):
        prune(base, CountFolder.open(tmp_path / "z"), n_tokens=1)


def test_text_that_the_normalizer_removes_is_told(base: Tokenizer) -> None:
    normalizer = {"type": "Replace", "pattern": {"Regex": "[ऀ-ॿ]+"}, "content": ""}
    deaf = replace(base, normalizer=normalizer)
    hindi = Corpus.from_texts({"en": ENGLISH, "hi": ["बिल्ली"]})
    with pytest.raises(CorpusError, match="makes no token of the text of 'hi': its normalizer"):
        prune(deaf, hindi, n_tokens=1)


def test_superwords_are_pruned_like_any_token(base: Tokenizer) -> None:
    texts = [" ".join(["the cat and the other cat"] * 5), *ENGLISH]
    corpus = Corpus.from_texts(texts)
    ist = vs.SuperwordTrainer(vocab_size=330, transition=0.85).train(corpus)
    superwords = [token for token in ist.model.vocab if "Ġ" in token.strip("Ġ")]
    assert superwords
    for n in (5, ist.vocab_size - 256):
        small = prune(ist, corpus, n_tokens=n)
        assert vs.check(small, corpus).ok
    kept = prune(ist, corpus, n_tokens=3, order="merge", keep=superwords[:1])
    assert superwords[0] in kept.model.vocab


def test_a_template_with_an_unknown_id_is_refused(base: Tokenizer) -> None:
    broken = replace(base, post_processor=bos_template("<s>", 999))
    with pytest.raises(InvalidTokenizerError, match="the id 999 into every text"):
        prune(broken, n_tokens=1, order="id")


def test_parts_of_words_are_refused(base: Tokenizer) -> None:
    model = replace(base.model, vocab={"a": 0}, merges=(), end_of_word_suffix="</w>")
    with pytest.raises(InvalidTokenizerError, match="marks the parts of words"):
        prune(Tokenizer(model), n_tokens=1, order="id")


def test_the_face_has_it(base: Tokenizer) -> None:
    smaller = vs.prune(base, CORPUS, n_tokens=16, order="leaf-frequency")
    assert isinstance(smaller, vs.Tokenizer)
    assert vs.check(smaller, CORPUS).ok
