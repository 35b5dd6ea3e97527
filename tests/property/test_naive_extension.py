"""The baselines: the auxiliary tokenizer is that of `tokenizers`, the merges are the published."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from real_text import eval_lines, vendor
from reference.pre_tokenize import byte_level as byte_level_pre_tokenizer
from strategies import documents, examples
from vocabshift.extension.baselines import (
    Auxiliary,
    append,
    naive_extension,
    regen,
    train_auxiliary,
    train_sentencepiece_auxiliary,
)
from vocabshift.extension.continued import TrainingBase
from vocabshift.extension.counting import count_byte_level
from vocabshift.extension.report import extension_cost
from vocabshift.text.corpus import Corpus
from vocabshift.text.patterns import NAMED
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import to_json
from vocabshift.trainers.byte_level import BpeTrainer

BASE_TEXT = ["the cat and the dog sat on the mat", "कि की का के", "one two three 123"] * 2
METHODS: tuple[str, ...] = ("regen", "append", "prepend", "add-tokens")
BASES = {
    name: BpeTrainer(
        vocab_size=300, pre_tokenizer=name, special_tokens=("<|end|>", "<|pad|>")
    ).train(Corpus.from_texts(BASE_TEXT))
    for name in ("gpt2", "cl100k", "o200k")
}
bases = st.sampled_from(sorted(BASES))


def auxiliary_of(base: Tokenizer, texts: list[str], size: int, threads: int = 1) -> Auxiliary:
    text = count_byte_level(TrainingBase(base), Corpus.from_texts(texts))
    return train_auxiliary(base, text, vocab_size=size, threads=threads)


def trained_by_tokenizers(pattern: str, texts: list[str], size: int) -> dict[str, Any]:
    """The model that train_new_from_iterator would give."""
    import tokenizers

    peer = tokenizers.Tokenizer(tokenizers.models.BPE())
    peer.pre_tokenizer = byte_level_pre_tokenizer(NAMED[pattern])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=["<|end|>", "<|pad|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    peer.train_from_iterator(texts, trainer=trainer)
    model: dict[str, Any] = json.loads(peer.to_str())["model"]
    return model


def published_merges(tokens: list[str], vocab: set[str]) -> list[tuple[str, str]]:
    """All splits into two known tokens, by the new token, the longest left part first: the sort of
    transformers' generate_merges with scores that fall."""
    rows = [
        (-score, len(token[:at]), len(token[at:]), token[:at], token[at:])
        for score, token in enumerate(tokens)
        for at in range(1, len(token))
        if token[:at] in vocab and token[at:] in vocab
    ]
    rows.sort(key=lambda row: row[:3], reverse=True)
    return [(left, right) for _, _, _, left, right in rows]


@examples(60)
@given(texts=documents(), name=bases, size=st.sampled_from((260, 300, 500)))
def test_the_auxiliary_tokenizer_is_that_of_tokenizers(
    texts: list[str], name: str, size: int
) -> None:
    base = BASES[name]
    if any(token.content in text for token in base.added_tokens for text in texts):
        return
    expected = trained_by_tokenizers(name, texts, size)
    got = auxiliary_of(base, texts, size, threads=2)
    assert [tuple(merge) for merge in expected["merges"]] == list(got.merges)
    by_id = sorted(expected["vocab"], key=expected["vocab"].__getitem__)
    assert by_id[2:] == list(got.tokens)


@examples(60)
@given(texts=documents(), name=bases, n_tokens=st.sampled_from((1, 7, 1000)))
def test_regen_and_append(texts: list[str], name: str, n_tokens: int) -> None:
    base = BASES[name]
    auxiliary = auxiliary_of(base, texts, 600)
    new = auxiliary.new_tokens(base)[:n_tokens]
    if not new:
        return
    vocab = set(base.model.vocab) | set(new)
    learned = regen(base, auxiliary, n_tokens=n_tokens)
    assert new == list(learned.tokens)
    assert published_merges(new, vocab) == list(learned.merges)
    learned = append(base, auxiliary, n_tokens=n_tokens)
    assert new == list(learned.tokens)
    expected = [
        merge
        for merge in auxiliary.merges
        if {*merge, "".join(merge)} <= vocab and merge not in base.model.merges
    ]
    assert expected == list(learned.merges)
    assert ("n_tokens" if len(new) == n_tokens else "no_token_left") == learned.stopped_because


def is_half_or_taken(token: str, base: Tokenizer) -> bool:
    """Whether a token cannot be an added one: no text, or a text that is the string of another."""
    try:
        return byte_level.to_bytes(token).decode() in base.model.vocab
    except UnicodeDecodeError:
        return True


@pytest.mark.parametrize("method", METHODS)
@examples(15)
@given(texts=documents(), name=bases)
def test_every_baseline_is_a_sound_tokenizer(method: str, texts: list[str], name: str) -> None:
    """It reloads as it is, keeps all ids, and its label counts what is lost."""
    base = BASES[name]
    auxiliary = auxiliary_of(base, texts, 500)
    if not (new := auxiliary.new_tokens(base)):
        return
    if method == "add-tokens" and all(is_half_or_taken(token, base) for token in new):
        with pytest.raises(ValueError, match="no token that bpe lacks"):
            naive_extension(base, auxiliary, method, n_tokens=20)
        return
    longer = naive_extension(base, auxiliary, method, n_tokens=20)
    assert base.model.vocab.items() <= longer.model.vocab.items()
    assert base.added_tokens == longer.added_tokens[: len(base.added_tokens)]
    again = Tokenizer.from_json(to_json(longer))
    encoder = Encoder(longer)
    lost = 0
    for text in texts:
        ids = encoder.encode(text)
        assert again.backend.encode(text, add_special_tokens=False).ids == ids.tolist()
        lost += again.backend.decode(ids.tolist(), skip_special_tokens=False) != text
    cost = extension_cost(base, longer, Corpus.from_texts(texts))
    assert {"unlabelled": lost} == cost.lost_lines
    assert method == "add-tokens" or not lost
    dead = set(unreachable_tokens(longer)) - set(unreachable_tokens(base))
    assert dead == {*cost.unreachable_added, *cost.unreachable_base}
    assert cost.n_added == longer.row_count - base.row_count


