"""SentencePiece BPE on real vocabularies: the reference case, and what extending leaves alone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import zstandard

from metaspace_training import learn_metaspace
from real_text import eval_lines, vendor
from vendor_checks import vendor_params
from vocabshift.extension.continued import extended, learn
from vocabshift.extension.counting import count_metaspace
from vocabshift.extension.effect import measure
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.components import SentencePieceRules
from vocabshift.tokenizer.metaspace_reader import GroupCutter, ceilings
from vocabshift.tokenizer.splits import unreachable_tokens

pytestmark = pytest.mark.shared

VOCABULARIES = (
    "tokenizers-hf/mistral7b-v1",
    "tokenizers-hf/mistral7b-v3",
    "tokenizers/llama2",
    "tokenizers/gguf-gemma-4",
)


def test_the_reference_case(shared_data: Path, reference_cases: Path) -> None:
    """16,000 merges and counts of the paper's toolkit on Mistral-7B-v1 and Estonian."""
    file = reference_cases / "cont_mistral7b-v1_et.json.gz"
    case = json.loads(gzip.decompress(file.read_bytes()))
    packed = (reference_cases / "inputs" / "et.train.txt.zst").read_bytes()
    text = zstandard.ZstdDecompressor().stream_reader(packed).read().decode()
    learned = learn_metaspace(
        vendor(shared_data / "tokenizers-hf" / "mistral7b-v1"),
        Corpus.from_texts(text.split("\n")),
        n_tokens=16_000,
        tie_break="lexicographic",
        normalizer="nfkc",
        add_characters=None,
    )
    assert [list(merge) for merge in learned.merges] == case["merges"]
    assert list(learned.counts) == case["freqs"]
    assert list(learned.tokens) == case["tokens"]


@pytest.mark.parametrize("name", vendor_params(VOCABULARIES[:3]))
def test_the_pieces_of_a_model_obey_the_rules_in_it(shared_data: Path, name: str) -> None:
    """SentencePiece's trainer made them all: a rule that is read too strictly would refuse some."""
    tokenizer = vendor(shared_data / name)
    assert tokenizer.piece_rules == SentencePieceRules()
    cutter = GroupCutter(tokenizer)
    pieces = set(tokenizer.model.vocab) - set(cutter.unmergeable)
    assert len(pieces) > 31_000
    assert [piece for piece in pieces if not cutter.rule.allows(piece.encode())] == []


@pytest.mark.parametrize("name", vendor_params(VOCABULARIES))
def test_a_real_vocabulary(shared_data: Path, name: str) -> None:
    """`tokenizers` ends where training ended, and every text comes back as from the base."""
    base = vendor(shared_data / name)
    lines = {
        language: (shared_data / "train" / f"{language}.txt")
        .read_bytes()[:300_000]
        .decode(errors="ignore")
        .split("\n")[:-1]
        for language in ("ta", "et", "code")
    }
    corpus = Corpus.from_texts(lines)
    counted = count_metaspace(base, corpus, threads=2)
    of_form = learn(counted.form, counted.text, n_tokens=3_000)
    effect = measure(counted.form, of_form, counted.text)
    longer = extended(base, counted.additions(of_form))
    assert len(longer.model.vocab) == len(base.model.vocab) + 3_000 + len(counted.characters)
    assert set(unreachable_tokens(longer)) == set(unreachable_tokens(base))
    for i, language in enumerate(lines):
        encodings = longer.backend.encode_batch(lines[language], add_special_tokens=False)
        assert sum(len(encoding.ids) for encoding in encodings) == effect.tokens[i, -1]
    found = ceilings(base, corpus, threads=2)
    alone = ceilings(base, corpus, add_characters=None)  # what stands as bytes cannot be merged
    for i, told in enumerate(effect.languages):
        assert told.bytes_per_token <= told.ceiling_bytes_per_token
        assert told.ceiling_bytes_per_token == round(found[told.language], 4)
        assert alone[told.language] <= found[told.language]
        assert effect.tokens[i, 0] > effect.tokens[i, -1] >= effect.words[i]
    for texts in eval_lines(shared_data, 3_000).values():
        old, new = (
            t.backend.decode_batch(
                [e.ids for e in t.backend.encode_batch(texts, add_special_tokens=False)],
                skip_special_tokens=False,
            )
            for t in (base, longer)
        )
        assert old == new
