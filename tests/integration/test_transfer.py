"""The whole transfer, over small random models of many kinds: rows, ids, ties, files, text."""

from __future__ import annotations

import gzip
import json
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer as Backend  # noqa: E402
from tokenizers import decoders, models, pre_tokenizers, trainers  # noqa: E402

from real_text import vendor  # noqa: E402
from vocabshift.errors import (  # noqa: E402
    InvalidTokenizerError,
    VocabMismatchError,
)
from vocabshift.surgery.options import TransferOptions  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.components import bos_template  # noqa: E402
from vocabshift.tokenizer.formats.load import (  # noqa: E402
    as_tokenizer,
    load_tokenizer,
)
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402
from vocabshift.workflows.transfer import transfer  # noqa: E402

new_row = runpy.run_path(str(Path(__file__).parents[1] / "reference" / "fvt.py"))["new_row"]

ENGLISH = ["the cat and the other cat sat by the heater", "another day, another letter"] * 5
HINDI = ["बिल्ली और दूसरी बिल्ली वहाँ बैठी थी", "एक और दिन, एक और चिट्ठी", "the cat and the day"] * 5
PROBE = "the other दिन बिल्ली 12\n another day"

SMALL = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
HEADS = {**SMALL, "num_attention_heads": 2}
GQA = {**HEADS, "num_key_value_heads": 1, "head_dim": 8}
GPT2 = {"n_embd": 16, "n_layer": 1, "n_head": 2}
KINDS: dict[str, tuple[str, dict[str, Any], int]] = {  # model type, settings, padding rows
    "llama": ("llama", {**HEADS, "rope_theta": 500_000.0}, 0),
    "llama-tied": ("llama", {**HEADS, "tie_word_embeddings": True}, 0),
    "gpt2": ("gpt2", GPT2, 0),
    "gpt_neox": ("gpt_neox", HEADS, 0),
    "qwen2-padded": ("qwen2", {**HEADS, "num_key_value_heads": 1}, 33),
    "qwen3-tied": ("qwen3", {**GQA, "tie_word_embeddings": True}, 0),
    "gptj": ("gptj", {**GPT2, "rotary_dim": 4}, 0),
    "gptj-tied": ("gptj", {**GPT2, "rotary_dim": 4, "tie_word_embeddings": True}, 0),
    "mistral": ("mistral", GQA, 0),
    "gemma": ("gemma", GQA, 0),
    "gemma3": ("gemma3_text", GQA, 0),
    "phi": ("phi", HEADS, 0),
    "bloom": ("bloom", {"hidden_size": 16, "n_layer": 1, "n_head": 2}, 0),
    "opt": ("opt", {**SMALL, "num_attention_heads": 2, "word_embed_proj_dim": 16, "ffn_dim": 8}, 0),
}


