"""Use of a vocabulary by language: counted like encoding each text by itself."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from vocabshift.checks.check import check
from vocabshift.checks.vocabulary import SELDOM, USED_UP, merge_residue, vocabulary_use
from vocabshift.text.corpus import Corpus
from vocabshift.text.readers import TextsSource
from vocabshift.text.selection import Part
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.token_bytes import token_bytes
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.superword import SuperwordTrainer

TEXTS = {
    "hi": ["घर के पास नदी है।", "घर के पास पेड़ है।"] * 3,
    "en": ["the mill is by the river.", "the river is by the mill."] * 3,
}


def trained() -> Tokenizer:
    corpus = Corpus.from_texts(TEXTS, weights={"hi": 2, "en": 1})
    options = {"vocab_size": 300, "transition": 0.95, "special_tokens": ("<s>",)}
    return SuperwordTrainer(**options).train(corpus)


def test_counts_are_those_of_each_text_alone() -> None:
    tokenizer = trained()
    # A label that comes back, and a part without one.
    parts = [("hi", TEXTS["hi"][:1]), ("en", TEXTS["en"][:1])]
    parts += [("hi", ["the <s> नदी"]), (None, ["é 12"])]
    corpus = Corpus(Part(TextsSource("texts", lines), label) for label, lines in parts)
    use = vocabulary_use(tokenizer, corpus, threads=2)
    texts = {"hi": [TEXTS["hi"][0], "the <s> नदी"], "en": [TEXTS["en"][0]], None: ["é 12"]}
    backend = tokenizer.backend
    backend.encode_special_tokens = False
    found = {
        label: Counter(i for text in of for i in backend.encode(text, add_special_tokens=False).ids)
        for label, of in texts.items()
    }
    special = next(token.id for token in tokenizer.added_tokens)
    assert found["hi"][special] == 1
    superwords = {
        i for token, i in tokenizer.model.vocab.items() if "Ġ" in token.strip("Ġ") and i != special
    }
    assert list(texts) == [row.language for row in use.languages]
    for row in use.languages:
        own = found[row.language]
        others = set().union(*(of for label, of in found.items() if label != row.language))
        assert row.n_bytes == sum(len(text.encode()) for text in texts[row.language])
        assert row.tokens == own.total()
        assert row.distinct_tokens == len(own)
        assert row.own_tokens == len(set(own) - others)
        expected = sum(count for i, count in own.items() if i in superwords) / own.total()
        assert row.superword_share == expected
    assert any(row.superword_share > 0 for row in use.languages)
    used = set().union(*found.values())
    assert use.vocab_size == tokenizer.vocab_size
    assert use.unused == tokenizer.vocab_size - len(used - {special})
    assert use.language_bytes == {row.language: row.n_bytes for row in use.languages}


def test_merge_residue_is_what_the_merges_of_the_text_use_up() -> None:
    """Against the merges of every token of the text, done one by one."""
    tokenizer = trained()
    lines = [*TEXTS["en"] * 5, *TEXTS["hi"] * 5, "i ri"]
    ids = [int(i) for i in Encoder(tokenizer).encode_batch(lines)[0]]
    shown, held = Counter(ids), Counter[int]()
    data = token_bytes(tokenizer)
    token_of = {i: token for token, i in tokenizer.model.vocab.items()}
    for i, count in shown.items():
        parts = list(token_of[i])
        for left, right in tokenizer.model.merges:  # in the order of rank
            at = 0
            while at < len(parts) - 1:
                if (parts[at], parts[at + 1]) == (left, right):
                    parts[at : at + 2] = [left + right]
                    made = tokenizer.model.vocab[left + right]
                    held[made] += count if made != i else 0
                at += 1
    seldom = SELDOM * len(ids) / tokenizer.vocab_size
    expected = {
        token_of[i]
        for i, n in held.items()
        if n >= USED_UP * max(shown[i], 1) and shown[i] <= seldom and _is_several(data[i])
    }
    counts = np.zeros(tokenizer.row_count, dtype=np.int64)
    counts[list(shown)] = list(shown.values())
    found = merge_residue(tokenizer, counts)
    assert len(found) > 10
    assert expected == set(found)
    used_up = [held[tokenizer.model.vocab[token]] for token in found]
    assert sorted(used_up, reverse=True) == used_up
    assert found == check(tokenizer, Corpus.from_texts({"x": lines})).merge_residue
    assert check(tokenizer).merge_residue is None
    counts[tokenizer.model.vocab[found[0]]] += 1  # as often as the average token has it: used
    assert found[1:] == merge_residue(tokenizer, counts)


def _is_several(data: bytes) -> bool:
    text = data.decode(errors="replace")
    return "\ufffd" not in text and len(text) > 1


def test_threads_change_nothing_and_values_are_plain() -> None:
    tokenizer, corpus = trained(), Corpus.from_texts(TEXTS)
    one, two = (vocabulary_use(tokenizer, corpus, threads=n).to_dict() for n in (1, 2))
    assert one == two == json.loads(json.dumps(one))


def test_ids_with_holes() -> None:
    """Added tokens far behind the vocabulary are no part of it."""
    from dataclasses import replace

    tokenizer = replace(trained(), added_tokens=(AddedToken("<far>", 5000),))
    use = vocabulary_use(tokenizer, Corpus.from_texts({"hi": ["a<far>b"]}))
    assert (3, 3, 3) == tuple(
        getattr(use.languages[0], name) for name in ("tokens", "distinct_tokens", "own_tokens")
    )
    assert tokenizer.vocab_size - 2 == use.unused
