"""Bits per byte, held against a plain sum of log-probabilities."""

from __future__ import annotations

import math
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from vocabshift.errors import CorpusError, VocabMismatchError
from vocabshift.evaluation.scoring.score import score, score_documents
from vocabshift.models.load import positions_of
from vocabshift.models.token_nats import linear_token_nats
from vocabshift.models.windows import MOST_CONTEXT
from vocabshift.report.tables import to_markdown
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

END = 258
CONTEXT = 24
TEXTS = {
    "eng": ["a cat sat on a mat, and then it sat on the cat again", "so", "x", "the cat"],
    "hin": ["यह एक छोटा वाक्य है", "हाँ"],
    "one": ["single"],
}


def test_positions_by_whatever_name() -> None:
    """Also where the first has the row after the pad's, as in RoBERTa."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    known = [
        (transformers.OPTConfig(max_position_embeddings=48), 48),
        (transformers.MptConfig(max_seq_len=48), 48),
        (transformers.BloomConfig(), None),
        (transformers.RobertaConfig(max_position_embeddings=48, pad_token_id=2), 45),
    ]
    with torch.device("meta"):
        for config, n_positions in known:
            assert n_positions == positions_of(transformers.AutoModel.from_config(config))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """The 256 bytes, two merges and one end token."""
    vocab = {image: i for i, image in enumerate(byte_level.ALPHABET)} | {"at": 256, "cat": 257}
    pipeline = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return Tokenizer(
        BpeModel(vocab, (("a", "t"), ("c", "at"))),
        pre_tokenizer=pipeline | {"use_regex": False},
        decoder=pipeline | {"use_regex": False},
        added_tokens=(AddedToken("<|end|>", END),),
    )


def make_model(**changes: Any) -> Any:
    """A small Llama with large random weights: its probabilities differ much from each other."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = {
        "vocab_size": 259,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.5,
        "bos_token_id": END,
        "eos_token_id": END,
        "pad_token_id": None,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        return LlamaForCausalLM(LlamaConfig(**(settings | changes))).eval()


def log_probability(model: Any, before: list[int], token_id: int) -> float:
    """Log-probability of one id after others, by a run of its own in double precision."""
    import torch

    with torch.no_grad():
        logits = model(input_ids=torch.tensor([before])).logits[0, -1]
    return float(logits.double().log_softmax(-1)[token_id])


def plain_nats(model: Any, ids: list[int], bos: int | None, context: int, overlap: int) -> float:
    """Minus the sum of log-probabilities of `ids`, token by token, windows as documented."""
    prefix = [] if bos is None else [bos]
    room = context - len(prefix)
    total, at = 0.0, 0
    for position, token_id in enumerate(ids):
        if position == at + room:
            at = position - overlap
        before = prefix + ids[at:position]
        if before:
            total -= log_probability(model, before, token_id)
    return total


@pytest.mark.parametrize("bos", [END, None])
@pytest.mark.parametrize("overlap", [1, 7, 12, 22])
@pytest.mark.parametrize("batch_tokens", [1, 60, 4096])
def test_equals_a_plain_sum(
    tokenizer: Tokenizer, bos: int | None, overlap: int, batch_tokens: int
) -> None:
    """Windows, batches and padding change nothing but rounding."""
    model = make_model(bos_token_id=bos)
    found = score_documents(model, tokenizer, TEXTS, overlap=overlap, batch_tokens=batch_tokens)
    texts = [(language, text) for language, of in TEXTS.items() for text in of]
    assert [(d.language, d.n_bytes) for d in found] == [(n, len(t.encode())) for n, t in texts]
    for document, (_, text) in zip(found, texts, strict=True):
        ids = tokenizer.backend.encode(text, add_special_tokens=False).ids
        expected = plain_nats(model, ids, bos, CONTEXT, overlap)
        assert document.nats == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_the_order_of_documents_changes_no_bit(tokenizer: Tokenizer) -> None:
    """A document has the same nats wherever it stands among the others."""
    model = make_model()
    texts = [text for own in TEXTS.values() for text in own]
    found = score_documents(model, tokenizer, texts)
    again = score_documents(model, tokenizer, texts[::-1])
    assert [each.nats for each in found] == [each.nats for each in again][::-1]


