"""Per-line counts."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers

from reference import metrics as slow
from strategies import examples, text
from vocabshift.evaluation.lines import counts as module
from vocabshift.evaluation.lines.counts import Counts, count_lines
from vocabshift.evaluation.lines.subject import engine_of
from vocabshift.evaluation.lines.texts import bins_of_lines, bins_of_words, count_words
from vocabshift.evaluation.lines.token_facts import TokenFacts
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer import engine as engine_module
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.engine import Engine
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.token_spans import token_spans
from vocabshift.tokenizer.tokenizer import Tokenizer


def counted(tokenizer, lines, **options) -> Counts:
    engine = engine_of(tokenizer)
    return count_lines(engine, TokenFacts(engine), lines, **options)


def of_json(model: dict, **components) -> Backend:
    document = {"version": "1.0", "added_tokens": [], "model": model, **components}
    return Backend.from_str(json.dumps(document))


def test_counts_by_hand(make_tokenizer) -> None:
    """Tokens, bytes, characters and words of two lines are what one counts by hand."""
    tokenizer = make_tokenizer([("a", "b"), ("Ġ", "ab")])
    found = counted(tokenizer, ["ab ab", "é c"]).lines
    assert [2, 4] == found.n_tokens.tolist()  # ab|Ġab, Ã|©|Ġ|c
    assert [0, 2] == found.n_single_character_tokens.tolist()
    assert [5, 4] == found.n_bytes.tolist()
    assert [5, 3] == found.n_characters.tolist()
    assert [2, 2] == found.n_words.tolist()
    assert [0, 1] == found.n_fragmented_words.tolist()  # é, in two bytes
    assert [0, 0] == found.is_lost.tolist()
    assert 2 == found.n_lines


def test_a_superword_does_not_fragment(make_tokenizer) -> None:
    """A token over several words leaves them whole, and is shared by them."""
    tokenizer = make_tokenizer([("a", "Ġ"), ("aĠ", "b"), ("c", "d")])
    tokenizer = dataclasses.replace(
        tokenizer, pre_tokenizer={**tokenizer.pre_tokenizer, "use_regex": False}
    )
    lines = ["a b cd ef", "cd"]
    bins = np.zeros(5, dtype=np.uint8)
    found = counted(tokenizer, lines, bins=bins).lines
    assert [6, 1] == found.n_tokens.tolist()  # aĠb|Ġ|cd|Ġ|e|f
    assert [1, 0] == found.n_superword_tokens.tolist()
    assert [1, 0] == found.n_fragmented_words.tolist()
    assert [6.0, 1.0] == found.tokens_in_bin[:, 0].tolist()
    assert [4, 1] == found.words_in_bin[:, 0].tolist()


@pytest.fixture(scope="module")
def engines() -> dict[str, Engine]:
    """Small tokenizers of every kind, with superwords, composition, unknown text."""
    merges = [("Ġ", "a"), ("Ġa", "b"), ("a", "b"), ("à", "¤"), ("à¤", "ķ"), ("e", "Ġ"), ("eĠ", "s")]
    tokens = [*byte_level.ALPHABET, *("".join(merge) for merge in merges)]
    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    bpe = Tokenizer(
        BpeModel({token: i for i, token in enumerate(tokens)}, tuple(merges)),
        pre_tokenizer={**spec, "use_regex": False},
        decoder={**spec, "use_regex": True},
    )
    scored = [["<unk>", 0.0], *([c, -3.0] for c in "▁abestzEकखतम"), ["▁ab", -2.0], ["st", -1.0]]
    unigram = Backend(models.Unigram([tuple(entry) for entry in scored], 0, False))
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    words = {"[UNK]": 0, "ab": 1, "##s": 2, "a": 3, "##b": 4, "est": 5, "क": 6, "##ख": 7}
    word_piece = Backend(models.WordPiece(words, unk_token="[UNK]"))
    word_piece.normalizer = normalizers.Lowercase()
    word_piece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    word_piece.decoder = decoders.WordPiece()
    composed = dataclasses.replace(bpe, normalizer={"type": "NFC"})
    return {
        "bpe": engine_of(bpe),
        "nfc": engine_of(composed),
        "unigram": engine_of(unigram),
        "word piece": engine_of(word_piece),
    }


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word piece"])
@given(data=text)
@examples(60)
def test_words_agree_with_the_definition(engines, kind: str, data: str) -> None:
    """Fragmented words and tokens of words are those of the plain definition, in any script."""
    lines = [line for line in data.split("\n") if line.strip()]
    if not lines:
        return
    engine = engines[kind]
    n_words = sum(len(line.split()) for line in lines)
    bins = np.arange(n_words, dtype=np.int64) % 5
    found = counted(engine, lines, bins=bins.astype(np.uint8)).lines
    spans = [
        list(zip(s.starts.tolist(), s.ends.tolist(), strict=True))
        for s in token_spans(engine, lines)
    ]
    pairs = list(zip(lines, spans, strict=True))
    assert [slow.fragmented_words(*pair) for pair in pairs] == found.n_fragmented_words.tolist()
    assert [len(line.split()) for line in lines] == found.n_words.tolist()
    expected = np.zeros((len(lines), 6))
    word = 0
    for row, (line, tokens) in enumerate(pairs):
        for share in slow.tokens_of_words(line, tokens):
            expected[row, bins[word]] += share
            word += 1
    np.testing.assert_allclose(found.tokens_in_bin, expected, atol=1e-9)
    np.testing.assert_allclose(found.tokens_in_bin.sum(axis=1), found.n_tokens)


def test_batches_change_nothing(engines, monkeypatch) -> None:
    """Many small batches give the counts of one large batch."""
    lines = ["ab " * n + "est\u0301 क" for n in range(1, 40)]
    bins = bins_of_lines(lines, bins_of_words(count_words(lines)))
    whole = counted(engines["nfc"], lines, bins=bins)
    monkeypatch.setattr(module, "_BATCH_CHARACTERS", 7)
    split = counted(engines["nfc"], lines, bins=bins)
    for name in whole.lines.__slots__:
        np.testing.assert_array_equal(getattr(whole.lines, name), getattr(split.lines, name))
    assert whole.ids.tolist() == split.ids.tolist()
    assert whole.offsets.tolist() == split.offsets.tolist()


def test_no_bos_or_eos(make_tokenizer) -> None:
    """The template of a tokenizer is not applied."""
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    }
    plain = make_tokenizer(added_tokens=[AddedToken("<s>", 256)])
    tokenizer = dataclasses.replace(plain, post_processor=template)
    assert 3 == len(tokenizer.backend.encode("ab").ids)
    ids, offsets = engine_of(tokenizer).encode_batch(["ab", "", "<s>a"])
    assert [0, 2, 2, 4] == offsets.tolist()
    assert 256 == ids[2]  # "<s>" in a text is the token, as everywhere
    assert [2, 2] == counted(tokenizer, ["ab", "<s>a"]).lines.n_tokens.tolist()


def test_single_character_tokens(make_tokenizer) -> None:
    """Whole characters count, pieces of them and longer tokens do not; a space is one."""
    tokenizer = make_tokenizer([("Ã", "©"), ("Ġ", "a")], added_tokens=[AddedToken("§", 258)])
    flags = TokenFacts(engine_of(tokenizer)).is_single_character
    vocab = tokenizer.model.vocab
    assert 259 == len(flags)
    expected = {"a": True, "Ġ": True, "Ã": False, "Ã©": True, "Ġa": False}
    assert expected == {token: bool(flags[vocab[token]]) for token in expected}
    assert flags[258]


def test_single_character_tokens_of_other_spellings() -> None:
    """Byte pieces stand for ASCII only; a vocabulary that lacks bytes is still spelled in them."""
    tokens = ["<0x41>", "<0xC3>", "▁", "▁a", "é"]
    model = BpeModel({token: i for i, token in enumerate(tokens)}, (), byte_fallback=True)
    pieces = Tokenizer(
        model, decoder={"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    )
    flags = TokenFacts(engine_of(pieces)).is_single_character
    assert [True, False, True, False, True] == flags.tolist()
    few = BpeModel({"Ã": 0, "©": 1, "Ã©": 2}, (("Ã", "©"),))
    images = Tokenizer(few, decoder={"type": "ByteLevel"})
    assert [False, False, True] == TokenFacts(engine_of(images)).is_single_character.tolist()


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word piece"])
def test_facts_by_hand(engines, kind: str, monkeypatch) -> None:
    """Superwords are those of the plain definition; tokens joined are their bytes."""
    engine = engines[kind]
    facts = TokenFacts(engine)
    assert [slow.is_superword(data) for data in engine.spelled] == facts.is_superword.tolist()
    ids = np.arange(engine.row_count, dtype=np.int32)
    assert b"".join(engine.spelled) == engine.join(ids)
    assert b"" == engine.join(ids[:0])
    monkeypatch.setattr(engine_module, "_JOINED_AT_ONCE", 3)
    for n in range(8):
        assert b"".join(engine.spelled[:n]) == engine.join(ids[:n])


LOSSES = {  # kind -> (line, whether it is lost, characters)
    "bpe": [("ab é", 0, 0), ("e\u0301", 0, 0)],
    "nfc": [("e\u0301 x", 0, 0), ("\u212b", 0, 0), ("é", 0, 0)],  # composed, yet the same
    "unigram": [("ab", 0, 0), (" ab", 0, 0), ("ab 漢字", 1, 2), ("ab  st", 0, 0)],
    "word piece": [("ab", 0, 0), ("Ab", 1, 1), ("ab est", 0, 0), ("ab漢", 1, 3), ("ab  est", 1, 1)],
}


@pytest.mark.parametrize(
    ("kind", "line", "is_lost", "n_lost"),
    [(kind, *case) for kind, cases in LOSSES.items() for case in cases],
)
def test_losses(engines, kind: str, line: str, is_lost: int, n_lost: int) -> None:
    """Composition and the dummy prefix are no loss; folded case, unknown text and spaces are."""
    found = counted(engines[kind], [line]).lines
    assert (is_lost, n_lost) == (found.is_lost[0], found.n_lost_characters[0])


def test_losses_agree_with_decoding(engines) -> None:
    """A line is lost exactly where `decode` does not give it back."""
    import unicodedata

    def same(line: str) -> str:
        return unicodedata.normalize("NFC", line)

    lines = ["ab ab", "e\u0301st", "क्ख 漢 z", "est  ab", "zzz", "<unk> a", "\u1e9b\u0323", "a b"]
    for engine in engines.values():
        ids, offsets = engine.encode_batch(lines)
        backs = engine.decode_batch(ids, offsets)
        lost = [
            int(same(back) not in (same(line), f" {same(line)}"))
            for line, back in zip(lines, backs, strict=True)
        ]
        assert lost == counted(engine, lines).lines.is_lost.tolist()


def test_unknown_text_is_counted(engines) -> None:
    """Each token that stands for unknown text counts, a tokenizer without one has none."""
    assert [2] == counted(engines["word piece"], ["漢 ab 漢"]).lines.n_unknown_tokens.tolist()
    assert [0] == counted(engines["bpe"], ["漢 ab"]).lines.n_unknown_tokens.tolist()
