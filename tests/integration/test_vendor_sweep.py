"""Every vendor tokenizer, on a small model of its type, through prune, extend, adapt and swap.

Nothing is refused, nothing that came back is lost, and kept tokens keep their rows. Each tokenizer
is cut down to a few hundred tokens on top of its bytes and some characters. It is tried as it is,
and without three bytes: one that text can hold, one of unassigned planes, one that UTF-8 never has.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from real_text import vendor as loaded
from vendor_checks import decoded, some_languages, vendor_params
from vocabshift.models.saved import open_saved
from vocabshift.pruning.options import PruningOptions
from vocabshift.pruning.prune import number_removable, prune_with_report
from vocabshift.surgery.options import TransferOptions
from vocabshift.surgery.report import TransferReport
from vocabshift.surgery.transfer import transfer_folder
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.any_tokenizer import ids_of_tokens
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.missing_bytes import lost_characters, missing_bytes
from vocabshift.tokenizer.token_bytes import is_byte_level
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.byte_level import BpeTrainer
from vocabshift.workflows.adapt_tokenizer import adapt_tokenizer
from vocabshift.workflows.extend import ExtensionOptions, extend_with_report

pytestmark = pytest.mark.shared

# One format of each: loading takes longest.
MODEL_TYPES = {
    "tokenizers/anthropic-claude2": "llama",
    "tokenizers/cl100k_base": "gpt2",
    "tokenizers/deepseek": "llama",
    "tokenizers/gguf-command-r": "cohere",
    "tokenizers/gguf-gemma-4": "gemma4_text",
    "tokenizers/llama2": "llama",
    "tokenizers/o200k_base": "gpt_oss",
    "tokenizers/p50k_r50k": "gpt2",
    "tokenizers-hf/llama3": "llama",
    "tokenizers-hf/llama4": "llama4_text",
    "tokenizers-hf/mistral-nemo": "mistral",
    "tokenizers-hf/mistral7b-v1": "mistral",
    "tokenizers-hf/mistral7b-v3": "mistral",
    "tokenizers-hf/qwen25": "qwen2",
}
POOR = (0x04, 0xC0, 0xF1)
N = 60  # tokens that are exchanged, removed, added
WIDTH = 4
CHARACTERS = 1_500  # at most; others are spelt in bytes


@pytest.fixture(scope="module", params=vendor_params(MODEL_TYPES))
def small(request: pytest.FixtureRequest, shared_data: Path) -> tuple[str, Tokenizer]:
    """A model type, and the vendor's tokenizer with a few of its tokens that are made of others."""
    whole = loaded(shared_data / request.param)
    splits = whole.splits()
    ids = np.array(sorted(ids_of_tokens(whole)))
    model_ids = np.array(sorted(whole.vocab.values()))
    kept = np.zeros(len(splits.atomic), dtype=bool)
    kept[np.flatnonzero(splits.atomic)[:CHARACTERS]] = True
    kept[[whole.vocab[piece] for piece in whole.byte_pieces()]] = True
    kept[np.setdiff1d(ids, model_ids)] = True
    kept[[token.id for token in whole.added_tokens]] = True
    if whole.unk_token in whole.vocab:
        kept[whole.vocab[whole.unk_token]] = True
    made = np.flatnonzero(splits.left >= 0)
    few = np.zeros(len(kept), dtype=bool)
    few[made[:200]] = True
    kept |= splits.trees(few)
    staying = ids[kept[ids]].tolist()
    return MODEL_TYPES[request.param], whole.renumbered({old: i for i, old in enumerate(staying)})


@pytest.fixture(scope="module")
def corpus(shared_data: Path) -> Corpus:
    """A few lines of some languages, one of them with a control character."""
    texts = {
        label: list(some_languages(shared_data).select(label).texts())[:12]
        for label in ("et", "hi", "en")
    }
    lines = {label: [text for _, text in found] for label, found in texts.items()}
    return Corpus.from_texts({**lines, "odd": ["a \x04 line", "and \U00040000 another"]})


@pytest.fixture(scope="module")
def other(corpus: Corpus) -> Tokenizer:
    """A tokenizer with the whole byte alphabet, to which every model is moved."""
    return BpeTrainer(vocab_size=320).train(corpus)


