"""`vocabshift transfer --details`: every token of both tokenizers, in one list or another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import small_models  # noqa: E402
import vocabshift as vs  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import token_lists  # noqa: E402
from vocabshift.tokenizer.id_map import TokenIdMap  # noqa: E402
from vocabshift.tokenizer.token_bytes import token_bytes  # noqa: E402


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model of English, and a tokenizer of Hindi beside it."""
    old = small_models.old_tokenizer()
    small_models.new_tokenizer().save_pretrained(tmp_path / "new")
    return small_models.save(small_models.build("llama", old), old, tmp_path / "model")


def lists(capsys: Any, source: Path, out: Path, *words: str) -> tuple[dict[str, Any], Any]:
    """What --json prints, and its lists."""
    capsys.readouterr()
    argv = ["transfer", str(source), str(source.parent / "new"), "-o", str(out), "--details"]
    assert 0 == main([*argv, *words, "--json"]), capsys.readouterr().err
    result = json.loads(capsys.readouterr().out)
    return result, result["details"]


def test_every_token_is_in_a_list(source: Path, tmp_path: Path, capsys: Any) -> None:
    """Counts are the report's; names and ids are the tokenizers'; pieces spell the new token."""
    result, details = lists(capsys, source, tmp_path / "out")
    old, new = vs.load_tokenizer(source), vs.load_tokenizer(tmp_path / "out")
    for key, name in (("n_copied", "kept"), ("n_initialized", "added"), ("n_removed", "removed")):
        assert result[key] == len(details[name]) > 0
    new_ids = {**new.model.vocab, **small_models.special_ids(new)}
    old_ids = {**old.model.vocab, **small_models.special_ids(old)}
    rows = details["kept"] + details["added"]
    assert new_ids == {row["token"]: row["id"] for row in rows}
    gone = {row["token"]: row["old_id"] for row in details["removed"]}
    assert old_ids == gone | {row["token"]: row["old_id"] for row in details["kept"]}
    data, old_data = token_bytes(new), token_bytes(old)
    for row in details["added"]:
        assert data[row["id"]] == b"".join(old_data[old_ids[piece]] for piece in row["pieces"])


def test_a_dry_run_says_the_same(source: Path, tmp_path: Path, capsys: Any) -> None:
    """Overrides and all, before anything is written."""
    file = tmp_path / "overrides.json"
    words = small_models.new_tokenizer().model.vocab
    token = max(words, key=len)
    file.write_text(json.dumps({token: ["a", "b"]}))
    extra = ("--overrides", str(file))
    _, planned = lists(capsys, source, tmp_path / "out", "--dry-run", *extra)
    assert not (tmp_path / "out").exists()
    _, done = lists(capsys, source, tmp_path / "out", *extra)
    assert planned == done
    (row,) = (row for row in done["added"] if row["token"] == token)
    assert ["a", "b"] == row["pieces"]


def test_a_token_map_decides(source: Path, tmp_path: Path, capsys: Any) -> None:
    """What `extend` says to be kept is kept, and only the new tokens are made."""
    (tmp_path / "hi.txt").write_text("\n".join(small_models.HINDI), encoding="utf-8")
    argv = ["extend", source, "--corpus", tmp_path / "hi.txt", "--n-tokens", "7"]
    assert 0 == main([str(word) for word in (*argv, "-o", tmp_path / "new", "--force")])
    result, details = lists(capsys, source, tmp_path / "out")
    assert (7, 0, []) == (result["n_initialized"], result["n_removed"], details["removed"])
    assert all(row["id"] == row["old_id"] for row in details["kept"])


def test_a_map_of_other_tokenizers_is_refused(source: Path, tmp_path: Path) -> None:
    """Its ids mean other tokens: lists made by it would be wrong line by line."""
    old, new = vs.load_tokenizer(source), vs.load_tokenizer(tmp_path / "new")
    third = small_models.train(small_models.HINDI, 290)
    pairs = {i: i for i in range(200)}
    own = TokenIdMap.between(old, new, pairs)
    for pair in ((old, third), (third, new)):
        with pytest.raises(VocabMismatchError):
            token_lists(source, new, TransferOptions(id_map=TokenIdMap.between(*pair, pairs)))
    assert 200 <= len(token_lists(source, new, TransferOptions(id_map=own)).kept)


def test_people_see_a_few(source: Path, tmp_path: Path, capsys: Any) -> None:
    """A handful of each list, with how many there are; --back has no lists."""
    argv = ["transfer", source, tmp_path / "new", "-o", tmp_path / "out", "--details"]
    assert 0 == main([str(word) for word in argv])
    shown = capsys.readouterr().out
    assert "added, for example" in shown
    assert "(of 2" in shown  # two hundred and more are kept
    assert "ambiguous, for example" in shown
    argv = ["transfer", source, "--back", "--initial", source, "-o", tmp_path / "x", "--details"]
    assert 2 == main([str(word) for word in argv])
    assert "--back takes no TOKENIZER, no other option" in capsys.readouterr().err


def test_ambiguous_tokens_name_their_choice(tmp_path: Path, capsys: Any) -> None:
    """From SentencePiece, whose "a" is "<0x61>" too: both are told, and the row that was taken."""
    old = small_models.sentencepiece_tokenizer(tmp_path)
    source = small_models.save(small_models.build("llama", old), old, tmp_path / "model")
    small_models.new_tokenizer().save_pretrained(tmp_path / "new")
    result, details = lists(capsys, source, tmp_path / "out")
    assert result["n_ambiguous"] == len(details["ambiguous"]) > 0
    by_token = {row["token"]: row for row in details["ambiguous"]}
    vocab = old.model.vocab
    both = sorted([vocab["a"], vocab["<0x61>"]])
    assert (vocab["a"], both) == (by_token["a"]["old_id"], by_token["a"]["old_ids"])
    known = {row["token"]: row["old_id"] for row in details["kept"]}
    assert all(known[token] == row["old_id"] for token, row in by_token.items())