def _train(texts: list[str], size: int, specials: tuple[str, ...] = ()) -> Tokenizer:
    """A small byte-level BPE whose special tokens stand behind its vocabulary."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
    )
    backend.train_from_iterator(texts, trainer)
    backend.add_special_tokens(list(specials))
    return as_tokenizer(backend)


@pytest.fixture(scope="module")
def old() -> Tokenizer:
    """English, with bos, eos and pad, and a template that begins texts."""
    tokenizer = _train(ENGLISH, 283, ("<s>", "</s>", "<pad>", "<|turn|>"))
    ids = {token.content: token.id for token in tokenizer.added_tokens}
    return replace(
        tokenizer,
        post_processor=bos_template("<s>", ids["<s>"]),
        config={"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
    )


@pytest.fixture(scope="module")
def new() -> Tokenizer:
    """Hindi, without a special token."""
    return _train(HINDI, 340)


def _model(kind: str, tokenizer: Tokenizer, **changes: Any) -> Any:
    model_type, settings, padding = KINDS[kind]
    ids = {token.content: token.id for token in tokenizer.added_tokens}
    config = transformers.AutoConfig.for_model(
        model_type,
        **{
            "vocab_size": tokenizer.row_count + padding,
            "max_position_embeddings": 64,
            "bos_token_id": ids["<s>"],
            "eos_token_id": ids["</s>"],
            "pad_token_id": ids["<pad>"],
            **settings,
            **changes,
        },
    )
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.generation_config.eos_token_id = [ids["</s>"], ids["<|turn|>"]]
    for parameter in (p for p in model.parameters() if p.dim() == 1):
        torch.nn.init.normal_(parameter)  # a bias of zeros would show nothing
    return model.eval()


@pytest.fixture
def folder(tmp_path: Path, old: Tokenizer):
    """Save a small model and its tokenizer; gives the model and the folder."""

    def make(kind: str, **changes: Any) -> tuple[Any, Path]:
        model = _model(kind, old, **changes)
        path = old.save_pretrained(tmp_path / f"{kind}-model")
        model.save_pretrained(path)
        return model, path

    return make


def _assert_rows(before: Any, after: Any, old: Tokenizer, tokenizer: Tokenizer) -> None:
    """Every row of `after` is what the plain reference makes of `before`."""
    known = dict(old.model.vocab) | {t.content: t.id for t in old.added_tokens}
    tokens = dict(tokenizer.model.vocab) | {t.content: t.id for t in tokenizer.added_tokens}
    assert len(tokens) > len(tokenizer.model.vocab)
    for token, token_id in tokens.items():
        row = new_row(token, before, known, list(old.model.merges))
        assert torch.equal(row, after[token_id]), token


@pytest.mark.parametrize("kind", KINDS)
def test_model_of_every_kind(kind, folder, old, new, tmp_path) -> None:
    """Transferred, saved, loaded: rows, ties, ids and generation are right."""
    model, path = folder(kind)
    before = {name: tensor.clone() for name, tensor in _tables(model).items()}
    tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
    report = transfer_folder(path, new, tmp_path / "out")

    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = load_tokenizer(tmp_path / "out")
    after = _tables(loaded)
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        columns = (
            (tensor, after[name]) if tensor.dim() == 2 else (tensor[:, None], after[name][:, None])
        )
        _assert_rows(*columns, old, tokenizer)

    assert tied == report.tied == loaded.config.tie_word_embeddings
    same = loaded.get_output_embeddings().weight.data_ptr()
    assert tied == (same == loaded.get_input_embeddings().weight.data_ptr())
    assert report.rows == len(after["input"]) == loaded.config.vocab_size
    assert report.vocab_size == report.n_copied + report.n_initialized == tokenizer.row_count

    ids = {token.content: token.id for token in tokenizer.added_tokens}
    written = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert (ids["<s>"], ids["</s>"]) == (written["bos_token_id"], written["eos_token_id"])
    assert ids["<pad>"] == written["pad_token_id"]
    written = json.loads((tmp_path / "out" / "generation_config.json").read_text(encoding="utf-8"))
    assert [ids["</s>"], ids["<|turn|>"]] == written["eos_token_id"]

    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = auto(PROBE, return_tensors="pt")
    assert [ids["<s>"], *new.backend.encode(PROBE).ids] == batch["input_ids"][0].tolist()
    generated = loaded.generate(**batch, max_new_tokens=4, do_sample=False)
    assert auto.decode(generated[0], skip_special_tokens=True).startswith(PROBE)


def _tables(model: Any) -> dict[str, Any]:
    head = model.get_output_embeddings()
    tables = {"input": model.get_input_embeddings().weight.data, "head": head.weight.data}
    return tables if head.bias is None else tables | {"bias": head.bias.data}


def test_padding_after_the_last_id_stays(folder, new, tmp_path) -> None:
    """New tokens take ids that were padding: every row is made by its id, none is a tail."""
    before, path = folder("qwen2-padded")
    report = transfer_folder(path, new, tmp_path / "out")
    assert (320, 320) == (report.old_rows, report.rows)  # padded to 64 before and after
    assert 287 < report.vocab_size < report.rows
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    padding = slice(report.vocab_size, None)
    for name in ("get_input_embeddings", "get_output_embeddings"):
        old_rows, rows = (getattr(each, name)().weight[padding] for each in (before, model))
        assert torch.equal(old_rows, rows)


def _permuted(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer with its ordinary ids in reverse order."""
    last = tokenizer.vocab_size - 1
    vocab = {token: last - token_id for token, token_id in tokenizer.model.vocab.items()}
    return replace(tokenizer, model=replace(tokenizer.model, vocab=vocab))


