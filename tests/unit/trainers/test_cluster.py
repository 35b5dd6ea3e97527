"""Cluster vocabularies: Algorithm 1 of the Indic study, for Unigram models and for BPE."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import vocabshift as vs
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.unigram import Scored, is_fixed
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer
from vocabshift.trainers.cluster import unite
from vocabshift.trainers.clusters import budgets, by_family, by_kmeans, by_script
from vocabshift.workflows.train import train_to_folder

TEXTS = Path(vs.__file__).parent / "demo" / "texts"
LANGUAGES = ("hin", "mar", "tam", "eng")
SMALL = {"vocab_size": 1500, "language_vocab_size": 700}


def corpus(*names: str) -> Corpus:
    return Corpus.from_files({name: TEXTS / f"{name}.txt" for name in names or LANGUAGES})


def test_kmeans_groups_languages_that_share_pieces() -> None:
    own = {
        "a": frozenset("abcde"),
        "x": frozenset("xyzw"),
        "b": frozenset("abcdf"),
        "y": frozenset("xyzv"),
    }
    assert (("a", "b"), ("x", "y")) == by_kmeans(own, 2, seed=0)
    assert (("a", "x", "b", "y"),) == by_kmeans(own, 1, seed=0)
    assert 4 == len(by_kmeans(own, 4, seed=7))


@pytest.mark.parametrize("seed", range(4))
def test_kmeans_keeps_the_tightest_start(seed: int) -> None:
    """The best of all partitions of seven languages into three, found by trying each.

    A single start often ends in a worse one, and the loosest of 32 always would.
    """
    chance = random.Random(seed)
    names = [f"l{i}" for i in range(7)]
    own = {n: frozenset(chance.sample("abcdefghijklmnop", chance.randint(2, 8))) for n in names}
    vectors = {n: np.array([piece in own[n] for piece in "abcdefghijklmnop"], float) for n in names}

    def spread(clusters: Iterable[Iterable[str]]) -> float:
        parts = (np.array([vectors[name] for name in cluster]) for cluster in clusters)
        return sum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in parts)

    best = min(
        spread([n for n, k in zip(names, labels, strict=True) if k == i] for i in range(3))
        for labels in itertools.product(range(3), repeat=7)
        if len(set(labels)) == 3
    )
    assert best == pytest.approx(spread(by_kmeans(own, 3, seed=0)))


def test_kmeans_of_languages_that_cannot_be_told_apart() -> None:
    same = {name: frozenset("abc") for name in ("a", "b", "c")}
    with pytest.raises(ValueError, match="2 clusters cannot be made of 3 languages that have 1"):
        by_kmeans(same, 2, seed=0)


def test_families_and_scripts() -> None:
    labels = ["hin", "tam", "urd", "ks_Deva", "tel", "code"]
    family = (("hin", "urd", "ks_Deva"), ("tam", "tel"), ("code",))
    assert family == by_family(labels)
    script = (("hin", "ks_Deva"), ("tam",), ("urd",), ("tel",), ("code",))
    assert script == by_script(labels)


def test_budgets_by_largest_remainder() -> None:
    assert [4, 3, 3] == budgets(10, [1, 1, 1])
    assert [7, 2, 1] == budgets(10, [70, 20, 10])
    assert 1001 == sum(budgets(1001, [3, 5, 7, 11]))


def test_united_probabilities_are_shares_of_use() -> None:
    """By hand: "▁a" and "b" cut "ab", "▁cd" takes "cd" whole; "zz" is never used."""
    fixed = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    one = Scored((*fixed, "▁a", "b", "zz"), (*[-20.0] * 257, -1.0, -1.0, -9.0))
    two = Scored((*fixed, "▁cd", "b"), (*[-20.0] * 257, -1.0, -2.0))
    united = unite([one, two], [10, 30], {"ab": 3, "cd": 2})
    learned = united.learned
    assert {"▁a", "b", "zz", "▁cd"} == set(learned)
    assert learned["▁a"] == pytest.approx(math.log(3 / 8))
    assert learned["▁cd"] == pytest.approx(math.log(2 / 8))
    assert learned["zz"] == pytest.approx(math.log(0.5 / 8))
    scores = dict(zip(united.pieces, united.scores, strict=True))
    assert all(score <= learned["zz"] for piece, score in scores.items() if is_fixed(piece))


def test_a_larger_cluster_counts_more_in_the_union() -> None:
    """ "▁ab" of one model is likelier than "▁a" and "b" of the other where the first is large."""
    fixed = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    one = Scored((*fixed, "▁ab"), (*[-20.0] * 257, -3.0))
    two = Scored((*fixed, "▁a", "b"), (*[-20.0] * 257, -1.0, -1.0))
    assert {"▁a", "b"} == set(unite([one, two], [5, 5], {"ab": 5}).learned)
    assert "▁ab" in unite([one, two], [9, 1], {"ab": 5}).learned


def test_pieces_that_the_union_never_uses_are_left_out() -> None:
    """ "▁ab" is rare; its letters are so common that they take its place, and no text differs."""
    fixed = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    one = Scored((*fixed, "▁a", "b", "▁ab"), (*[-20.0] * 257, -1.0, -1.0, -9.0))
    two = Scored((*fixed, "▁a", "c"), (*[-20.0] * 257, -1.0, -2.0))
    words = {"ab": 5, "ac": 4}
    assert {"▁a", "b", "c"} == set(unite([one, two], [9, 9], words).learned)
    kept = Scored((*fixed, "▁a", "b", "▁ab"), (*[-20.0] * 257, -1.0, -1.0, -1.5))
    assert {"▁a", "b", "c", "▁ab"} == set(unite([kept, two], [9, 9], words).learned)


@pytest.mark.parametrize("recipe", ["cluster", "cluster-bpe"])
@pytest.mark.parametrize("way", ["kmeans", "family", "script"])
def test_a_cluster_vocabulary_is_a_plain_tokenizer(recipe: str, way: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    options = {**SMALL, "cluster_by": way, "normalizer": "nfc"}
    result = train_to_folder(recipe, corpus(), options, tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("मराठी भाषा", "the rain", "தமிழ் மொழி", "🙂"):
        assert text == tokenizer.decode(tokenizer(text)["input_ids"])
    clusters = result["clusters"]
    assert sorted(LANGUAGES) == sorted(name for part in clusters for name in part["languages"])
    assert sum(part["budget"] for part in clusters) + (257 if recipe == "cluster" else 256) == 1500
    assert result["vocab_size"] <= 1500
    if recipe == "cluster-bpe":
        assert 0 == result["unreachable"]
        assert 1500 == result["vocab_size"]
    if way == "family":
        assert [["hin", "mar", "eng"], ["tam"]] == [list(part["languages"]) for part in clusters]


def test_one_cluster_loses_nothing() -> None:
    """With one cluster there is nothing to unite: BPE is BPE of all text, merge for merge."""
    trained = vs.ClusterBpeTrainer(n_clusters=1, **SMALL).train(corpus())
    plain = vs.BpeTrainer(vocab_size=1500).train(corpus())
    assert set(plain.model.vocab) == set(trained.model.vocab)
    assert plain.model.merges == trained.model.merges


def test_disjoint_scripts_lose_nothing() -> None:
    """Merges of one script never touch another's: each cluster's words are cut as it alone would
    cut them, or better where another cluster's digits and punctuation help."""
    report = vs.ClusterBpeTrainer(cluster_by="script", **SMALL).run(corpus("hin", "tam")).report
    for part in report.clusters:
        assert part.tokens_united <= part.tokens_alone


