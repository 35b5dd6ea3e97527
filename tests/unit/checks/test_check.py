"""Every invariant of a tokenizer, each found where it is broken and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers

from real_text import vendor
from vendor_checks import vendor_param
from vocabshift.checks.check import check
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import get_pattern, to_spec
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram import Scored, unigram_tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer
from vocabshift.workflows.tokenizers import advice, check_tokenizers


def holding(*tokens: str) -> Tokenizer:
    """A byte-level tokenizer without cuts that holds these tokens and what they are made from."""
    merges: list[tuple[str, str]] = []
    for token in map(byte_level.to_image, (token.encode() for token in tokens)):
        for end in range(2, len(token) + 1):
            pair = (token[: end - 1], token[end - 1])
            if pair not in merges:
                merges.append(pair)
    vocab = dict.fromkeys([*byte_level.ALPHABET, *(left + right for left, right in merges)])
    model = BpeModel({token: i for i, token in enumerate(vocab)}, tuple(merges))
    return Tokenizer(
        model,
        pre_tokenizer=to_spec(()),
        decoder={"type": "ByteLevel"} | dict.fromkeys(("add_prefix_space", "trim_offsets"), True),
        name="mine",
    )


def test_a_sound_tokenizer() -> None:
    report = check(holding("ab"), Corpus.from_texts(["ab क 😀", "\x00\r\n"]))
    assert "mine" == report.tokenizer
    assert 257 == report.vocab_size
    assert 256 == report.byte_pieces
    assert () == report.unreachable
    assert () == report.unreachable_by_pipeline
    assert () == report.partial_utf8
    assert () == report.superwords
    assert () == report.terminal_spanning
    assert 0 == report.round_trip_failures
    assert report.ok


def test_superwords_hold_text_on_both_sides_of_a_space() -> None:
    report = check(holding("a b", " a", "  ", "a ", "! "))
    assert ("aĠb",) == report.superwords


def test_partial_characters() -> None:
    """ "क" is made from its first two bytes."""
    report = check(holding("क"))
    assert (byte_level.to_image("क".encode()[:2]),) == report.partial_utf8
    assert report.ok


@pytest.mark.parametrize(
    ("token", "spans"),
    [
        ("। क", True),
        ("।क", True),
        ("?a", True),
        ("! a", True),
        ("!) a", True),
        ("?» ", False),
        ("?)", False),
        ("?!", False),
        ("...", False),
        ("। ", False),
        ("a.b", False),
        (". a", True),
        ('." a', True),
        ("3.5", False),
        ("a.", False),
        ("….", False),
        (", a", False),
        ("؟۔", False),
    ],
)
def test_terminal_spanning(token: str, spans: bool) -> None:
    """A terminal, then closing marks and whitespace, then a further character."""
    image = byte_level.to_image(token.encode())
    assert spans == (image in check(holding(token)).terminal_spanning)


def test_half_of_a_further_terminal_spans_nothing() -> None:
    """A run of terminals is one sentence end; its tokens may stop inside a character."""
    assert () == check(holding("?։")).terminal_spanning


def test_unreachable_tokens_are_not_ok() -> None:
    sound = holding("ab")
    size = sound.vocab_size
    broken = replace(sound, model=replace(sound.model, vocab={**sound.model.vocab, "zz": size}))
    report = check(broken)
    assert ("zz",) == report.unreachable
    assert ("zz",) == report.unreachable_by_pipeline
    assert not report.ok


def test_round_trip_failures_are_counted_in_documents() -> None:
    composing = replace(holding("ab"), normalizer={"type": "NFC"})
    corpus = Corpus.from_texts(["plain", "e\u0301", "é", "क\u093c and e\u0301"])
    assert 2 == check(composing, corpus, threads=2).round_trip_failures
    assert not check(composing, corpus).ok
    assert 0 == check(composing).round_trip_failures


def test_tokens_that_only_merge_skipping_yields() -> None:
    """A part of a character that no merge makes is no whole piece of text either."""
    sound = holding("ab")
    vocab = {**sound.model.vocab, "zz": 257, byte_level.to_image(b"\xa4\x95"): 258}
    model = replace(sound.model, vocab=vocab)
    assert () == check(replace(sound, model=model)).only_by_merge_skipping
    report = check(replace(sound, model=replace(model, ignore_merges=True)))
    assert ("zz",) == report.only_by_merge_skipping
    assert ("zz", byte_level.to_image(b"\xa4\x95")) == report.unreachable
    assert () == report.unreachable_by_pipeline


def test_a_token_of_rare_contexts_is_told_and_is_no_fault() -> None:
    """A newline goes with the "!" before it, but not with "!!"."""
    tokenizer = replace(holding("!!", "!\n", "\n\n/"), pre_tokenizer=to_spec(get_pattern("o200k")))
    report = check(tokenizer)
    assert ("ĊĊ/",) == report.unreachable_by_pipeline == report.only_in_rare_contexts
    assert report.ok


def test_bytes_that_are_missing() -> None:
    sound = holding("ab")
    vocab = {token: i for token, i in sound.model.vocab.items() if token not in ("!", "Ġ")}
    report = check(replace(sound, model=replace(sound.model, vocab=vocab)))
    assert {"!", "Ġ"} == set(report.missing_byte_pieces)
    assert ("20", "21") == report.losing_bytes
    assert ("U+0020", "U+0021") == report.lost_characters
    assert 254 == report.byte_pieces
    assert (0, 220) == report.id_holes
    assert not report.ok


def test_missing_bytes_that_lose_nothing() -> None:
    """No UTF-8 has C0 or FF, and F1 begins only unassigned characters: the tokenizer is sound."""
    sound = holding("ab")
    gone = {byte_level.to_image(bytes([byte])) for byte in (0xC0, 0xF1, 0xFF)}
    vocab = {token: i for token, i in sound.model.vocab.items() if token not in gone}
    report = check(replace(sound, model=replace(sound.model, vocab=vocab)))
    assert gone == set(report.missing_byte_pieces)
    assert ((), ("F1",), ("C0", "FF")) == (
        report.losing_bytes,
        report.unassigned_bytes,
        report.never_bytes,
    )
    assert () == report.lost_characters
    assert report.ok


def test_byte_pieces_of_sentencepiece(make_metaspace: Callable[..., Tokenizer]) -> None:
    """ "<0x41>" and "A" are no duplicates, and no byte piece is unreachable."""
    tokenizer = make_metaspace("▁ab")
    report = check(tokenizer)
    assert ((), (), (), 256) == (
        report.missing_byte_pieces,
        report.duplicates,
        report.unreachable,
        report.byte_pieces,
    )
    assert report.ok
    vocab = dict(tokenizer.model.vocab)
    del vocab["<0x0A>"]
    damaged = replace(tokenizer, model=replace(tokenizer.model, vocab=vocab))
    assert ("<0x0A>",) == check(damaged).missing_byte_pieces
    without_fallback = replace(damaged.model, byte_fallback=False)
    assert () == check(replace(damaged, model=without_fallback)).missing_byte_pieces


def test_duplicates_and_shadowed_tokens() -> None:
    """An added token with the text of a token is its double; those that hold it are cut. One that
    matches single words only leaves "x cd" to the model."""
    sound = holding(" ab", "x abc", "ba", " cd")
    added = (
        AddedToken(" ab", sound.row_count, special=False),
        AddedToken("<end>", sound.row_count + 1),
        AddedToken(" cd", sound.row_count + 2, special=False, single_word=True),
    )
    report = check(replace(sound, added_tokens=added))
    assert ("Ġab", "Ġcd", " ab", " cd") == report.duplicates
    assert ("Ġab", "xĠab", "xĠabc") == report.shadowed
    assert ("<end>",) == report.special_tokens
    assert (" ab", " cd") == report.other_added_tokens
    assert () == check(sound).duplicates
    assert () == check(sound).shadowed


def test_special_tokens_inside_the_vocabulary_are_no_tokens_of_text() -> None:
    sound = holding("ab")
    vocab = {**sound.model.vocab, "<s>": 257}
    model = replace(sound.model, vocab=vocab)
    report = check(replace(sound, model=model, added_tokens=(AddedToken("<s>", 257),)))
    assert ("<s>",) == report.special_tokens
    assert () == report.unreachable == report.shadowed == report.duplicates
    assert report.ok


def test_rows_and_holes() -> None:
    sound = holding("ab")
    added = (AddedToken("<x>", 260),)
    tokenizer = replace(sound, added_tokens=added)
    report = check(tokenizer, model_rows=320)
    assert (261, (257, 258, 259), 59) == (report.rows, report.id_holes, report.padding)
    assert (320, 0, True) == (report.model_rows, report.missing_rows, report.ok)
    short = check(tokenizer, model_rows=260)
    assert (1, False) == (short.missing_rows, short.ok)
    assert 0 == check(tokenizer).missing_rows


def test_text_by_language() -> None:
    """Lines, bytes, tokens and ceilings of each language, and the lines that are lost."""
    tokenizer = replace(
        holding("ab"), normalizer={"type": "NFC"}, pre_tokenizer=to_spec(get_pattern("gpt2"))
    )
    corpus = Corpus.from_texts({"en": ["ab", "ab cd"], "hi": ["e\u0301", "कि", "ab"]})
    english, hindi = check(tokenizer, corpus, threads=2).languages
    assert ("en", 2, 7, 5, 0) == (
        english.language,
        english.lines,
        english.n_bytes,
        english.tokens,
        english.round_trip_failures,
    )
    assert 7 / 3 == english.ceiling == english.repaired_ceiling
    assert (7 / 5) / (7 / 3) == pytest.approx(english.reached)
    assert not english.is_bound
    assert (3, 11, 1, ["e\u0301"]) == (
        hindi.lines,
        hindi.n_bytes,
        hindi.round_trip_failures,
        hindi.lost_lines,
    )
    assert (11 / 4, 11 / 3) == (hindi.ceiling, hindi.repaired_ceiling)
    assert hindi.is_bound
    assert 2.75 == hindi.to_dict()["ceiling_bytes_per_token"]
    assert "lost_lines" not in hindi.to_dict()


def test_text_of_sentencepiece(make_metaspace: Callable[..., Tokenizer]) -> None:
    """Groups of tokens that may ever merge are its words, and nothing is to be repaired."""
    (row,) = check(make_metaspace("▁ab"), Corpus.from_texts(["ab c"])).languages
    assert (2.0, None, False) == (row.ceiling, row.repaired_ceiling, row.is_bound)
    assert row.to_dict()["repaired_ceiling_bytes_per_token"] is None


def test_only_the_first_lost_lines_are_kept() -> None:
    composing = replace(holding("ab"), normalizer={"type": "NFC"})
    lines = [f"e\u0301{i}" for i in range(50)]
    report = check(composing, Corpus.from_texts(lines))
    assert (50, lines[:20]) == (report.round_trip_failures, report.languages[0].lost_lines)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "unreachable", "by_pipeline", "rare", "by_skipping"),
    [
        vendor_param("llama3", 588, 0, 0, 588, name="llama3"),
        vendor_param("llama4", 0, 5, 2, 0, name="llama4"),
        vendor_param("qwen25", 0, 1_909, 0, 0, name="qwen25"),
        vendor_param("mistral-nemo", 0, 0, 0, 0, name="mistral-nemo"),
        vendor_param("mistral7b-v1", 0, 0, 0, 0, name="mistral7b-v1"),
        vendor_param("mistral7b-v3", 0, 0, 0, 0, name="mistral7b-v3"),
    ],
)
def test_vendor_tokenizers(
    shared_data: Path, name: str, unreachable: int, by_pipeline: int, rare: int, by_skipping: int
) -> None:
    """Figures that others found too; no byte is missing, and no two tokens are the same."""
    report = check(vendor(shared_data / "tokenizers-hf" / name))
    assert (unreachable, by_pipeline, rare, by_skipping) == (
        len(report.unreachable),
        len(report.unreachable_by_pipeline),
        len(report.only_in_rare_contexts),
        len(report.only_by_merge_skipping),
    )
    assert 256 == report.byte_pieces
    assert () == report.missing_byte_pieces == report.shadowed == report.id_holes
    assert report.ok == (not unreachable and by_pipeline == rare)


def unigram(*pieces: tuple[str, float]) -> UnigramOrWordPieceTokenizer:
    """A model of these pieces, all bytes and an unknown piece."""
    fixed = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names = (*fixed, *(piece for piece, _ in pieces))
    scored = Scored(names, (*[-20.0] * 257, *(score for _, score in pieces)))
    return unigram_tokenizer(scored, normalizer=None, name="plain")


def test_a_sound_unigram_model(tmp_path: Path) -> None:
    """From a path as well; a "▁" in text comes back as a space, and is told."""
    tokenizer = unigram(("▁", -3.0), ("▁a", -1.0), ("b", -1.0), ("▁ab", -1.5), ("▁a.▁b", -1.0))
    report = check(tokenizer.save_pretrained(tmp_path / "plain"), Corpus.from_texts(["ab क ab"]))
    assert report.ok
    assert (262, 256, 262) == (report.vocab_size, report.byte_pieces, report.rows)
    assert report.unreachable_by_pipeline is None
    assert ("▁a.▁b",) == report.superwords == report.terminal_spanning
    (row,) = report.languages
    assert (1, 0, 9, 6) == (row.lines, row.round_trip_failures, row.n_bytes, row.tokens)
    assert row.ceiling is None
    lost = check(tokenizer, Corpus.from_texts(["a▁b", "ab"]))
    assert 1 == lost.round_trip_failures
    assert not lost.ok


def test_faults_of_a_unigram_model() -> None:
    tokenizer = unigram(("a", -1.0), ("b", -1.0), ("ab", -9.0), ("▁x", -1.0))
    assert ("ab",) == check(tokenizer).unreachable
    assert not check(tokenizer).ok
    added = tokenizer.with_added([AddedToken("b", 258), AddedToken("x y", 261, special=False)])
    report = check(added)
    assert ("b",) == report.special_tokens
    assert ("x y",) == report.other_added_tokens
    assert ("ab",) == report.shadowed
    document = added.document
    model = dict(document["model"])
    model["vocab"] = [entry for entry in model["vocab"] if entry[0] != "<0x41>"]
    shorter = UnigramOrWordPieceTokenizer.from_json(
        {**document, "model": model, "added_tokens": []}
    )
    assert ("<0x41>",) == check(shorter).missing_byte_pieces


def test_a_word_piece_model(tmp_path: Path) -> None:
    """Lower case and spaces: what it loses is told, and each token is reached."""
    vocab = {"[UNK]": 0, "a": 1, "##b": 2, "ab": 3}
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    backend.decoder = tokenizers.decoders.WordPiece()
    report = check(backend, Corpus.from_texts(["ab", "abb a", "abc"]))
    assert (4, 0, ()) == (report.vocab_size, report.byte_pieces, report.unreachable)
    assert 1 == report.round_trip_failures  # "abc" is unknown
    assert ["abc"] == report.languages[0].lost_lines
    assert report.lost_characters is None  # nearly all, and without text no fault
    assert check(backend).ok
    backend.save(str(tmp_path / "tokenizer.json"))
    (entry,) = check_tokenizers([tmp_path / "tokenizer.json"])
    assert entry["lost_characters"] is None
    assert any("become its unknown token" in line for line in advice(entry))