@pytest.mark.parametrize("kind", ["llama", "gptj"])
def test_logits_of_the_same_tokens_under_other_ids(kind, old) -> None:
    """A transfer that only renames ids changes nothing but the order of the logits."""
    model = _model(kind, old)
    ids = torch.tensor([old.backend.encode("the other cat, another day").ids])
    with torch.no_grad():
        expected = model(ids).logits
    model, tokenizer = transfer(model, old=old, new=_permuted(old))
    other = torch.tensor([tokenizer.backend.encode("the other cat, another day").ids])
    assert ids.tolist() != other.tolist()
    with torch.no_grad():
        actual = model(other).logits
    order = list(range(old.vocab_size))[::-1] + list(range(old.vocab_size, old.row_count))
    torch.testing.assert_close(expected, actual[..., order], rtol=1e-6, atol=1e-6)


def test_logits_of_kept_tokens_stay(old, new) -> None:
    """On text that both cut alike, old tokens get the logits that they had."""
    model = _model("llama", old)
    text = "q-w!x"  # byte by byte under both
    ids = torch.tensor([old.backend.encode(text).ids])
    with torch.no_grad():
        expected = model(ids).logits[..., : old.vocab_size]
    model, tokenizer = transfer(model, old=old, new=new)
    with torch.no_grad():
        actual = model(torch.tensor([tokenizer.backend.encode(text).ids])).logits
    kept = [token for token in old.model.vocab if token in new.model.vocab]
    old_ids = [old.model.vocab[token] for token in kept]
    new_ids = [new.model.vocab[token] for token in kept]
    assert len(kept) > 256
    torch.testing.assert_close(expected[..., old_ids], actual[..., new_ids], rtol=1e-6, atol=1e-6)


def test_half_precision_is_kept(folder, old, new, tmp_path) -> None:
    """bfloat16 stays bfloat16, sums are made in float32, and `dtype` overrides."""
    model, path = folder("llama", dtype=torch.bfloat16)
    model.to(torch.bfloat16).save_pretrained(path)
    before = model.get_input_embeddings().weight.data
    transfer_folder(path, new, tmp_path / "out")
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    after = loaded.get_input_embeddings().weight.data
    assert torch.bfloat16 == after.dtype
    _assert_rows(before, after, old, load_tokenizer(tmp_path / "out"))
    transfer_folder(path, new, tmp_path / "wide", dtype=torch.float32)
    wide = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "wide")
    assert torch.float32 == wide.get_input_embeddings().weight.dtype


def test_tied_tensors_under_an_untied_config(old, new) -> None:
    """What the tensors say is kept, and written."""
    model = _model("llama", old)
    model.lm_head.weight = model.get_input_embeddings().weight
    model, _ = transfer(model, old=old, new=new)
    assert model.lm_head.weight is model.get_input_embeddings().weight
    assert model.config.tie_word_embeddings


def test_two_tensors_under_a_tied_config(folder, old, new, tmp_path) -> None:
    """transformers does not tie them; the output says so instead of losing the head."""
    model, path = folder("llama")
    file = path / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(config | {"tie_word_embeddings": True}), encoding="utf-8")
    assert not transfer_folder(path, new, tmp_path / "out").tied
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert not loaded.config.tie_word_embeddings
    after, tokenizer = loaded.lm_head.weight.data, load_tokenizer(tmp_path / "out")
    _assert_rows(model.lm_head.weight.data, after, old, tokenizer)


