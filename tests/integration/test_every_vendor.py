"""Every vendor tokenizer: encoded with, extended and pruned; no id, no text, no special token goes.

Loading one takes longer than any of it, so all that each must stand is here, one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from real_text import eval_lines
from real_text import vendor as loaded
from vendor_checks import (
    check_against_base,
    decoded,
    sample,
    some_languages,
    vendor_param,
    vendor_params,
)
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.pruning.effects import Pruning
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import number_removable, prune_with_report
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.pretrained_folder import check_auto
from vocabshift.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.shared

VENDORS = (
    *(f"tokenizers-hf/{name}" for name in ("llama3", "llama4", "mistral-nemo")),
    *(f"tokenizers-hf/{name}" for name in ("mistral7b-v1", "mistral7b-v3", "qwen25")),
    *(f"tokenizers/{name}" for name in ("anthropic-claude2", "deepseek", "llama2")),
    *(f"tokenizers/{name}" for name in ("cl100k_base", "o200k_base", "p50k_r50k")),
    *("tokenizers/gguf-command-r", "tokenizers/gguf-gemma-4"),
)
REPAIRED = ("llama3", "qwen25", "p50k_r50k")  # one of each pattern that it changes
OPENED_BY_TRANSFORMERS = ("llama3", "qwen25", "mistral7b-v1")
# One of each spelling: what differs between vendors of one spelling shows in the heads of files.
WHOLE = [
    vendor_param(f"tokenizers-hf/{name}", name=name, is_nightly=True)
    for name in ("llama3", "mistral7b-v1")
]


@dataclass(frozen=True)
class Vendor:
    name: str
    base: Tokenizer
    encoder: Encoder


@pytest.fixture(scope="module", params=vendor_params(VENDORS))
def vendor(request: pytest.FixtureRequest, shared_data: Path) -> Vendor:
    base = loaded(shared_data / request.param)
    return Vendor(request.param.split("/")[1], base, Encoder(base))


def check_languages(vendor: Vendor, texts: dict[str, list[str]]) -> None:
    """Ids are those of `tokenizers`; without a normalizer text comes back."""
    encoder, backend = vendor.encoder, vendor.base.backend
    is_lossless = vendor.base.normalizer is None and vendor.base.model.is_byte_level
    assert len(texts) > 40
    for name, lines in texts.items():
        documents = [*lines, "\n".join(lines[:50])]
        encodings = backend.encode_batch(documents, add_special_tokens=False)
        ids, offsets = encoder.encode_batch(documents)
        assert [i for encoding in encodings for i in encoding.ids] == ids.tolist(), name
        if is_lossless:
            assert documents == encoder.decode_batch(ids, offsets), name


def test_every_language_is_encoded_as_by_tokenizers(vendor: Vendor, shared_data: Path) -> None:
    """Heads of all evaluation files."""
    check_languages(vendor, eval_lines(shared_data, 20_000))


@pytest.mark.parametrize("vendor", WHOLE, indirect=True)
def test_all_text_is_encoded_as_by_tokenizers(vendor: Vendor, shared_data: Path) -> None:
    check_languages(vendor, eval_lines(shared_data))


def test_extended(vendor: Vendor, shared_data: Path, tmp_path: Path) -> None:
    """+400 tokens: nothing moves, no text is lost, all that is new is reachable."""
    base, lines = vendor.base, sample(shared_data, vendor.base)
    for pre_tokenizer in ("kept", "repaired") if vendor.name in REPAIRED else ("kept",):
        extension = extend_with_report(
            base,
            some_languages(shared_data),
            ExtensionOptions(n_tokens=400, pre_tokenizer=pre_tokenizer),
        )
        longer, report = extension.tokenizer, extension.report
        assert report.n_added - report.n_characters == 400
        assert report.unreachable_added == 0
        kept = {token: longer.model.vocab[token] for token in base.model.vocab}
        assert kept == dict(base.model.vocab)
        assert longer.model.merges[: len(base.model.merges)] == tuple(base.model.merges)
        check_against_base(base, longer, lines, vendor.encoder)
        for row in report.to_dict()["languages"]:
            assert row["bytes_per_token"] <= row["ceiling_bytes_per_token"]
        if vendor.name in OPENED_BY_TRANSFORMERS:
            check_auto(longer.save_pretrained(tmp_path / pre_tokenizer), lines)


def bone(base: Tokenizer) -> Pruning:
    most = number_removable(base)
    with pytest.raises(ValueError, match=f"at most {most:,} of"):
        prune_with_report(base, None, PruningOptions(order="leaf-id", n_tokens=10**6))
    return prune_with_report(base, None, PruningOptions(order="leaf-id", n_tokens=most))


def test_pruned_to_the_bone(vendor: Vendor, shared_data: Path, tmp_path: Path) -> None:
    """Only bytes, characters and special tokens are left: every text comes back as before."""
    base = vendor.base
    texts = sample(shared_data, base)
    pruning = bone(base)
    small = pruning.tokenizer
    assert isinstance(small, Tokenizer)
    assert small.model.merges == ()
    assert pruning.report.unreachable_after == 0
    assert decoded(small.backend, texts) == decoded(base.backend, texts)
    ids, offsets = Encoder(small).encode_batch(texts)
    for i, encoding in enumerate(small.backend.encode_batch(texts, add_special_tokens=False)):
        assert encoding.ids == ids[offsets[i] : offsets[i + 1]].tolist()

    old_added = sorted(base.added_tokens, key=lambda token: token.id)
    new_added = sorted(small.added_tokens, key=lambda token: token.id)
    assert [token.content for token in new_added] == [token.content for token in old_added]
    for old, new in zip(old_added, new_added, strict=True):
        assert pruning.id_map.old_to_new[old.id] == new.id
        for tokenizer, token in ((base, old), (small, new)):
            assert token.id in tokenizer.backend.encode(f"x{token.content}").ids
    again = load_tokenizer(small.save_pretrained(tmp_path / "out"))
    assert around(base) == around(again)


def around(tokenizer: Tokenizer) -> list[str]:
    """The special tokens that the template puts around a text."""
    encoding = tokenizer.backend.encode("a")
    marked = zip(encoding.tokens, encoding.special_tokens_mask, strict=True)
    return [token for token, is_special in marked if is_special]
