"""`adapt_tokenizer`: new words for old ones, and no id moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import vocabshift as vs
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import prune_with_report
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.id_map import load as load_map
from vocabshift.workflows.adapt_tokenizer import adapt_to_folder

ENGLISH = ["the cat sat on the mat", "the dog ran to the cat", "don't stop the dogs here"]
FINNISH = ["kissa istui matolla", "koira juoksi kissan luo", "älä pysäytä koiria täällä"]


def base() -> vs.Tokenizer:
    """A tokenizer of English with special tokens in its vocabulary's middle and behind it."""
    trained = vs.BpeTrainer(vocab_size=300, pre_tokenizer="o200k").train(
        vs.Corpus.from_texts(ENGLISH)
    )
    vocab = {token: i if i < 270 else i + 2 for token, i in trained.model.vocab.items()}
    added = (AddedToken("<s>", 270), AddedToken("</s>", 271), AddedToken("<pad>", 302))
    model = replace(trained.model, vocab=vocab)
    return replace(trained, model=model, added_tokens=added, name="base")


@pytest.mark.parametrize("first", ["prune", "extend"])
def test_size_and_ids_stay(first: Any) -> None:
    """As many rows as before; every token that stays has its id; text comes back."""
    corpus = vs.Corpus.from_texts({"en": ENGLISH[:1], "fi": FINNISH})
    tokenizer = base()

    adapted = vs.adapt_tokenizer(tokenizer, corpus, n_tokens=12, first=first)

    new = adapted.tokenizer
    assert new.row_count == tokenizer.row_count
    assert new.vocab_size == tokenizer.vocab_size
    assert adapted.extension.n_added == adapted.pruning.n_removed == 12
    assert new.added_tokens == tokenizer.added_tokens
    kept = {t: i for t, i in tokenizer.model.vocab.items() if t in new.model.vocab}
    assert {t: new.model.vocab[t] for t in kept} == kept
    assert adapted.id_map.n_kept == len(kept) + len(tokenizer.added_tokens)
    assert vs.check(new).unreachable == ()
    for text in [*ENGLISH, *FINNISH, "<s>नमस्ते</s> 中文"]:
        assert vs.Encoder(new).decode(vs.Encoder(new).encode(text)) == text


def test_what_is_learned_again_has_its_old_id() -> None:
    """Pruned to the bone and trained on its own text; the map knows that these tokens are kept."""
    tokenizer = base()
    corpus = vs.Corpus.from_texts({"en": ENGLISH[1:], "fi": FINNISH[:1]})
    n = prune_with_report(tokenizer, corpus, PruningOptions(n_tokens=1)).report.n_removable
    adapted = vs.adapt_tokenizer(tokenizer, corpus, n_tokens=n)
    old, new = tokenizer.model.vocab, adapted.tokenizer.model.vocab
    kept = {token: token_id for token, token_id in old.items() if token in new}
    assert len(kept) > len(old) - n
    assert {token: new[token] for token in kept} == kept
    assert adapted.id_map.n_kept == len(kept) + len(tokenizer.added_tokens)
    assert sorted(new.values()) == sorted(old.values())
    assert vs.check(adapted.tokenizer).unreachable == ()
    figures = adapted.to_dict()
    assert set(adapted.removed) == old.keys() - new.keys()
    assert set(adapted.added) == new.keys() - old.keys()
    assert figures["n_removed"] == figures["n_added"] == len(adapted.added)
    assert figures["n_relearned"] == n - len(adapted.removed) > 0
    assert figures["n_copied"] == adapted.id_map.n_kept


def test_a_map_along_several_steps_knows_what_came_back(tmp_path: Path) -> None:
    """Taken out by `prune`, learned again by `extend`: still known by the first tokenizer's id."""
    tokenizer = base()
    corpus = vs.Corpus.from_texts({"en": ENGLISH})
    first, second = tmp_path / "pruned", tmp_path / "extended"
    pruning = prune_with_report(tokenizer, None, PruningOptions(n_tokens=20, order="leaf-id"))
    assert isinstance(pruning.tokenizer, vs.Tokenizer)
    pruning.tokenizer.save_pretrained(first)
    pruning.id_map.save(first)
    assert load_map(first).gone.keys() == tokenizer.model.vocab.keys() - words_of(first)
    extension = extend_with_report(first, corpus, ExtensionOptions(n_tokens=10))
    extension.tokenizer.save_pretrained(second)
    extension.id_map.save(second)
    known = load_map(second)
    back = words_of(second) & load_map(first).gone.keys()
    assert back
    for token in back:
        now = vs.load_tokenizer(second).model.vocab[token]
        assert known.old_to_new[tokenizer.model.vocab[token]] == now
    assert known.gone.keys() == load_map(first).gone.keys() - back
    known.check(tokenizer, vs.load_tokenizer(second))


def words_of(folder: Path) -> set[str]:
    return set(vs.load_tokenizer(folder).model.vocab)


@pytest.mark.parametrize("first", ["prune", "extend"])
def test_no_more_is_taken_out_than_is_learned(first: Any) -> None:
    """Where the text runs out of pairs, the size stays all the same."""
    corpus = vs.Corpus.from_texts(["kissa"])
    adapted = vs.adapt_tokenizer(base(), corpus, n_tokens=20, first=first)
    assert 0 < adapted.extension.n_added < 20
    assert adapted.pruning.n_removed == adapted.extension.n_added
    assert adapted.tokenizer.row_count == base().row_count


def test_the_folder_holds_map_and_provenance(tmp_path: Path) -> None:
    """Written whole, loaded again, not overwritten unasked."""
    base().save_pretrained(tmp_path / "base")
    corpus = vs.Corpus.from_texts({"fi": FINNISH})
    result = adapt_to_folder(tmp_path / "base", corpus, tmp_path / "out", n_tokens=5)
    assert result["n_added"] == result["n_removed"] == 5
    assert load_map(tmp_path / "out").n_kept == base().vocab_size + 3 - 5
    assert vs.load_tokenizer(tmp_path / "out").row_count == base().row_count
    assert (tmp_path / "out" / "vocabshift.json").exists()
    with pytest.raises(FileExistsError):
        adapt_to_folder(tmp_path / "base", corpus, tmp_path / "out", n_tokens=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_tokens": 5, "first": "both"}, "first is 'both'"),
        ({"n_tokens": 0}, "n_tokens is 0"),
        ({"n_tokens": 5_000}, "can be"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    """In one line, what was given and what to do."""
    with pytest.raises(ValueError, match=message):
        vs.adapt_tokenizer(base(), vs.Corpus.from_texts(ENGLISH), **options)
