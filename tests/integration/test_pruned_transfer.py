"""A model follows its pruned tokenizer: rows by the token map, and no map of strangers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from vocabshift.cli.main import main  # noqa: E402
from vocabshift.errors import VocabMismatchError  # noqa: E402
from vocabshift.surgery.transfer import transfer_folder  # noqa: E402
from vocabshift.text.corpus import Corpus  # noqa: E402
from vocabshift.tokenizer.added_tokens import AddedToken  # noqa: E402
from vocabshift.tokenizer.formats.load import load_tokenizer  # noqa: E402
from vocabshift.tokenizer.id_map import load  # noqa: E402
from vocabshift.tokenizer.tokenizer import Tokenizer  # noqa: E402
from vocabshift.trainers.byte_level import BpeTrainer  # noqa: E402
from vocabshift.workflows.transfer import transfer  # noqa: E402

TEXT = "the cat and the other cat sat by the heater\nanother day, another letter, another cat\n"


@pytest.fixture(scope="module")
def base() -> Tokenizer:
    trained = BpeTrainer(vocab_size=285).train(Corpus.from_texts(TEXT.splitlines()))
    return replace(
        trained,
        added_tokens=(AddedToken("<s>", 285), AddedToken("</s>", 286)),
        config={"bos_token": "<s>", "eos_token": "</s>"},
    )


@pytest.fixture
def model(base: Tokenizer) -> Any:
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=base.row_count,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        bos_token_id=285,
        eos_token_id=286,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture
def folders(base: Tokenizer, model: Any, tmp_path: Path) -> tuple[Path, Path]:
    """A model folder, and its tokenizer pruned twice."""
    corpus = tmp_path / "text.txt"
    corpus.write_text(TEXT)
    model_folder = base.save_pretrained(tmp_path / "model")
    model.save_pretrained(model_folder)
    for source, out in ((model_folder, "once"), (tmp_path / "once", "twice")):
        argv = ["prune", str(source), "--corpus", str(corpus), "--n-tokens", "7"]
        assert main([*argv, "-o", str(tmp_path / out), "--json"]) == 0
    return model_folder, tmp_path / "twice"


def test_rows_follow_the_map_of_the_whole_chain(
    folders: tuple[Path, Path], base: Tokenizer, model: Any, tmp_path: Path
) -> None:
    model_folder, twice = folders
    rows = model.get_input_embeddings().weight.detach().clone()
    report = transfer_folder(model_folder, twice, tmp_path / "out")
    assert (report.n_copied, report.n_initialized, report.n_removed) == (273, 0, 14)
    moved = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    new = load_tokenizer(tmp_path / "out")
    old_ids = dict(base.model.vocab) | {t.content: t.id for t in base.added_tokens}
    for token, token_id in {**new.model.vocab, "<s>": 271, "</s>": 272}.items():
        assert torch.equal(moved.get_input_embeddings().weight[token_id], rows[old_ids[token]])
    assert (moved.config.bos_token_id, moved.config.eos_token_id) == (271, 272)
    said = json.loads((tmp_path / "out" / "vocabshift.json").read_text())["config"]
    assert said["token_map"] is True
    assert not (tmp_path / "out" / "token_map.json").exists()  # the new model has its own ids


def test_the_map_is_believed_before_bytes(folders: tuple[Path, Path], model: Any) -> None:
    """With two ids changed round in the map, their rows change places."""
    model_folder, twice = folders
    file = twice / "token_map.json"
    document = json.loads(file.read_text())
    table = document["old_to_new"]
    table[3], table[4] = table[4], table[3]
    file.write_text(json.dumps(document))
    rows = model.get_input_embeddings().weight.detach().clone()
    moved, _ = transfer(model, old=load_tokenizer(model_folder), new=twice)
    assert torch.equal(moved.get_input_embeddings().weight[3], rows[4])
    assert torch.equal(moved.get_input_embeddings().weight[4], rows[3])


def test_what_the_map_does_not_name_goes_by_bytes(folders: tuple[Path, Path], model: Any) -> None:
    model_folder, twice = folders
    mapped = load(twice)
    mapped.old_to_new[:256] = -1
    _, tokenizer = transfer(
        model, old=load_tokenizer(model_folder), new=load_tokenizer(twice), id_map=mapped
    )
    assert tokenizer.row_count == 273


def test_a_map_of_another_tokenizer_is_refused(
    folders: tuple[Path, Path], model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model_folder, twice = folders
    other = load_tokenizer(model_folder)
    added = (*other.added_tokens, AddedToken("<pad>", 287))
    with pytest.raises(VocabMismatchError, match="leads from the tokenizer"):
        transfer(model, old=replace(other, added_tokens=added), new=twice)
    once = load_tokenizer(tmp_path / "once")
    with pytest.raises(VocabMismatchError, match="leads to the tokenizer"):
        transfer(model, old=other, new=once, id_map=twice)
    (twice / "token_map.json").write_text((tmp_path / "once" / "token_map.json").read_text())
    argv = ["transfer", str(model_folder), str(twice), "-o", str(tmp_path / "out")]
    assert main(argv) == 2
    assert "token map leads to the tokenizer" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (twice / "token_map.json").unlink()
    assert main(argv) == 0


def test_a_map_beside_the_input_must_be_the_inputs(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, twice = folders
    (twice / "token_map.json").write_text((tmp_path / "once" / "token_map.json").read_text())
    argv = ["prune", str(twice), "--n-tokens", "1", "--order", "id", "-o", str(tmp_path / "out")]
    assert main(argv) == 2
    assert "token map" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
