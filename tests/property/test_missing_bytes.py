"""Vocabularies that lack bytes: no change of a tokenizer loses a character that it did not lose.

What is lost is found by trying characters one by one (`reference.lost`).
"""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import lost as slow
from strategies import documents, examples
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import number_removable, prune_with_report
from vocabshift.surgery.checks import open_tokenizers
from vocabshift.surgery.matching import match
from vocabshift.surgery.options import TransferOptions
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.missing_bytes import lost_characters
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.workflows.adapt_tokenizer import adapt_tokenizer

GONE = (0xC0, 0xF5, 0xFF, 0xF1, 0xF2, 0x04, 0x1D, 0x7F, 0xC3, 0xD7, 0xE0, 0xF3, 0x81, 0xBF)
"""Never in UTF-8; of unassigned planes; controls; beginnings and inner bytes of characters."""

TRIED = (*range(0x250), *(c for c in slow.assigned()[0x250::701]))
TEXTS = ("the cat and the other cat sat by the heater", "עוד יום ועוד מכתב \x04 é", "एक और दिन")


@cache
def base(*, is_byte_level: bool) -> Tokenizer:
    """A byte-level tokenizer, or a SentencePiece one that falls back on bytes."""
    if is_byte_level:
        return BpeTrainer(vocab_size=300).train(Corpus.from_texts(TEXTS * 3))
    merges = [*("th", "at", "er", "ca", "ot", "se", "ad", "he", "oc", "do", "as"), "▁a", "▁t", "▁c"]
    merges += ["▁o", "▁d", "▁h", "▁s", "ea", "ha"]
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁acdehorst", *merges]
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    parts = {
        "normalizer": space,
        "decoder": {
            "type": "Sequence",
            "decoders": [back, {"type": "ByteFallback"}, {"type": "Fuse"}],
        },
        "model": {
            "type": "BPE",
            "vocab": {piece: i for i, piece in enumerate(pieces)},
            "merges": [list(pair) for pair in merges],
            "byte_fallback": True,
            "unk_token": "<unk>",
            "fuse_unk": True,
        },
    }
    return Tokenizer.from_json({"version": "1.0", "added_tokens": [], **parts})


def lacking(tokenizer: Tokenizer, data: set[int]) -> Tokenizer:
    """The tokenizer without the tokens of these bytes, and without what is made of them."""
    images = {byte_level.BYTE_IMAGES[byte] for byte in data} if tokenizer.pre_tokenizer else set()
    pieces = {f"<0x{byte:02X}>" for byte in data}
    vocab = tokenizer.vocab.items()
    return tokenizer.without([i for token, i in vocab if token in pieces or images & set(token)])


def lost(tokenizer: Tokenizer) -> set[int]:
    return slow.lost(tokenizer.backend, TRIED)


@given(st.booleans(), st.sets(st.sampled_from(GONE), min_size=1), documents(), st.data())
@pytest.mark.parametrize("way", ["prune", "extend", "adapt", "adapt, extend first"])
@examples(25)
def test_no_new_loss(
    way: str, is_byte_level: bool, gone: set[int], texts: list[str], data: st.DataObject
) -> None:
    """What is lost is at most what was lost, and nothing with complete_bytes."""
    whole = base(is_byte_level=is_byte_level)
    old = lacking(whole, gone)
    corpus = Corpus.from_texts([*TEXTS, *texts])
    before, at_best = lost(old), lost(whole)
    assert set(lost_characters(old).tolist()) & set(TRIED) == before - at_best
    complete = data.draw(st.booleans())
    n = number_removable(old)
    n_bytes = len(gone) if complete else 0
    if way == "prune":
        options = PruningOptions(n_tokens=data.draw(st.integers(1, n)), complete_bytes=complete)
        pruning = prune_with_report(old, corpus, options)
        new, facts = pruning.tokenizer, pruning.report.lost_characters
        assert isinstance(new, Tokenizer)
        pruning.id_map.check(old, new)
    elif way == "extend":
        extension = extend_with_report(
            old, corpus, ExtensionOptions(n_tokens=3, complete_bytes=complete)
        )
        new, facts = extension.tokenizer, extension.report.lost_characters
        extension.id_map.check(old, new)
    else:
        adapted = adapt_tokenizer(
            old,
            corpus,
            n_tokens=min(n, n_bytes + 2),
            first="extend" if "extend" in way else "prune",
            complete_bytes=complete,
            character_coverage=None,
        )
        new, facts = adapted.tokenizer, adapted.lost_characters
        assert new.row_count == old.row_count
        adapted.id_map.check(old, new)
    after = lost(new)
    assert after <= before
    if complete:
        assert after == at_best
    assert facts is not None
    assert facts.after == len(lost_characters(new))
    assert facts.after <= facts.before == len(lost_characters(old))


@given(st.booleans(), st.booleans(), *[st.sets(st.sampled_from(GONE)) for _ in range(2)])
@examples(40)
def test_a_swap_is_refused_only_for_what_it_would_lose(
    from_bytes: bool, to_bytes: bool, old_gone: set[int], new_gone: set[int]
) -> None:
    old = lacking(base(is_byte_level=from_bytes), old_gone)
    new = lacking(base(is_byte_level=to_bytes), new_gone)
    loses = not set(lost_characters(new).tolist()) <= set(lost_characters(old).tolist())
    if loses:
        with pytest.raises(ValueError, match="assigned characters that the old one keeps"):
            open_tokenizers(old, new, TransferOptions())
    else:
        assert open_tokenizers(old, new, TransferOptions()) == (old, new)
    _, complete = open_tokenizers(old, new, TransferOptions(complete_bytes=True))
    assert lost(complete) == lost(base(is_byte_level=to_bytes))
    sources = match(old, complete, {})
    spelled = complete.token_bytes
    unknown = {spelled[i] for i in sources.without_pieces.tolist()}
    assert all(set(data) <= old_gone for data in unknown)


def test_a_saved_tokenizer_with_added_bytes_loads(tmp_path) -> None:
    for is_byte_level in (True, False):
        old = lacking(base(is_byte_level=is_byte_level), {0x04, 0xF1})
        new = extend_with_report(
            old, Corpus.from_texts(TEXTS), ExtensionOptions(n_tokens=2, complete_bytes=True)
        ).tokenizer
        again = load_tokenizer(new.save_pretrained(tmp_path / str(is_byte_level)))
        assert again.vocab == new.vocab
        assert lost(again) == lost(base(is_byte_level=is_byte_level))