def test_model_is_changed_in_place_and_can_be_trained(old, new) -> None:
    """The same object comes back, with gradients for every row."""
    model = _model("gpt2", old)
    moved, tokenizer = transfer(model, old=old.to_hf(), new=new.backend)
    assert moved is model
    ids = torch.tensor([tokenizer.backend.encode(PROBE).ids])
    moved(ids, labels=ids).loss.backward()
    weight = moved.get_input_embeddings().weight
    assert weight.shape == weight.grad.shape


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_an_older_graph_of_the_model_does_no_harm(old, new, name) -> None:
    """As in a notebook: a loss from before is kept, and training goes on after the transfer."""
    model = _model(name, old)
    ids = torch.tensor([old.backend.encode(PROBE).ids])
    before = model(ids, labels=ids).loss
    tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    moved, tokenizer = transfer(model, old=old, new=new)
    assert tied == (moved.get_input_embeddings().weight is moved.get_output_embeddings().weight)
    ids = torch.tensor([tokenizer.backend.encode(PROBE).ids])
    moved(ids, labels=ids).loss.backward()
    assert torch.isfinite(before)


def test_provenance_and_rotary_base(folder, new, tmp_path) -> None:
    """What was done is written down; transformers 4 finds rope_theta where it looks."""
    _, path = folder("llama")
    report = transfer_folder(path, new, tmp_path / "out", TransferOptions(init="mean"))
    done = json.loads((tmp_path / "out" / "vocabshift.json").read_text(encoding="utf-8"))
    assert "transfer" == done["operation"]
    assert "mean" == done["config"]["init"]
    assert 16 == len(done["config_hash"])
    assert report.n_initialized == done["figures"]["n_initialized"]
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert 500_000.0 == config["rope_theta"] == config["rope_parameters"]["rope_theta"]
    assert not list((tmp_path / "out").glob(".lock"))


SCALED = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
BY_LAYER = {
    "full_attention": {"rope_type": "default", "rope_theta": 700.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}


@pytest.mark.parametrize(
    ("kind", "rope", "older"),
    [
        ("llama", SCALED, {"rope_theta": 5e5, "rope_scaling": SCALED}),
        ("phi", {"partial_rotary_factor": 0.25}, {"partial_rotary_factor": 0.25}),
        ("gpt_neox", {"rope_theta": 500.0}, {"rotary_emb_base": 500.0, "rotary_pct": 0.25}),
        ("gemma3", BY_LAYER, {"rope_theta": 700.0, "rope_local_base_freq": 50.0}),
    ],
)
def test_rotary_embedding_is_written_for_older_readers(
    kind, rope, older, folder, new, tmp_path
) -> None:
    """Under the names of transformers 4 too, and version 5 still reads what it was."""
    rope = rope if kind == "gemma3" else {"rope_type": "default", "rope_theta": 1e4} | rope
    model, path = folder(kind, rope_parameters=rope)
    transfer_folder(path, new, tmp_path / "out")
    loaded = transformers.AutoConfig.from_pretrained(tmp_path / "out")
    assert model.config.rope_parameters == loaded.rope_parameters
    written = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    for key, value in older.items():
        expected = value
        if isinstance(value, dict):
            expected = {name: x for name, x in value.items() if name != "rope_theta"}
        assert expected == written[key]


def test_only_qwen2_gets_a_class_file(folder, new, tmp_path) -> None:
    """No other output holds code."""
    for kind, expected in (("llama", []), ("qwen2-padded", ["tokenization_vs.py"])):
        _, path = folder(kind)
        transfer_folder(path, new, tmp_path / kind)
        assert expected == [file.name for file in (tmp_path / kind).glob("*.py")]


def test_tokenizer_that_loads_differently_is_an_error(folder, new, tmp_path, monkeypatch) -> None:
    """Nothing is left behind, and what stood there stays."""
    from vocabshift.tokenizer import pretrained_folder as reload

    monkeypatch.setattr(reload, "write_auto_class", lambda *_: False)
    _, path = folder("qwen2-padded")
    unlike = replace(new, pre_tokenizer={"type": "Digits", "individual_digits": True})
    sequence = [unlike.pre_tokenizer, new.pre_tokenizer]
    unlike = replace(new, pre_tokenizer={"type": "Sequence", "pretokenizers": sequence})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    with pytest.raises(InvalidTokenizerError, match="AutoTokenizer"):
        transfer_folder(path, unlike, tmp_path / "out", force=True)
    assert ["precious"] == [file.name for file in (tmp_path / "out").iterdir()]
    assert {"qwen2-padded-model", "out"} == {file.name for file in tmp_path.iterdir()}


def test_bad_input(folder, old, new, tmp_path) -> None:
    """Each is refused before any work, with what to do."""
    model, path = folder("llama")
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="unknown init 'magic'"):
        transfer_folder(path, new, out, TransferOptions(init="magic"))
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there exists already"):
        transfer_folder(path, new, tmp_path / "there")
    with pytest.raises(ValueError, match="would replace the input"):
        transfer_folder(path, new, path, force=True)
    with pytest.raises(FileNotFoundError, match=r"no config\.json"):
        transfer_folder(tmp_path / "there", new, out)
    with pytest.raises(FileNotFoundError, match="none"):
        transfer_folder(tmp_path / "none", new, out)
    wider = _train(ENGLISH + HINDI, 330)
    rows = model.get_input_embeddings().weight.shape[0]
    with pytest.raises(
        VocabMismatchError, match=f"{rows} rows, but its tokenizer needs {wider.row_count}"
    ):
        transfer(model, old=wider, new=new)
    lacking = {token: i for token, i in new.model.vocab.items() if token != "Ġ"}
    poor = replace(new, model=replace(new.model, vocab=lacking, merges=()))
    lost = r"lacks bytes and would lose 1 assigned .*\(U\+0020\).*--complete-bytes"
    with pytest.raises(VocabMismatchError, match=lost):
        transfer_folder(path, poor, out)
    with pytest.raises(ValueError, match="pad_to_multiple_of is 0"):
        transfer(model, old=old, new=new, pad_to_multiple_of=0)
    assert not out.exists()