def test_line_ends_inside_pre_tokens_divide_words() -> None:
    """Code: ";\\n//" is one pre-token, and SentencePiece reads one word a line."""
    texts = {"code": ["a();\n//\n//b\nc();\t//\td\n"] * 9, "eng": ["the rain comes"] * 9}
    counted = []
    for kind in (vs.ClusterTrainer, vs.ClusterBpeTrainer):
        made = kind(vocab_size=300, language_vocab_size=300, cluster_by="family")
        counted.append(made.run(Corpus.from_texts(texts)).report.clusters)
    assert [("code",), ("eng",)] == [part.languages for part in counted[1]]
    assert all(part.union > 5 for parts in counted for part in parts)


@pytest.mark.parametrize("kind", [vs.ClusterTrainer, vs.ClusterBpeTrainer])
def test_threads_and_order_of_pieces_change_nothing(kind: type) -> None:
    made = [kind(n_clusters=2, **SMALL).train(corpus(), threads=threads) for threads in (1, 2)]
    if isinstance(made[0], UnigramOrWordPieceTokenizer):
        assert made[0].document == made[1].document
    else:
        assert made[0].model.merges == made[1].model.merges


def test_bad_input() -> None:
    with pytest.raises(
        ValueError, match="5 clusters cannot be made of 4 languages; give at most 4"
    ):
        vs.ClusterTrainer(n_clusters=5, **SMALL).train(corpus())
    with pytest.raises(ValueError, match="label its parts as lang=PATH"):
        vs.ClusterTrainer(**SMALL).train(Corpus.from_specs([str(TEXTS / "hin.txt")]))
    with pytest.raises(ValueError, match="family says how many clusters there are"):
        vs.ClusterTrainer(cluster_by="family", n_clusters=3, **SMALL)
    with pytest.raises(
        ValueError, match="cluster_by is 'colour'; it can be kmeans, family, script"
    ):
        vs.ClusterBpeTrainer(vocab_size=1500, cluster_by="colour")
    with pytest.raises(ValueError, match=r"language_vocab_size 260 \(for 'hin'\) has no room"):
        vs.ClusterTrainer(vocab_size=1500, language_vocab_size=260).train(corpus())
    with pytest.raises(ValueError, match="language_vocab_size 10 is below the alphabet"):
        vs.ClusterBpeTrainer(vocab_size=1500, language_vocab_size=10)
    small = {**SMALL, "vocab_size": 265, "n_clusters": 2}
    with pytest.raises(ValueError, match=r"vocab_size 265, \d+ of it for hin, .* has no room"):
        vs.ClusterTrainer(**small).train(corpus())


@pytest.mark.parametrize("recipe", ["unigram", "cluster", "cluster-bpe"])
def test_a_memory_budget_is_refused(recipe: str, tmp_path: Path) -> None:
    options = {"vocab_size": 1500}
    with pytest.raises(ValueError, match="leave --memory out"):
        train_to_folder(recipe, corpus(), options, tmp_path / "out", memory_bytes=10**9)
