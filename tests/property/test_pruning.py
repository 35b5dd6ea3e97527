"""Pruning: the orders of the slow reference, and nothing that stays is broken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import prune as slow
from strategies import documents, examples
from vocabshift.pruning.options import PruningOptions, parse_keep
from vocabshift.pruning.orders import ORDERS, Vocabulary, removal_order
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import to_spec
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.splits import NONE, split_tokens, unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.workflows.prune import prune

ALPHABET = "abc"
SPECIAL = AddedToken("<s>", 0)


@dataclass(frozen=True)
class Case:
    """A model, some pieces of text, and what may not go."""

    tokenizer: Tokenizer
    pieces: list[str]
    protected: set[str]

    @property
    def vocab(self) -> dict[str, int]:
        return dict(self.tokenizer.model.vocab)

    @property
    def merges(self) -> tuple[tuple[str, str], ...]:
        return self.tokenizer.model.merges

    @property
    def corpus(self) -> Corpus:
        return Corpus.from_texts(self.pieces)

    def removable(self) -> set[str]:
        return slow.removable_tokens(
            self.vocab, self.merges, lambda t: t in self.protected or t == SPECIAL.content
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Merges in any order, several for one token, tokens without any: some are unreachable."""
    tokens = draw(st.lists(st.text(ALPHABET, min_size=2, max_size=5), max_size=12, unique=True))
    known = {*ALPHABET, *tokens}
    every = [
        (token[:at], token[at:])
        for token in tokens
        for at in range(1, len(token))
        if token[:at] in known and token[at:] in known
    ]
    merges = draw(st.permutations(every))
    merges = merges[: draw(st.integers(len(merges) // 2, len(merges)))]
    names = draw(st.permutations([*ALPHABET, *tokens]))
    is_byte_level = draw(st.booleans())
    if is_byte_level:
        names += [image for image in byte_level.ALPHABET if image not in ALPHABET]
    vocab = {token: 2 * i + 1 for i, token in enumerate(names)}  # with holes
    tokenizer = Tokenizer(
        BpeModel(vocab, tuple(merges), ignore_merges=draw(st.booleans())),
        pre_tokenizer=to_spec(()) if is_byte_level else None,
        decoder={
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": False,
            "use_regex": False,
        }
        if is_byte_level
        else {"type": "Fuse"},
        added_tokens=(replace(SPECIAL, id=2 * len(names) + 1),),
    )
    pieces = draw(st.lists(st.text(ALPHABET, min_size=1, max_size=9), min_size=1, max_size=8))
    protected = set(draw(st.lists(st.sampled_from(tokens), max_size=2))) if tokens else set()
    return Case(tokenizer, pieces, protected)


def strings(tokenizer: Tokenizer, ids: Any) -> list[str]:
    return [tokenizer.model.tokens[token_id] for token_id in np.asarray(ids).tolist()]


@given(cases())
@examples(150)
def test_splits_are_those_of_every_token_encoded_plainly(case: Case) -> None:
    splits = split_tokens(case.tokenizer)
    expected = slow.splits(case.vocab, case.merges)
    for token, token_id in case.vocab.items():
        halves = (int(splits.left[token_id]), int(splits.right[token_id]))
        if token not in expected:
            assert splits.unreachable[token_id]
            assert halves == (NONE, NONE)
        elif expected[token] is None:
            assert splits.atomic[token_id]
            assert halves == (NONE, NONE)
        else:
            assert tuple(strings(case.tokenizer, halves)) == expected[token]
    assert set(unreachable_tokens(case.tokenizer)) == set(case.vocab) - set(expected)


@given(cases())
@examples(150)
def test_counts_in_merges_follow_from_final_counts(case: Case) -> None:
    """The merges of a final token are those of its tree: no merge need be watched."""
    final, merged = slow.counts(case.pieces, case.vocab, case.merges)
    counts = np.zeros(case.tokenizer.row_count, dtype=np.int64)
    for token, count in final.items():
        counts[case.vocab[token]] = count
    made = split_tokens(case.tokenizer).made_counts(counts)
    assert {token: int(made[i]) for token, i in case.vocab.items() if made[i]} == dict(merged)


@given(cases())
@examples(40)
def test_orders_are_those_of_the_reference(case: Case) -> None:
    vocab, merges, removable = case.vocab, case.merges, case.removable()
    final, merged = slow.counts(case.pieces, vocab, merges)
    encoder = Encoder(case.tokenizer)
    own: dict[str, int] = {}
    for piece in case.pieces:
        for token in strings(case.tokenizer, encoder.encode(piece)):
            own[token] = own.get(token, 0) + 1
    expected = {
        "leaf-frequency": slow.leaf_order(vocab, merges, removable, final),
        "leaf-id": slow.leaf_order(vocab, merges, removable, None),
        "merge": slow.merge_order(vocab, removable, merged),
        "frequency": slow.frequency_order(vocab, merges, removable, own),
        "id": slow.id_order(vocab, merges, removable),
    }
    for order, tokens in expected.items():
        if not tokens:
            continue
        pruning = prune_with_report(
            case.tokenizer,
            case.corpus,
            PruningOptions(
                n_tokens=len(tokens), order=order, keep=parse_keep(sorted(case.protected))
            ),
            measure=False,
        )
        assert strings(case.tokenizer, pruning.removed) == tokens, order
        assert pruning.report.n_removable == len(tokens)


@given(cases(), st.sampled_from(ORDERS), st.booleans(), st.booleans(), st.data())
@examples(60)
def test_nothing_that_stays_is_broken(
    case: Case, order: str, keep_ids: bool, unreachable_first: bool, data: st.DataObject
) -> None:
    """Reachable tokens stay reachable, bytes stay, text comes back, ids are mapped rightly."""
    most = len(case.removable())
    if most == 0:
        return
    base = case.tokenizer
    n = data.draw(st.integers(1, most))
    pruning = prune_with_report(
        base,
        case.corpus,
        PruningOptions(
            n_tokens=n,
            order=order,
            keep=parse_keep(sorted(case.protected)),
            keep_ids=keep_ids,
            unreachable_first=unreachable_first,
        ),
    )
    pruned, report = pruning.tokenizer, pruning.report
    assert isinstance(pruned, Tokenizer)
    removed = set(strings(base, pruning.removed))
    assert len(removed) == n
    assert set(pruned.model.vocab) == set(base.model.vocab) - removed
    assert not removed & case.protected
    assert set(unreachable_tokens(pruned)) <= set(unreachable_tokens(base))
    assert (report.unreachable_before, report.unreachable_after) == (
        len(unreachable_tokens(base)),
        len(unreachable_tokens(pruned)),
    )
    if unreachable_first:
        unreachable = set(unreachable_tokens(base)) & case.removable()
        assert len(removed & unreachable) == min(n, len(unreachable))
    assert (report.round_trip_documents, report.round_trip_failures) == (len(case.pieces), 0)
    encoder = Encoder(pruned)
    for piece in case.pieces:
        assert encoder.decode(encoder.encode(piece)) == piece
        assert encoder.encode(piece).tolist() == pruned.backend.encode(piece).ids

    special = pruned.added_tokens[0]
    assert pruned.backend.encode("a<s>b").ids[1] == special.id
    expected = {base.model.vocab[token]: i for token, i in pruned.model.vocab.items()}
    expected[base.added_tokens[0].id] = special.id
    assert dict(enumerate(pruning.id_map.old_to_new.tolist())) == {
        old: expected.get(old, -1) for old in range(base.row_count)
    }
    if keep_ids:
        assert all(old == new for old, new in expected.items())
    else:
        assert sorted(expected.values()) == list(range(len(expected)))
        assert sorted(expected) == sorted(expected, key=expected.__getitem__)


@given(cases(), st.data())
@examples(100)
def test_ties_are_those_with_the_first_token_that_stays(case: Case, data: st.DataObject) -> None:
    """Scores never fall along the order, so that these are the last ones before it."""
    splits = split_tokens(case.tokenizer)
    rows = case.tokenizer.row_count
    removable = np.zeros(rows, dtype=bool)
    removable[[case.vocab[token] for token in case.removable()]] = True
    final, _ = slow.counts(case.pieces, case.vocab, case.merges)
    counts = np.zeros(rows, dtype=np.int64)
    counts[[case.vocab[token] for token in final]] = list(final.values())
    none = np.full(rows, -1, dtype=np.int64)
    found = removal_order("leaf-frequency", Vocabulary(splits, removable, none, none), counts)
    n = data.draw(st.integers(0, len(found.ids)))
    made = splits.made_counts(counts)
    scores = made[found.ids].tolist()
    assert scores == sorted(scores)
    tied = scores[:n].count(scores[n]) if n < len(scores) else 0
    assert found.n_decided_by_ties(n) == tied


@pytest.mark.parametrize("pattern", ["gpt2", "o200k"])
@given(documents(), st.data())
@examples(12)
def test_trained_tokenizers_down_to_the_bone(
    pattern: str, texts: list[str], data: st.DataObject
) -> None:
    corpus = Corpus.from_texts(texts)
    base = BpeTrainer(vocab_size=330, pre_tokenizer=pattern).train(corpus)
    most = base.vocab_size - 256
    if most == 0:
        return
    order = data.draw(st.sampled_from(ORDERS))
    bone = prune(base, corpus, n_tokens=most, order=order)
    assert sorted(bone.model.vocab) == sorted(byte_level.ALPHABET)
    assert bone.model.merges == ()
    encoder = Encoder(bone)
    assert [encoder.decode(encoder.encode(text)) for text in texts] == texts


@given(documents(), documents(), st.integers(0, 10**6), st.sampled_from(ORDERS), st.booleans())
@examples(25)
def test_text_of_a_kept_language_is_encoded_as_before(
    kept: list[str], others: list[str], share: int, order: str, ignore_merges: bool
) -> None:
    both = Corpus.from_texts({"kept": kept, "other": others})
    base = BpeTrainer(vocab_size=330).train(both)
    base = replace(base, model=replace(base.model, ignore_merges=ignore_merges))
    n_removable = prune_with_report_of_all(base, both)
    if n_removable == 0:
        return
    n = 1 + share % n_removable
    smaller = prune(base, both, n_tokens=n, order=order, keep=["language:kept"])
    before, after = Encoder(base), Encoder(smaller)
    for text in kept:
        old = [before.id_to_token(i) for i in before.encode(text).tolist()]
        assert [after.id_to_token(i) for i in after.encode(text).tolist()] == old


def prune_with_report_of_all(base: Tokenizer, corpus: Corpus) -> int:
    """How many tokens can go where the kept language keeps what it uses."""
    try:
        prune(base, corpus, n_tokens=10**6, order="id", keep=["language:kept"])
    except ValueError as error:
        most = int(str(error).split("at most ")[1].split(" ")[0].replace(",", ""))
    used = Encoder(base).encode_batch([t for label, t in corpus.texts() if label == "kept"])[0]
    flags = np.zeros(base.row_count, dtype=bool)
    flags[used] = True
    splits = split_tokens(base)
    return most - int(np.count_nonzero(splits.trees(flags) & ~splits.atomic))