def without_bytes(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer without the tokens of three bytes, and without what is made of them."""
    images = {byte_level.BYTE_IMAGES[byte] for byte in POOR} if is_byte_level(tokenizer) else set()
    pieces = {f"<0x{byte:02X}>" for byte in POOR}
    fixed = {token.content for token in tokenizer.added_tokens}
    gone = [
        token_id
        for token, token_id in tokenizer.vocab.items()
        if token not in fixed and (token in pieces or images & set(token))
    ]
    return tokenizer.without(gone)


def model_folder(place: Path, model_type: str, tokenizer: Tokenizer) -> Path:
    """A random model of the type with narrow tables, and its tokenizer."""
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    sizes |= {"hidden_size": 2 * WIDTH, "intermediate_size": 8, "head_dim": WIDTH}
    further: dict[str, dict[str, Any]] = {
        "llama4_text": {"intermediate_size_mlp": 8, "num_local_experts": 1},
        "gpt_oss": {"num_local_experts": 1, "num_experts_per_tok": 1},
        "gemma4_text": {"hidden_size_per_layer_input": 0},
    }
    settings = {**sizes, **further.get(model_type, {})}
    if model_type == "gpt2":
        settings = {"n_embd": 2 * WIDTH, "n_layer": 1, "n_head": 2}
    elif model_type in ("gpt_oss", "gemma4_text"):
        settings["layer_types"] = ["full_attention"]
    roles = {f"{role}_token_id": None for role in ("bos", "eos", "pad")}
    config = transformers.AutoConfig.for_model(
        model_type, vocab_size=tokenizer.row_count, **settings, **roles
    )
    torch.manual_seed(7)
    folder = tokenizer.save_pretrained(place)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def table(folder: Path) -> torch.Tensor:
    """The input embeddings of a saved model."""
    saved = open_saved(folder)
    assert saved is not None
    weight = saved.matrices.tables[0].weight
    return weight.index_select(0, torch.arange(weight.shape[0]))


def check_moved(
    folder: Path, old: Tokenizer, new: Tokenizer, out: Path, **options: Any
) -> TransferReport:
    """Transfer; kept tokens keep their rows, and every row is finite."""
    report = transfer_folder(folder, new, out, TransferOptions(**options))
    before, after = table(folder), table(out)
    assert bool(torch.isfinite(after).all())
    written = load_tokenizer(out)
    bytes_of = {data: token_id for token_id, data in old.token_bytes.items()}
    for token_id, data in written.token_bytes.items():
        if data in bytes_of and token_id not in report.ambiguous and not is_shared(old, data):
            assert torch.equal(after[token_id], before[bytes_of[data]]), data
    return report


def is_shared(tokenizer: Tokenizer, data: bytes) -> bool:
    """Whether several tokens are spelt by these bytes, as "A" and "<0x41>" are."""
    return len(data) == 1 and not is_byte_level(tokenizer)


def texts_of(corpus: Corpus) -> list[str]:
    return [text for _, text in corpus.texts()] + ["👩‍👩‍👧 e\u0301 \x04\x06\t  b", "\U0010ffff"]


Make = Callable[[Tokenizer, Corpus, bool], Any]


def pruned(old: Tokenizer, corpus: Corpus, complete: bool) -> Any:
    n = min(N, number_removable(old))
    options = PruningOptions(n_tokens=n, complete_bytes=complete)
    return prune_with_report(old, corpus, options, measure=False)


def longer(old: Tokenizer, corpus: Corpus, complete: bool) -> Any:
    options = ExtensionOptions(n_tokens=N, complete_bytes=complete, character_coverage=None)
    return extend_with_report(old, corpus, options)


def exchanged(old: Tokenizer, corpus: Corpus, complete: bool) -> Any:
    n = min(N, number_removable(old))
    return adapt_tokenizer(
        old, corpus, n_tokens=n, complete_bytes=complete, character_coverage=None
    )


@pytest.mark.parametrize("make", [pruned, longer, exchanged], ids=["prune", "extend", "adapt"])
def test_changed_and_transferred(
    small: tuple[str, Tokenizer], corpus: Corpus, tmp_path: Path, make: Make
) -> None:
    """As it is: texts come back as before. Without bytes: the same, and all with complete_bytes."""
    model_type, whole = small
    texts = texts_of(corpus)
    folder = model_folder(tmp_path / "model", model_type, whole)
    done = make(whole, corpus, False)
    assert decoded(done.tokenizer.backend, texts) == decoded(whole.backend, texts)
    check_moved(folder, whole, done.tokenizer, tmp_path / "out", id_map=done.id_map)

    poor = without_bytes(whole)
    assert set(missing_bytes(poor)) == set(POOR)
    done = make(poor, corpus, False)
    assert decoded(done.tokenizer.backend, texts) == decoded(poor.backend, texts)
    assert lost_characters(done.tokenizer).tolist() == lost_characters(poor).tolist()
    complete = make(poor, corpus, True)
    assert decoded(complete.tokenizer.backend, texts) == decoded(whole.backend, texts)
    folder = model_folder(tmp_path / "poor", model_type, poor)
    report = check_moved(folder, poor, complete.tokenizer, tmp_path / "new", id_map=complete.id_map)
    assert report.lost_characters is not None
    assert report.lost_characters.after == 0
    assert report.lost_characters.bytes_added == ("04", "F1")


def test_swapped(
    small: tuple[str, Tokenizer], other: Tokenizer, corpus: Corpus, tmp_path: Path
) -> None:
    """Onto a tokenizer with all bytes: those that the old one lacks get the mean of its rows."""
    model_type, whole = small
    poor = without_bytes(whole)
    folder = model_folder(tmp_path / "poor", model_type, poor)
    report = check_moved(folder, poor, other, tmp_path / "new")
    texts = texts_of(corpus)
    assert decoded(other.backend, texts) == texts
    unknown = poor.unk_token in poor.vocab and not is_byte_level(poor)
    n_by_mean = 0 if unknown else len(POOR)
    assert report.n_by_mean == n_by_mean
    if n_by_mean:
        mean = table(folder)[sorted(ids_of_tokens(poor))].double().mean(0).float()
        for byte in POOR:
            row = table(tmp_path / "new")[other.vocab[byte_level.BYTE_IMAGES[byte]]]
            torch.testing.assert_close(row, mean)