@functools.cache
def estonian_auxiliary(base: Path, estonian: Corpus) -> Auxiliary:
    return train_auxiliary(vendor(base), count_byte_level(TrainingBase(vendor(base)), estonian))


@pytest.fixture(scope="module")
def estonian(reference_cases: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    path = tmp_path_factory.mktemp("cases") / "et.txt"
    with (reference_cases / "inputs" / "et.train.txt.zst").open("rb") as file:
        path.write_bytes(zstandard.ZstdDecompressor().stream_reader(file).read())
    return Corpus.from_specs([str(path)])


def read(file: Path) -> Any:
    return json.loads(gzip.decompress(file.read_bytes()))


@pytest.mark.shared
def test_the_reference_case(shared_data: Path, reference_cases: Path, estonian: Corpus) -> None:
    """Every merge of the auxiliary tokenizer, every new token, every merge of regen at 4,000."""
    base = vendor(shared_data / "tokenizers-hf" / "llama3")
    auxiliary = estonian_auxiliary(shared_data / "tokenizers-hf" / "llama3", estonian)
    case = read(reference_cases / "naive_llama3_et.json.gz")
    assert 63_488 == len(case["aux_merges"])
    assert [tuple(merge) for merge in case["aux_merges"]] == list(auxiliary.merges)
    assert case["new_tokens_in_aux_order"] == auxiliary.new_tokens(base)
    merges = [
        tuple(merge) for merge in read(reference_cases / "naive_llama3_et_regen4000_merges.json.gz")
    ]
    assert 9_409 == len(merges)
    assert merges == list(regen(base, auxiliary, n_tokens=4_000).merges)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "regen_dead", "append_dead", "prepend_dead"),
    [
        ("llama3", (74, 520, 3_288), 2_469, (437, 1_457)),
        pytest.param("qwen25", (74, 537, 3_314), None, None, marks=pytest.mark.nightly),
        pytest.param("mistral-nemo", (47, 425, 2_799), None, None, marks=pytest.mark.nightly),
    ],
)
def test_published_counts_of_dead_tokens(
    shared_data: Path,
    estonian: Corpus,
    name: str,
    regen_dead: tuple[int, ...],
    append_dead: int | None,
    prepend_dead: tuple[int, int] | None,
) -> None:
    base = vendor(shared_data / "tokenizers-hf" / name)
    auxiliary = estonian_auxiliary(shared_data / "tokenizers-hf" / name, estonian)
    was_dead = set(unreachable_tokens(base))

    def dead(method: str, n_tokens: int) -> tuple[int, int]:
        longer = naive_extension(base, auxiliary, method, n_tokens=n_tokens)
        found = set(unreachable_tokens(longer)) - was_dead
        old = found & base.model.vocab.keys()
        return len(found - old), len(old)

    for n_tokens, expected in zip((1_000, 4_000, 16_000), regen_dead, strict=True):
        assert (expected, 0) == dead("regen", n_tokens)
    if append_dead is not None:
        assert (append_dead, 0) == dead("append", 4_000)
    if prepend_dead is not None:
        assert prepend_dead == dead("prepend", 4_000)


@pytest.mark.shared
def test_published_counts_of_dead_tokens_with_sentencepiece(
    shared_data: Path, estonian: Corpus
) -> None:
    """As the published run did, whose text was in NFKC."""
    pytest.importorskip("sentencepiece")
    base = vendor(shared_data / "tokenizers-hf" / "mistral7b-v1")
    auxiliary = train_sentencepiece_auxiliary(base, estonian, normalizer="nfkc")
    assert not unreachable_tokens(base)
    for n_tokens, dead in ((1_000, 45), (4_000, 272), (16_000, 1_442)):
        longer = naive_extension(base, auxiliary, "regen", n_tokens=n_tokens)
        assert dead == len(unreachable_tokens(longer))


@pytest.mark.shared
def test_added_tokens_lose_estonian_text(shared_data: Path, estonian: Corpus) -> None:
    """The ByteLevel decoder reads an "õ" in an added token as the byte 0xF5."""
    base = vendor(shared_data / "tokenizers-hf" / "llama3")
    auxiliary = estonian_auxiliary(shared_data / "tokenizers-hf" / "llama3", estonian)
    longer = naive_extension(base, auxiliary, "add-tokens", n_tokens=4_000)
    text = Corpus.from_specs([f"et={shared_data}/eval/sib200-flores/et.txt"])
    cost = extension_cost(base, longer, text)
    assert 0.3 < cost.lost_lines["et"] / cost.lines["et"] < 0.5
    assert len(cost.lost_base) > 5_000
    safe = naive_extension(base, auxiliary, "regen", n_tokens=4_000)
    lines = [line for line in eval_lines(shared_data)["sib200-flores/et.txt"] if line]
    encoder = Encoder(safe)
    assert lines == encoder.decode_batch(*encoder.encode_batch(lines))
