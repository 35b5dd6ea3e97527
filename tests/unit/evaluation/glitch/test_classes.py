"""The class of each token, each kind once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import small_models
from vocabshift.checks.vocabulary import with_unused
from vocabshift.evaluation.glitch.classes import classify, count_ids, counts_inside
from vocabshift.results import sha256_of
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.tokenizer import Tokenizer


def test_the_text_that_is_counted_has_a_checksum(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """By language, over its files; threads, weights and the order of languages change nothing."""
    specs = []
    for spec, text in (("hi=a@2", "एक\n\nthe cat\r\n"), ("en=b", "the"), ("hi=c", "cat\n")):
        name = spec.removesuffix("@2").partition("=")[2]
        (tmp_path / f"{name}.txt").write_bytes(text.encode())
        specs.append(spec.replace(f"={name}", f"={tmp_path / name}.txt"))
    counts, texts = count_ids(tokenizer, Corpus.from_specs(specs), 300)
    lines = {"hi": ["एक", "the cat", "cat"], "en": ["the"]}
    assert texts == {language: sha256_of(own) for language, own in lines.items()}
    turned = [specs[1], specs[0], specs[2]]
    again, same = count_ids(tokenizer, Corpus.from_specs(turned), 300, threads=2)
    assert (counts.tolist(), texts) == (again.tolist(), same)
    (tmp_path / "b.txt").write_text("thE", encoding="utf-8")
    _, other = count_ids(tokenizer, Corpus.from_specs(specs), 300)
    assert ["en"] == [language for language in texts if texts[language] != other[language]]
    assert {"all"} == count_ids(tokenizer, Corpus.from_texts(["the"]), 300)[1].keys()


def test_every_class(tokenizer: Tokenizer) -> None:
    model = tokenizer.model
    vocab = {**model.vocab, "dog": 267, "xyz": 268}
    changed = replace(
        tokenizer,
        model=replace(model, vocab=vocab, ignore_merges=True),
        added_tokens=(*tokenizer.added_tokens, AddedToken("<plain>", 269, special=False)),
    )
    kinds = classify(with_unused(changed, 1), 275)
    found = {token: str(kind) for token, kind in zip(kinds.tokens, kinds.classes, strict=True)}
    assert {
        "cat": "ordinary",
        "ĠtheĠcat": "superword",
        "a": "byte_piece",
        "à¤": "partial_utf8",
        "à¤ķ": "ordinary",
        "dog": "only_by_merge_skipping",
        "<|end|>": "special",
        "<plain>": "added",
        "<|vocabshift_unused_0|>": "dummy",
        "": "no_token",
    } == {
        token: found[token]
        for token in (
            *("cat", "ĠtheĠcat", "a", "à¤", "à¤ķ", "dog", "<|end|>", "<plain>"),
            *("<|vocabshift_unused_0|>", ""),
        )
    }
    assert "Latin" == kinds.scripts[vocab["cat"]]
    assert "Devanagari" == kinds.scripts[vocab["à¤ķ"]]
    without = classify(replace(changed, model=replace(model, vocab=vocab)), 275)
    assert "unreachable_by_pipeline" == without.classes[267]


def test_characters_that_no_merge_makes(tmp_path: Path) -> None:
    """In a vocabulary that spells characters and not bytes."""
    pieces = small_models.sentencepiece_tokenizer(tmp_path)
    kinds = classify(pieces, pieces.row_count)
    vocab = pieces.model.vocab
    assert "atomic" == kinds.classes[vocab["ब"]]
    assert "byte_piece" == kinds.classes[vocab["<0x41>"]]
    assert "ordinary" == kinds.classes[vocab["▁the"]]


def test_counts_inside_are_those_of_all_that_is_merged_from_a_token(tokenizer: Tokenizer) -> None:
    """Held against the definition: a token's parts, the parts of these, and so on."""
    model = tokenizer.model
    counts = np.random.default_rng(2).integers(0, 50, tokenizer.row_count)
    parts_of: dict[str, tuple[str, str]] = {}
    for left, right in model.merges:
        parts_of.setdefault(left + right, (left, right))

    def parts(token: str) -> set[str]:
        direct = set(parts_of.get(token, ()))
        return direct.union(*map(parts, direct))

    expected = np.zeros_like(counts)
    for token, token_id in model.vocab.items():
        for part in parts(token):
            expected[model.vocab[part]] += counts[token_id]
    assert expected.any()
    assert expected.tolist() == counts_inside(tokenizer, counts).tolist()
