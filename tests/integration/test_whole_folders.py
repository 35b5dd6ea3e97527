"""Folders stay whole: every file is accounted for, and encoders give the same numbers as before."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import load_file  # noqa: E402

import small_models  # noqa: E402
import whole_folders  # noqa: E402
from vocabshift.cli.main import main  # noqa: E402
from vocabshift.models.contents import WRITTEN  # noqa: E402
from vocabshift.surgery.back import transfer_back_folder  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.tokenizer.formats.load import load_tokenizer  # noqa: E402
from whole_folders import ENTITY, LAYOUTS, TEXTS, open_entity_model  # noqa: E402

OURS = {"vocabshift.json", "transfer_map.json", "tokenization_vs.py"}


def _names(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture
def pruned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Prune the tokenizer of the folder `model` to what the texts need; the new tokenizer."""

    def prune(n_tokens: int = 60) -> Path:
        (tmp_path / "text.txt").write_text("\n".join(TEXTS * 9) + "\n")
        words = ["prune", str(tmp_path / "model"), "--corpus", str(tmp_path / "text.txt")]
        words += ["--n-tokens", str(n_tokens), "-o", str(tmp_path / "pruned"), "--json"]
        assert 0 == main(words), capsys.readouterr().err
        capsys.readouterr()
        return tmp_path / "pruned"

    return prune


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_file_is_accounted_for(layout, pruned, tmp_path, capsys) -> None:
    """Moved, copied, or left out with a reason: one of these, in --json, --dry-run and on disk."""
    source, out = tmp_path / "model", tmp_path / "out"
    LAYOUTS[layout](source)
    is_encoder = layout == "sentence-transformers"
    new = pruned() if is_encoder else small_models.new_tokenizer().save_pretrained(tmp_path / "new")
    words = ["transfer", str(source), str(new), "-o", str(out), "--json"]
    assert 0 == main([*words, "--dry-run"]), capsys.readouterr().err
    planned = json.loads(capsys.readouterr().out)
    assert 0 == main(words), capsys.readouterr().err
    result = json.loads(capsys.readouterr().out)

    files, left_out = result["files"], result["left_out"]
    assert left_out == planned["left_out"]
    assert files.keys() - planned["files"].keys() <= {*WRITTEN}
    for name in _names(source):
        reasons = [r for entry, r in left_out.items() if name == entry or _is_in(name, entry)]
        assert [name in files] != [bool(reasons)], name
        assert all(len(reason) > 5 for reason in reasons)
        assert (name in files) == (out / name).exists(), name
        if files.get(name) == "copied":
            assert "copy" == planned["files"][name]
            assert (source / name).read_bytes() == (out / name).read_bytes()
    assert _names(out) == files.keys() | (_names(out) & OURS)
    assert not [name for name in _names(out) if name.endswith(".py") and name not in OURS]
    assert left_out == _json(out / "vocabshift.json")["figures"]["left_out"]
    assert left_out


def _is_in(name: str, folder: str) -> bool:
    return folder.endswith("/") and name.startswith(folder)


def test_summary_names_what_was_left_out(tmp_path, capsys, monkeypatch) -> None:
    """With the reason, and the files of one reason together."""
    monkeypatch.setenv("COLUMNS", "400")
    whole_folders.llama(tmp_path / "model")
    new = small_models.new_tokenizer().save_pretrained(tmp_path / "new")
    words = ["transfer", str(tmp_path / "model"), str(new), "-o", str(tmp_path / "out")]
    assert 0 == main(words)
    said = " ".join(capsys.readouterr().out.split())
    assert "files: copied │ LICENSE, USE_POLICY.md," in said
    assert "left out: a text about the model before │ README.md" in said