def test_damaged_model_folders(folder, new, tmp_path) -> None:
    """A truncated shard, a missing tensor, a missing tokenizer."""
    model, path = folder("llama")
    out = tmp_path / "out"
    weights = path / "model.safetensors"
    data = weights.read_bytes()
    weights.write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="cannot be loaded"):
        transfer_folder(path, new, out)
    kept = {name: tensor for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    model.save_pretrained(path, state_dict=kept)
    with pytest.raises(ValueError, match=r"lacks 1 tensors of the model, such as lm_head\.weight"):
        transfer_folder(path, new, out)
    weights.write_bytes(data)

    (path / "tokenizer.json").unlink()
    with pytest.raises(VocabMismatchError, match="own tokenizer is needed"):
        transfer_folder(path, new, out)
    assert not out.exists()


@pytest.mark.shared
def test_rows_of_the_reference_case(shared_data: Path, reference_cases: Path) -> None:
    """1,000 Estonian tokens on Llama-3: pieces and rows of the reference toolkit."""
    import numpy as np

    from vocabshift.surgery import initialize
    from vocabshift.surgery.row_sources import RowSources
    from vocabshift.surgery.rows import new_matrix
    from vocabshift.tokenizer import byte_level, token_bytes

    file = reference_cases / "fvt_llama3_et_1000.json.gz"
    case = json.loads(gzip.decompress(file.read_bytes()))
    llama = vendor(shared_data / "tokenizers-hf" / "llama3")
    find = token_bytes.piece_finder(llama)
    pieces = [find(byte_level.to_bytes(row["token"])) for row in case["rows"]]
    assert [row["constituents"] for row in case["rows"]] == pieces

    n_old, n_new = 128_256, len(pieces)
    sources = RowSources(
        copied_from=np.arange(n_old),
        copied_to=np.arange(n_old),
        made=np.arange(n_old, n_old + n_new),
        pieces=np.array([piece for ids in pieces for piece in ids]),
        offsets=np.cumsum([0, *map(len, pieces)]),
        old_ids=np.arange(n_old),
    )
    i, j = torch.arange(n_old)[:, None], torch.arange(8)[None, :]
    for key, (a, b, modulus) in {"e_in": (31, 17, 1009), "e_out": (37, 19, 1013)}.items():
        matrix = ((i * a + j * b) % modulus) / modulus
        rows = new_matrix(matrix, sources, initialize.fvt, n_old + n_new, 0)[n_old:]
        expected = torch.tensor([row[key] for row in case["rows"]])
        torch.testing.assert_close(expected, rows, rtol=0, atol=2e-6)
