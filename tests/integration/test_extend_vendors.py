"""Every vendor tokenizer extended: nothing moves, no text is lost, all that is new is reachable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from real_text import eval_lines
from vocabshift.adaptation import adapt_tokenizer
from vocabshift.bpe.encoder import Encoder
from vocabshift.bpe.load import load_tokenizer
from vocabshift.bpe.reachability import unreachable_tokens
from vocabshift.bpe.tokenizer import Tokenizer
from vocabshift.extension.extend import extend_with_report
from vocabshift.text.corpus import Corpus

pytestmark = pytest.mark.shared

VENDORS = (
    *(f"tokenizers-hf/{name}" for name in ("llama3", "llama4", "mistral-nemo")),
    *(f"tokenizers-hf/{name}" for name in ("mistral7b-v1", "mistral7b-v3", "qwen25")),
    *(f"tokenizers/{name}" for name in ("anthropic-claude2", "deepseek", "llama2")),
    *(f"tokenizers/{name}" for name in ("cl100k_base", "o200k_base", "p50k_r50k")),
    *("tokenizers/gguf-command-r", "tokenizers/gguf-gemma-4"),
)
REPAIRED = ("tokenizers-hf/llama3", "tokenizers-hf/qwen25", "tokenizers/p50k_r50k")
LANGUAGES = ("et", "hi", "ta", "en")


def corpus(shared_data: Path) -> Corpus:
    """The first half of the evaluation lines of some languages."""
    folder = shared_data / "eval" / "sib200-flores"
    lines = {name: (folder / f"{name}.txt").read_text().split("\n") for name in LANGUAGES}
    return Corpus.from_texts({name: text[:500] for name, text in lines.items()})


def sample(shared_data: Path, tokenizer: Tokenizer) -> list[str]:
    """Lines of every evaluation file, and text with special tokens in it."""
    lines = [line for text in eval_lines(shared_data, 4_000).values() for line in text]
    specials = [token.content for token in tokenizer.added_tokens[:5]]
    return [*lines, *(f"a{token} b" for token in specials), "👩‍👩‍👧 e\u0301 क्\u200dष\u200cत \x00\t"]


def check_against_base(base: Tokenizer, longer: Tokenizer, lines: list[str]) -> None:
    """What every operation keeps: texts, special tokens, reachability, the ids of `tokenizers`."""
    before, after = Encoder(base), Encoder(longer)
    old_ids, old_offsets = before.encode_batch(lines)
    ids, offsets = after.encode_batch(lines)
    assert after.decode_batch(ids, offsets) == before.decode_batch(old_ids, old_offsets)
    expected = longer.backend.encode_batch(lines, add_special_tokens=False)
    assert ids.tolist() == [i for encoding in expected for i in encoding.ids]
    assert set(unreachable_tokens(longer)) <= set(unreachable_tokens(base))
    meaning = {token.id: token.content for token in base.added_tokens}
    assert meaning == {token.id: token.content for token in longer.added_tokens}
    for text in ("x", "न"):
        template = longer.backend.encode(text).ids
        bare = set(longer.backend.encode(text, add_special_tokens=False).ids)
        base_template = base.backend.encode(text).ids
        assert [i for i in template if i in meaning and i not in bare] == [
            i for i in base_template if i in meaning and i not in bare
        ]


@pytest.mark.parametrize("name", VENDORS)
def test_extended_and_repaired(shared_data: Path, name: str) -> None:
    """+400 tokens, with the pre-tokenizer kept, for some also repaired."""
    base = load_tokenizer(shared_data / name)
    lines = sample(shared_data, base)
    for pre_tokenizer in ("kept", "repaired") if name in REPAIRED else ("kept",):
        extension = extend_with_report(
            base, corpus(shared_data), n_tokens=400, pre_tokenizer=pre_tokenizer
        )
        longer, report = extension.tokenizer, extension.report
        assert report.n_added - report.n_characters == 400
        assert report.unreachable_added == 0
        kept = {token: longer.model.vocab[token] for token in base.model.vocab}
        assert kept == dict(base.model.vocab)
        assert longer.model.merges[: len(base.model.merges)] == tuple(base.model.merges)
        check_against_base(base, longer, lines)
        for row in report.to_dict()["languages"]:
            assert row["bytes_per_token"] <= row["ceiling_bytes_per_token"]


@pytest.mark.parametrize("name", ["tokenizers-hf/llama3", "tokenizers-hf/mistral7b-v1"])
@pytest.mark.parametrize("first", ["prune", "extend"])
def test_adapted(shared_data: Path, name: str, first: str) -> None:
    """2,000 tokens exchanged: the rows stay, and no special id moves."""
    base = load_tokenizer(shared_data / name)
    adapted = adapt_tokenizer(base, corpus(shared_data), n_tokens=2_000, first=first)  # type: ignore[arg-type]
    assert adapted.tokenizer.row_count == base.row_count
    ids = np.array(sorted(adapted.tokenizer.model.vocab.values()))
    assert len(np.unique(ids)) == len(ids)
    check_against_base(base, adapted.tokenizer, sample(shared_data, base))


@pytest.mark.parametrize("name", ["llama3", "qwen25", "mistral7b-v1"])
def test_auto_tokenizer_reloads_the_same(shared_data: Path, tmp_path: Path, name: str) -> None:
    """What transformers opens gives the ids of `tokenizers`, with and without the template."""
    pytest.importorskip("transformers")
    from vocabshift.bpe.reload import check_auto

    base = load_tokenizer(shared_data / "tokenizers-hf" / name)
    extension = extend_with_report(base, corpus(shared_data), n_tokens=300)
    folder = extension.tokenizer.save_pretrained(tmp_path / "out")
    check_auto(folder, sample(shared_data, base))
