"""AutoTokenizer loads the folder that we write with our pre-tokenizer, whatever the model type."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from vocabshift.errors import InvalidTokenizerError
from vocabshift.text import patterns
from vocabshift.tokenizer.formats.load import as_tokenizer
from vocabshift.tokenizer.pretrained_folder import check_auto, write_auto_class, write_files
from vocabshift.tokenizer.tokenizer import Tokenizer

pytest.importorskip("transformers")

TYPES = ("llama", "mistral", "qwen2", "qwen3", "qwen3_5", "gemma", "gpt_neox", "phi", "gpt2")
OVERRIDDEN = ("qwen2", "qwen3_5")


@pytest.fixture(scope="module")
def superwords() -> Tokenizer:
    """A tokenizer with tokens across words: every model type's own pattern would cut them."""
    folder = resources.files("vocabshift.demo") / "texts"
    files = sorted(str(file) for file in folder.iterdir() if file.name.endswith(".txt"))
    (split,) = patterns.get_pattern("superbpe-stage2")
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split.regex), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=1200, initial_alphabet=alphabet, show_progress=False)
    backend.train(files, trainer)
    backend.add_special_tokens([AddedToken("<s>", special=True), AddedToken("</s>", special=True)])
    tokenizer = as_tokenizer(backend)
    assert any("Ġ" in token[1:] for token in tokenizer.model.vocab)
    return tokenizer


def write_model_folder(tokenizer: Tokenizer, folder: Path, model_type: str) -> Path:
    config = {"model_type": model_type, "vocab_size": tokenizer.row_count}
    config |= dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0)
    (folder / "config.json").write_text(json.dumps(config))
    write_files(tokenizer, folder)
    return folder


@pytest.mark.parametrize("model_type", TYPES)
def test_every_model_type_keeps_our_pre_tokenizer(
    superwords: Tokenizer, tmp_path: Path, model_type: str
) -> None:
    folder = write_model_folder(superwords, tmp_path, model_type)
    assert write_auto_class(folder, model_type) == (model_type in OVERRIDDEN)
    check_auto(folder)
    has_code = (folder / "tokenization_vs.py").exists()
    assert has_code == (model_type in OVERRIDDEN)


def test_a_class_that_rebuilds_its_own_pre_tokenizer_is_noticed(
    superwords: Tokenizer, tmp_path: Path
) -> None:
    folder = write_model_folder(superwords, tmp_path, "gpt2")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}')
    with pytest.raises(InvalidTokenizerError, match="with another segmentation"):
        check_auto(folder)


def test_the_code_file_is_three_lines_of_class(superwords: Tokenizer, tmp_path: Path) -> None:
    folder = write_model_folder(superwords, tmp_path, "qwen2")
    write_auto_class(folder, "qwen2")
    lines = (folder / "tokenization_vs.py").read_text().splitlines()
    assert len(lines) == 3
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["auto_map"] == {"AutoTokenizer": [None, "tokenization_vs.VSTokenizer"]}
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
