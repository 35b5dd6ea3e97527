"""Unigram and WordPiece trimming: by frequency, scores kept, nothing becomes unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Backend

from unit.pruning.conftest import ENGLISH, HINDI, TEXTS
from vocabshift.cli.main import main
from vocabshift.errors import CorpusError, InvalidTokenizerError
from vocabshift.pruning.effects import Pruning
from vocabshift.pruning.options import PruningOptions, parse_keep
from vocabshift.pruning.prune import prune_with_report
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer
from vocabshift.workflows.prune import prune

CORPUS = Corpus.from_texts({"en": ENGLISH, "hi": HINDI})


def most(backend: Any, corpus: Corpus = CORPUS, **options: Any) -> int:
    """How many tokens can go, as the errors say."""
    n = 10**6
    while True:
        try:
            prune(backend, corpus, n_tokens=n, **options)
        except ValueError as error:
            n = int(str(error).split("at most ")[1].split(" ")[0].replace(",", ""))
        else:
            return n


def pruned(backend: Any, n: int | None = None, **options: Any) -> Pruning:
    """With the corpus above; None: down to the bone."""
    n = n or most(backend, **options)
    keep = parse_keep(options.pop("keep", ()))
    return prune_with_report(backend, CORPUS, PruningOptions(n_tokens=n, keep=keep, **options))


def decoded(backend: Backend, texts: list[str]) -> list[str]:
    ids = [encoding.ids for encoding in backend.encode_batch(texts, add_special_tokens=False)]
    return list(backend.decode_batch(ids, skip_special_tokens=False))


def around(encoding: Any) -> list[str]:
    """What the template puts around a text."""
    mask = zip(encoding.tokens, encoding.special_tokens_mask, strict=True)
    return [token for token, is_special in mask if is_special]


def scores(backend: Backend) -> dict[str, float]:
    vocab = json.loads(backend.to_str())["model"]["vocab"]
    return dict(vocab) if isinstance(vocab, list) else {}


@pytest.mark.parametrize("n", [1, 20, None])
def test_text_comes_back_and_special_tokens_keep_their_meaning(
    plain: Backend, n: int | None
) -> None:
    result = pruned(plain, n)
    tokenizer, report = result.tokenizer, result.report
    assert isinstance(tokenizer, UnigramOrWordPieceTokenizer)
    assert report.n_removed == len(result.removed)
    assert tokenizer.vocab_size == plain.get_vocab_size(False) - report.n_removed
    small = tokenizer.backend
    assert decoded(small, TEXTS) == decoded(plain, TEXTS)
    assert (report.round_trip_documents, report.round_trip_failures) == (5, 0)
    for token in tokenizer.added_tokens:
        assert small.token_to_id(token.content) == token.id
        text = f"the{token.content}cat"
        tokens = plain.encode(text, add_special_tokens=False).tokens
        assert token.content in tokens
        assert token.content in small.encode(text, add_special_tokens=False).tokens
    for text in TEXTS:
        encoding = small.encode(text)
        assert around(encoding) == around(plain.encode(text)) != []
        assert encoding.ids == [small.token_to_id(token) for token in encoding.tokens]
    unknown = tokenizer.vocab[tokenizer.unk_token or ""]
    for text in TEXTS:  # Subtle: a Unigram model shows the text of what it does not know
        assert unknown not in small.encode(text).ids


def test_scores_are_kept_and_ids_packed_in_the_old_order(plain: Backend) -> None:
    result = pruned(plain, 25)
    assert isinstance(result.tokenizer, UnigramOrWordPieceTokenizer)
    small = result.tokenizer.backend
    old, new = plain.get_vocab(), small.get_vocab()
    assert new.keys() < old.keys()
    assert sorted(new.values()) == list(range(len(new)))
    assert sorted(new, key=new.__getitem__) == sorted(new, key=old.__getitem__)
    assert all(scores(small)[token] == score for token, score in scores(small).items())
    assert scores(small).items() <= scores(plain).items()
    mapped = result.id_map.old_to_new.tolist()
    assert [mapped[old[token]] for token in new] == list(new.values())
    assert sorted(i for i, to in enumerate(mapped) if to < 0) == sorted(result.removed.tolist())


def test_the_rarest_go_first_and_among_them_the_highest_id(plain: Backend) -> None:
    counts: dict[int, int] = {}
    for encoding in plain.encode_batch(TEXTS, add_special_tokens=False):
        for token_id in encoding.ids:
            counts[token_id] = counts.get(token_id, 0) + 1
    removed = pruned(plain, 30).removed.tolist()
    keys = [(counts.get(token_id, 0), -token_id) for token_id in removed]
    assert keys == sorted(keys)
    everything = pruned(plain, None).removed.tolist()
    assert everything[:30] == removed


def test_the_bone_is_characters_special_tokens_and_the_lowest_score(xlm_r: Backend) -> None:
    bone = pruned(xlm_r, None).tokenizer
    assert isinstance(bone, UnigramOrWordPieceTokenizer)
    tokens = set(bone.vocab)
    longer = {token for token in tokens if len(token) > 1}
    lowest = min(bone.scores.values())
    assert longer - {"<s>", "<pad>", "</s>", "<unk>", "<mask>"} <= {
        token for token, token_id in bone.vocab.items() if bone.scores[token_id] == lowest
    }
    ordinary = {t: s for t, s in scores(xlm_r).items() if not t.startswith("<")}
    assert lowest == min(ordinary.values())


def test_a_character_only_inside_longer_tokens_keeps_these(bert: Backend) -> None:
    data = json.loads(bert.to_str())
    vocab = data["model"]["vocab"]
    assert "##q" not in vocab
    last = max(vocab.values())
    vocab |= {"##qu": last + 1, "quick": last + 2}
    data["added_tokens"] = [t for t in data["added_tokens"] if t["id"] <= last]
    base = Backend.from_str(json.dumps(data))
    bone = pruned(base, None).tokenizer
    assert "##qu" in bone.vocab
    assert "quick" in bone.vocab  # "q" begins no token but this one
    assert bone.backend.encode("quick", add_special_tokens=False).tokens == ["quick"]


def test_unused_tokens_may_go_and_may_be_kept(bert: Backend) -> None:
    bone = pruned(bert, None).tokenizer
    assert "[unused0]" not in bone.vocab
    kept = pruned(bert, None, keep=["[unused0]", "script:Devanagari"]).tokenizer
    assert "[unused0]" in kept.vocab
    hindi = [token for token in bert.get_vocab() if "क" in token]
    assert hindi
    assert set(hindi) <= kept.vocab.keys()


def test_characters_that_text_does_not_have_may_go_where_asked(xlm_r: Backend) -> None:
    english = Corpus.from_texts({"en": ENGLISH})
    n = most(xlm_r, english, drop_unseen_characters=True)
    assert most(xlm_r, english) < n
    bone = prune(xlm_r, english, n_tokens=n, drop_unseen_characters=True)
    assert "ब" not in bone.vocab
    assert decoded(bone.backend, ENGLISH) == decoded(xlm_r, ENGLISH)
    assert bone.vocab["<unk>"] in bone.backend.encode("ब", add_special_tokens=False).ids


def test_a_language_to_keep_is_encoded_as_before(plain: Backend) -> None:
    small = pruned(plain, None, keep=["language:hi"]).tokenizer.backend
    for text in HINDI:
        assert small.encode(text).tokens == plain.encode(text).tokens
    assert any(small.encode(text).tokens != plain.encode(text).tokens for text in ENGLISH)


def test_the_folder_is_loaded_by_auto_tokenizer(plain: Backend, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]" if "[PAD]" in plain.get_vocab() else "<pad>"
    )
    tokenizer = prune(fast, CORPUS, n_tokens=20)
    folder = tokenizer.save_pretrained(tmp_path / "out")
    auto = transformers.AutoTokenizer.from_pretrained(str(folder))
    for text in TEXTS:
        assert auto(text).input_ids == tokenizer.backend.encode(text).ids
    assert auto.pad_token_id == tokenizer.vocab[fast.pad_token]
    has_segments = "[CLS]" in plain.get_vocab()
    assert ("token_type_ids" in auto("the cat")) == has_segments
    again = prune(folder, CORPUS, n_tokens=1)
    assert again.vocab_size == tokenizer.vocab_size - 1


def test_word_piece_may_have_holes_and_unigram_not(bert: Backend, t5: Backend) -> None:
    small = prune(bert, CORPUS, n_tokens=20, keep_ids=True)
    old = bert.get_vocab()
    assert all(old[token] == token_id for token, token_id in small.vocab.items())
    assert small.backend.get_vocab() == small.vocab
    with pytest.raises(ValueError, match="Unigram tokenizer: its ids are places in a list"):
        prune(t5, CORPUS, n_tokens=20, keep_ids=True)


def test_added_tokens_keep_their_ids_beside_holes(bert: Backend) -> None:
    bert.add_special_tokens(["<new>"])
    small = prune(bert, CORPUS, n_tokens=20, keep_ids=True)
    assert small.backend.token_to_id("<new>") == bert.token_to_id("<new>")
    assert [t.id for t in small.added_tokens if t.content == "<new>"] == [small.row_count - 1]


def test_the_verb_and_the_chain_of_maps(
    plain: Backend, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "base").mkdir()
    plain.save(str(tmp_path / "base" / "tokenizer.json"))
    (tmp_path / "text.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    for source, out in (("base", "once"), ("once", "twice")):
        argv = ["prune", str(tmp_path / source), "--corpus", str(tmp_path / "text.txt")]
        assert main([*argv, "--n-tokens", "9", "-o", str(tmp_path / out), "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert (result["n_removed"], result["round_trip_failures"]) == (9, 0)
    mapped = id_map.load(tmp_path / "twice")
    base, twice = (open_tokenizer(tmp_path / name) for name in ("base", "twice"))
    mapped.require(base.fingerprint, twice.fingerprint)  # type: ignore[union-attr]
    assert mapped.n_kept == plain.get_vocab_size() - 18


def test_what_makes_no_sense_for_these_kinds_is_refused(plain: Backend, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no order 'merge'"):
        prune(plain, CORPUS, n_tokens=1, order="merge")
    with pytest.raises(ValueError, match="no merges that could fail"):
        prune(plain, CORPUS, n_tokens=1, unreachable_first=True)


def test_other_kinds_are_refused(word_level: Path) -> None:
    message = "the model is of type 'WordLevel'; prune takes BPE, Unigram and WordPiece"
    with pytest.raises(InvalidTokenizerError, match=message):
        prune(word_level, CORPUS, n_tokens=1)
    with pytest.raises(InvalidTokenizerError, match=message):
        prune(Backend.from_file(str(word_level / "tokenizer.json")), CORPUS, n_tokens=1)


def test_orders_by_id_need_no_text(t5: Backend) -> None:
    removed = prune_with_report(t5, None, PruningOptions(n_tokens=5, order="id")).removed.tolist()
    assert removed == sorted(removed, reverse=True)
    with pytest.raises(ValueError, match="looks at text"):
        prune(t5, n_tokens=5)


def test_a_folder_of_counts_is_refused(t5: Backend, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from vocabshift.cli.main import main
    from vocabshift.text.count_folder import CountFolder

    (tmp_path / "a.txt").write_text("\n".join(ENGLISH))
    assert main(["count", str(tmp_path / "a.txt"), "-o", str(tmp_path / "counts")]) == 0
    with pytest.raises(CorpusError, match="give a corpus"):
        prune(t5, CountFolder.open(tmp_path / "counts"), n_tokens=1)