def test_the_head_is_not_applied_to_what_is_not_scored(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to padding nor to tokens that a window repeats: one row for each scored token."""
    from vocabshift.models import token_loss

    n_rows = []

    def counted(hidden: Any, *args: Any, **options: Any) -> Any:
        n_rows.append(len(hidden))
        return linear_token_nats(hidden, *args, **options)

    monkeypatch.setattr(token_loss, "linear_token_nats", counted)
    texts = ["a cat sat on a mat, and then it sat on the cat", "x", "a cat"]
    score_documents(make_model(), tokenizer, texts)
    assert sum(n_rows) == sum(len(tokenizer.backend.encode(text).ids) for text in texts)


def test_a_model_in_training_is_scored_by_its_view(tokenizer: Tokenizer) -> None:
    """The view has no head of its own: its weights may be sharded."""
    from vocabshift.cpt.training_module import ModelView

    model = make_model()
    expected = [each.nats for each in score_documents(model, tokenizer, TEXTS)]
    view: Any = ModelView(model, model)
    found = [each.nats for each in score_documents(view, tokenizer, TEXTS)]
    assert found == pytest.approx(expected, rel=1e-5)


def test_rows_are_ratios_of_sums(tokenizer: Tokenizer) -> None:
    """One row a language: all bits over all bytes, in an interval, n documents."""
    model = make_model()
    documents = score_documents(model, tokenizer, TEXTS)
    results = score(model, tokenizer, TEXTS, subject="tiny")
    assert [(r.subject, r.language, r.metric, r.n) for r in results] == [
        ("tiny", "eng", "bits_per_byte", 4),
        ("tiny", "hin", "bits_per_byte", 2),
        ("tiny", "one", "bits_per_byte", 1),
    ]
    for row in results:
        own = [d for d in documents if d.language == row.language]
        bits = sum(d.nats for d in own) / math.log(2)
        assert row.value == pytest.approx(bits / sum(d.n_bytes for d in own))
    eng, _, one = results
    assert eng.ci_low is not None
    assert eng.ci_high is not None
    assert eng.ci_low <= eng.value <= eng.ci_high
    assert eng.ci_low < eng.ci_high
    assert (one.ci_low, one.ci_high) == (None, None)


def test_every_row_names_its_text_and_its_tokenizer(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Text that can be read once; blank documents are no part of it, nor is the order of languages.
    Another text and another tokenizer have other checksums."""
    model, texts = make_model(), {"eng": ["a cat", " ", "b"], "hin": ["हाँ"]}
    rows = score(model, tokenizer, {language: iter(own) for language, own in texts.items()})
    file = tokenizer.save_pretrained(tmp_path / "saved") / "tokenizer.json"
    assert {row.tokenizer_sha256 for row in rows} == {sha256(file.read_bytes()).hexdigest()}
    expected = {
        "eng": sha256(b"a cat\nb\n").hexdigest(),
        "hin": sha256("हाँ\n".encode()).hexdigest(),
    }
    assert {row.language: row.text_sha256 for row in rows} == expected
    turned = score(model, tokenizer, dict(reversed(texts.items())))
    assert {row.language: row.text_sha256 for row in turned} == expected
    other = replace(tokenizer, model=replace(tokenizer.model, merges=(("a", "t"),)))
    (row,) = score(model, other, ["a cat", "b."])
    assert row.tokenizer_sha256 != rows[0].tokenizer_sha256
    assert row.text_sha256 == sha256(b"a cat\nb.\n").hexdigest()


def test_a_uniform_model_pays_the_size_of_its_vocabulary(tokenizer: Tokenizer) -> None:
    """With a head of zeros every token costs log2(259) bits, and "cat" is one token."""
    model = make_model()
    model.lm_head.weight.data.zero_()
    results = score(model, tokenizer, {"eng": ["cat", "at"], "two": ["cat cat"]})
    assert [row.value for row in results] == pytest.approx(
        [2 * math.log2(259) / 5, 3 * math.log2(259) / 7]
    )


def test_bytes_are_those_of_the_text(tokenizer: Tokenizer) -> None:
    """A language without a label is "all"; blank documents are left out."""
    documents = score_documents(make_model(), tokenizer, ["हाँ", "", "  ", "ok"])
    assert [(d.language, d.n_bytes) for d in documents] == [("all", 9), ("all", 2)]


def test_the_model_keeps_its_mode(tokenizer: Tokenizer) -> None:
    """Scoring is without dropout, and training goes on afterwards."""
    model = make_model(attention_dropout=0.5).train()
    assert score(model, tokenizer, TEXTS) == score(model, tokenizer, TEXTS)
    assert model.training


def test_text_that_does_not_come_back_is_told(tokenizer: Tokenizer) -> None:
    """A tokenizer that drops accents prices other text: a row says how often."""
    lossy = replace(
        tokenizer, normalizer={"type": "Replace", "pattern": {"String": "é"}, "content": "e"}
    )
    texts = {"fr": ["été", "hiver"], "en": ["summer", "winter"]}
    rows = score(make_model(), lossy, texts)
    assert [(r.language, r.metric) for r in rows] == [
        ("fr", "bits_per_byte"),
        ("en", "bits_per_byte"),
        ("fr", "loss_rate"),
    ]
    assert rows[-1].value == 0.5
    assert [d.n_bytes for d in score_documents(make_model(), lossy, texts)] == [5, 5, 6, 6]
    assert "†" in to_markdown(rows)


def test_a_model_that_sees_what_follows_is_refused(tokenizer: Tokenizer) -> None:
    """BERT in the class of a causal model, as transformers loads it from a masked one."""
    from transformers import BertConfig, BertLMHeadModel

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    sizes["initializer_range"] = 0.5
    config = BertConfig(vocab_size=259, num_attention_heads=2, is_decoder=False, **sizes)
    with pytest.raises(ValueError, match="depends on what follows"):
        score(BertLMHeadModel(config), tokenizer, ["a"])


def test_lack_of_memory_says_what_to_lower(tokenizer: Tokenizer) -> None:
    """Whatever the device raises."""
    import torch

    model = make_model()
    plain = model.forward

    def forward(input_ids: Any, **options: Any) -> Any:
        if input_ids.shape[1] > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(input_ids, **options)

    model.forward = forward
    with pytest.raises(ValueError, match="lower the batch tokens or the context"):
        score(model, tokenizer, ["a longer line"])


@pytest.mark.parametrize(
    ("texts", "changes", "options", "error", "message"),
    [
        ([""], {}, {}, CorpusError, "no text"),
        (["a"], {"vocab_size": 258, "bos_token_id": 0}, {}, VocabMismatchError, "needs 259"),
        (["a"], {"bos_token_id": 900}, {}, VocabMismatchError, "bos_token_id 900"),
        (["a"], {}, {"context": 25}, ValueError, "24 positions"),
        (["a"], {}, {"overlap": 0}, ValueError, "overlap is 0"),
        (["a"], {}, {"overlap": 23}, ValueError, "overlap is 23"),
    ],
)
def test_refused(
    tokenizer: Tokenizer,
    texts: list[str],
    changes: dict[str, Any],
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    """What cannot be scored is named."""
    with pytest.raises(error, match=message):
        score(make_model(**changes), tokenizer, texts, **options)


def test_the_longest_context_is_that_of_published_figures() -> None:
    """Bits per byte fall with the context: figures of two versions must rest on the same one."""
    assert 4096 == MOST_CONTEXT