def test_ids_of_processors_and_generation_settings(tmp_path) -> None:
    """Single ids, tables, pairs and lists; of a token that is gone nothing is left in a list."""
    new = small_models.new_tokenizer()
    for layout in ("whisper", "qwen2-vl"):
        LAYOUTS[layout](tmp_path / layout)
        transfer_folder(tmp_path / layout, new, tmp_path / f"{layout}-out")
    ids = small_models.special_ids(load_tokenizer(tmp_path / "whisper-out"))
    assert ids["<image>"] != small_models.special_ids(small_models.old_tokenizer())["<image>"]
    said = _json(tmp_path / "whisper-out" / "generation_config.json")
    assert {"<|en|>": ids["<|turn|>"]} == said["lang_to_id"]
    assert {"transcribe": ids["<image>"]} == said["task_to_id"]
    assert ids["<image>"] == said["no_timestamps_token_id"]
    assert [[1, None], [2, ids["<image>"]]] == said["forced_decoder_ids"]
    assert [1, ids["<s>"]] == said["suppress_tokens"]
    assert [ids["</s>"]] == said["begin_suppress_tokens"]
    assert ([[0, 1]], 50) == (said["alignment_heads"], said["max_initial_timestamp_index"])
    config = _json(tmp_path / "qwen2-vl-out" / "config.json")
    assert ids["<image>"] == config["image_token_id"] == config["video_token_id"]
    assert ids["<|turn|>"] == config["vision_start_token_id"]
    video = _json(tmp_path / "qwen2-vl-out" / "video_preprocessor_config.json")
    assert {"video_token_id": ids["<image>"], "size": [287, 4]} == video


def _embed(folder: Path, texts: list[str]) -> tuple[list[list[str]], Any]:
    """Tokens, and what the modules of a sentence-transformers folder make of them."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    dense = load_file(folder / "2_Dense" / "model.safetensors")
    assert whole_folders.POOLING == _json(folder / "1_Pooling" / "config.json")
    with torch.no_grad():
        states = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).float()
        means = (states * mask).sum(1) / mask.sum(1)
        rows = torch.nn.functional.linear(means, dense["linear.weight"], dense["linear.bias"])
    tokens = [tokenizer.convert_ids_to_tokens(ids) for ids in batch["input_ids"].tolist()]
    return tokens, torch.nn.functional.normalize(rows)


def test_embeddings_are_equal_to_the_last_bit(pruned, tmp_path) -> None:
    """Of texts whose tokens are kept, whose ids are others now; the folder is smaller."""
    whole_folders.sentence_transformer(tmp_path / "model")
    report = transfer_folder(tmp_path / "model", pruned(), tmp_path / "out")
    assert report.n_moved > 0
    assert report.old_rows - 60 == report.rows
    tokens, before = _embed(tmp_path / "model", TEXTS)
    same, after = _embed(tmp_path / "out", TEXTS)
    assert tokens == same
    assert torch.equal(before, after)
    transfer_back_folder(tmp_path / "out", tmp_path / "model", tmp_path / "back")
    files = {"1_Pooling/config.json", "2_Dense/model.safetensors", "model.safetensors"}
    for name in files:
        assert (tmp_path / "model" / name).read_bytes() == (tmp_path / "back" / name).read_bytes()


def test_sentence_transformers_itself(pruned, tmp_path) -> None:
    """The library writes the model, and reads both; prompts, pooling and layers are kept."""
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is absent")
    from sentence_transformers.sentence_transformer.modules import (
        Dense,
        Normalize,
        Pooling,
        Transformer,
    )

    whole_folders.bert(tmp_path / "bert")
    first = Transformer(str(tmp_path / "bert"), max_seq_length=32)
    parts = [first, Pooling(16), Dense(16, 8), Normalize()]
    made = library.SentenceTransformer(modules=parts, prompts={"query": "the cat "}, device="cpu")
    made.save(str(tmp_path / "model"))
    report = transfer_folder(tmp_path / "model", pruned(), tmp_path / "out")
    assert not [name for name in report.left_out if name != "README.md"]
    before, after = (
        library.SentenceTransformer(str(tmp_path / name), device="cpu") for name in ("model", "out")
    )
    assert len(before) == len(after) == 4
    for prompt in (None, "query"):
        rows = [model.encode(TEXTS, prompt_name=prompt) for model in (before, after)]
        assert rows[0].tobytes() == rows[1].tobytes()
    assert after.max_seq_length == 32


def test_cross_encoder(pruned, tmp_path) -> None:
    """Scores of pairs, which have two segments."""
    model = whole_folders.bert(tmp_path / "model", "BertForSequenceClassification", num_labels=1)
    transfer_folder(tmp_path / "model", pruned(), tmp_path / "out")
    scores = []
    for folder in (tmp_path / "model", tmp_path / "out"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        loaded = type(model).from_pretrained(folder).eval()
        batch = tokenizer([TEXTS[0]] * 2, TEXTS, padding=True, return_tensors="pt")
        assert {0, 1} == set(batch["token_type_ids"].flatten().tolist())
        with torch.no_grad():
            scores.append(loaded(**batch).logits)
    assert torch.equal(*scores)


def test_cross_encoder_of_sentence_transformers(pruned, tmp_path) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is absent")
    whole_folders.bert(tmp_path / "model", "BertForSequenceClassification", num_labels=1)
    transfer_folder(tmp_path / "model", pruned(), tmp_path / "out")
    pairs = [(TEXTS[0], text) for text in TEXTS]
    found = [
        library.CrossEncoder(str(tmp_path / name), device="cpu").predict(pairs)
        for name in ("model", "out")
    ]
    assert found[0].tobytes() == found[1].tobytes()


def test_wrapped_encoder(pruned, tmp_path) -> None:
    """A model like GLiNER's: table, sizes and the marker's id follow, all else is the same."""
    model = whole_folders.entity_model(tmp_path / "model")
    report = transfer_folder(tmp_path / "model", pruned(), tmp_path / "out")
    assert {"README.md", "pytorch_model.bin"} == report.left_out.keys()
    moved = open_entity_model(tmp_path / "out")
    said, was = (_json(tmp_path / name / "gliner_config.json") for name in ("out", "model"))
    assert was["vocab_size"] - 60 == said["vocab_size"] == report.rows
    rows = []
    for folder, each in ((tmp_path / "model", model), (tmp_path / "out", moved)):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        index = _json(folder / "gliner_config.json")["class_token_index"]
        assert tokenizer.convert_tokens_to_ids(ENTITY[0]) == index
        batch = tokenizer([f"{ENTITY[0]} cat {ENTITY[1]} {TEXTS[0]}"], return_tensors="pt")
        assert index in batch["input_ids"]
        with torch.no_grad():
            rows.append(each(**{key: batch[key] for key in ("input_ids", "attention_mask")}))
    assert torch.equal(*rows)
    ours = {"vocab_size", "class_token_index", "encoder_config"}
    assert {k: v for k, v in was.items() if k not in ours} == {
        k: v for k, v in said.items() if k not in ours
    }
    assert -1 == said["sep_token_index"]


def test_wrappers_that_are_refused(pruned, tmp_path, capsys) -> None:
    """In one line that says what to do: no safetensors, and no config of the encoder."""
    whole_folders.entity_model(tmp_path / "model")
    words = ["transfer", str(tmp_path / "model"), str(pruned()), "-o", str(tmp_path / "out")]
    file = tmp_path / "model" / "gliner_config.json"
    said = _json(file)
    file.write_text(json.dumps({**said, "encoder_config": None}))
    assert 2 == main(words)
    assert "gliner_config.json has no encoder_config" in capsys.readouterr().err
    file.write_text(json.dumps(said))
    (tmp_path / "model" / "model.safetensors").unlink()
    assert 2 == main(words)
    assert "safe_serialization=True" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("preprocessor_config.json", "{", "preprocessor_config.json is damaged"),
        ("own.json", '{"forced_decoder_ids": 3}', "own.json is damaged: forced_decoder_ids is 3"),
        ("modules.json", '[{"path": "../x"}]', "names '../x', which is no folder beside it"),
        ("modules.json", '{"path": 1}', "is no list of modules with their paths"),
    ],
)
def test_damaged_files(tmp_path, capsys, name, text, said) -> None:
    """Found in a dry run too; nothing is written."""
    whole_folders.llama(tmp_path / "model")
    (tmp_path / "model" / name).write_text(text)
    new = small_models.new_tokenizer().save_pretrained(tmp_path / "new")
    words = ["transfer", str(tmp_path / "model"), str(new), "-o", str(tmp_path / "out")]
    for extra in ([], ["--dry-run"]):
        assert 2 == main([*words, *extra])
        assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


def test_splade_pooling_has_the_new_number_of_rows(pruned, tmp_path) -> None:
    """It says how many numbers an embedding has: one for each token. Others mean the width."""
    source = tmp_path / "model"
    whole_folders.bert(source, "BertForMaskedLM")
    rows = _json(source / "config.json")["vocab_size"]
    modules = [{"path": path, "type": "any"} for path in ("", "1_SpladePooling", "2_Dense")]
    sizes = {"word_embedding_dimension": rows}
    splade = {**sizes, "pooling_strategy": "max"}
    files = {"modules.json": modules, "1_SpladePooling/config.json": splade}
    whole_folders.write(source, {**files, "2_Dense/config.json": sizes})
    report = transfer_folder(source, pruned(), tmp_path / "out")
    moved = _json(tmp_path / "out" / "1_SpladePooling" / "config.json")
    assert {**splade, "word_embedding_dimension": report.rows} == moved
    assert sizes == _json(tmp_path / "out" / "2_Dense" / "config.json")


def test_weights_in_another_format(tmp_path) -> None:
    """A model that is loaded whole keeps its files too."""
    source, new = tmp_path / "model", small_models.new_tokenizer()
    whole_folders.qwen2_vl(source)
    tensors = load_file(source / "model.safetensors")
    (source / "model.safetensors").unlink()
    torch.save(tensors, source / "pytorch_model.bin")
    report = transfer_folder(source, new, tmp_path / "out")
    assert "rewritten as safetensors" == report.files["pytorch_model.bin"]
    assert ("written", "copied") == tuple(
        report.files[name] for name in ("video_preprocessor_config.json", "LICENSE")
    )
    assert "vocab.json" in report.left_out
    planned = transfer_folder(source, new, tmp_path / "again", dry_run=True)
    assert report.left_out == planned.left_out
    assert "write" == planned.files["video_preprocessor_config.json"]


def test_onnx(pruned, tmp_path) -> None:
    """A model exported with the moved table gives in onnxruntime what torch gives."""
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime and onnxscript")
    pytest.importorskip("onnxscript", reason="needs onnxruntime and onnxscript")
    model = whole_folders.bert(tmp_path / "model")
    transfer_folder(tmp_path / "model", pruned(), tmp_path / "out")
    moved = type(model).from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = tokenizer(TEXTS[:1], return_tensors="pt")
    inputs = (batch["input_ids"], batch["attention_mask"])
    file = str(tmp_path / "model.onnx")
    with warnings.catch_warnings():  # of torch itself; as errors they would end the export
        warnings.simplefilter("ignore")
        torch.onnx.export(moved, inputs, file, input_names=["input_ids", "attention_mask"])
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    found = session.run(None, {name: batch[name].numpy() for name in names})[0]
    with torch.no_grad():
        first = transformers.AutoTokenizer.from_pretrained(tmp_path / "model")
        before = model(**first(TEXTS[:1], return_tensors="pt")).last_hidden_state
    torch.testing.assert_close(torch.from_numpy(found), before, rtol=1e-4, atol=1e-5)
