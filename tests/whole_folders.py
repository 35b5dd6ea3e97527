"""Model folders as they lie on the Hub, written small: every file that such a repository has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.trainers import WordPieceTrainer

import small_models

TEXTS = ["the cat and the other cat sat by the heater", "another day, another letter"]
RARE = ["quixotic zephyrs vex jumbled wizards", "jackdaws love my big sphinx of quartz"]
ROLES = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
ENTITY = ("<<ENT>>", "<<SEP>>")
SIZES: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1}
SIZES |= {"num_attention_heads": 2, "max_position_embeddings": 64}
POOLING = {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}
DENSE = {
    "in_features": 16,
    "out_features": 8,
    "bias": True,
    "activation_function": "torch.nn.modules.linear.Identity",
}


def write(folder: Path, files: dict[str, Any]) -> None:
    """Name -> JSON, or the text of a file that is no JSON."""
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = data if isinstance(data, str) else json.dumps(data)
        (folder / name).write_text(text, encoding="utf-8")


def wordpiece(folder: Path, *added: str) -> Any:
    """A WordPiece tokenizer as BERT's, as transformers writes it into `folder`."""
    backend = Backend(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    first = [ROLES[role] for role in ("pad", "unk", "cls", "sep", "mask")]
    trainer = WordPieceTrainer(vocab_size=220, special_tokens=first, show_progress=False)
    backend.train_from_iterator([*TEXTS * 9, *RARE * 2], trainer)
    backend.post_processor = processors.BertProcessing(
        ("[SEP]", backend.token_to_id("[SEP]")), ("[CLS]", backend.token_to_id("[CLS]"))
    )
    backend.add_special_tokens([AddedToken(text, special=True) for text in added])
    roles: dict[str, Any] = {f"{role}_token": text for role, text in ROLES.items()}
    roles["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **roles)
    fast.save_pretrained(folder)
    return fast


def bert(folder: Path, class_name: str = "BertModel", **settings: Any) -> Any:
    """A random BERT with its tokenizer in `folder`."""
    tokenizer = wordpiece(folder)
    torch.manual_seed(5)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **SIZES, **settings
    )
    model = getattr(transformers, class_name)(config).eval()
    model.save_pretrained(folder)
    return model


def sentence_transformer(folder: Path) -> None:
    """As sentence-transformers writes it: BERT, mean pooling, a dense layer, normalization."""
    bert(folder)
    types = ("Transformer", "Pooling", "Dense", "Normalize")
    paths = ("", "1_Pooling", "2_Dense", "3_Normalize")
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (path, name) in enumerate(zip(paths, types, strict=True))
    ]
    prompts = {"query": "the cat: ", "document": ""}
    write(
        folder,
        {
            "modules.json": modules,
            "1_Pooling/config.json": POOLING,
            "2_Dense/config.json": DENSE,
            "sentence_bert_config.json": {"max_seq_length": 64, "do_lower_case": False},
            "config_sentence_transformers.json": {"prompts": prompts, "default_prompt_name": None},
            "README.md": "# A model",
            ".gitattributes": "*.bin",
            "vocab.txt": "[PAD]",
            "onnx/model.onnx": "",
            "onnx/model_O2.onnx": "",
            "openvino/openvino_model.xml": "",
            "pytorch_model.bin": "",
            "tf_model.h5": "",
            "train_script.py": "raise SystemExit",
            "1_Pooling/own.py": "raise SystemExit",
            "data_config.json": [{"weight": 220}],
        },
    )
    torch.manual_seed(6)
    tensors = {"linear.weight": torch.randn(8, 16), "linear.bias": torch.randn(8)}
    save_file(tensors, folder / "2_Dense" / "model.safetensors")


def llama(folder: Path) -> None:
    """With the files of Meta's own format below it."""
    old = small_models.old_tokenizer()
    small_models.save(small_models.build("llama", old), old, folder, max_shard_size="12KB")
    write(
        folder,
        {
            "LICENSE": "terms",
            "USE_POLICY.md": "more terms",
            "README.md": "# A model",
            ".gitattributes": "",
            "tokenizer.model": "",
            "special_tokens_map.json": {},
            "original/params.json": {"vocab_size": 288},
            "original/consolidated.00.pth": "",
            "original/tokenizer.model": "",
            "adapter_config.json": {},
        },
    )


def qwen2_vl(folder: Path) -> None:
    """A wrapper with a vision tower, whose processors name tokens."""
    old = small_models.old_tokenizer()
    ids = small_models.special_ids(old)
    roles = {"bos_token_id": ids["<s>"], "eos_token_id": ids["</s>"], "pad_token_id": ids["<pad>"]}
    text = {**SIZES, **roles, "num_key_value_heads": 1, "vocab_size": old.row_count}
    text["rope_parameters"] = {"rope_type": "default", "mrope_section": [1, 1, 2]}
    eye = {"depth": 1, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "patch_size": 4}
    torch.manual_seed(5)
    config = transformers.Qwen2VLConfig(
        text_config=text,
        vision_config={**eye, "mlp_ratio": 1, "spatial_merge_size": 2},
        image_token_id=ids["<image>"],
        video_token_id=ids["<image>"],
        vision_start_token_id=ids["<|turn|>"],
        vision_end_token_id=ids["<|turn|>"],
        **roles,
    )
    model = transformers.Qwen2VLForConditionalGeneration(config).eval()
    model.generation_config.eos_token_id = [ids["</s>"], ids["<|turn|>"]]
    small_models.save(model, old, folder)
    image = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 14, "max_pixels": 287}
    write(
        folder,
        {
            "preprocessor_config.json": image,
            "video_preprocessor_config.json": {"video_token_id": ids["<image>"], "size": [287, 4]},
            "chat_template.json": {"chat_template": "{{ messages }}"},
            "vocab.json": {},
            "merges.txt": "",
            "LICENSE": "terms",
            "configuration.json": {},
            "added_tokens.json": {},
            "README.md": "",
            ".gitattributes": "",
        },
    )


def whisper(folder: Path) -> None:
    """Speech to text, whose generation config has ids in every form."""
    old = small_models.old_tokenizer()
    ids = small_models.special_ids(old)
    later = small_models.new_tokenizer().model.vocab
    gone = next(i for token, i in old.model.vocab.items() if token not in later)
    side = {"layers": 1, "attention_heads": 2, "ffn_dim": 8}
    sizes = {f"{kind}_{key}": n for kind in ("encoder", "decoder") for key, n in side.items()}
    roles = {"bos_token_id": ids["<s>"], "eos_token_id": ids["</s>"], "pad_token_id": ids["<pad>"]}
    sizes |= {"d_model": 16, "num_mel_bins": 8, "max_source_positions": 16}
    torch.manual_seed(5)
    config = transformers.WhisperConfig(
        vocab_size=old.row_count,
        max_target_positions=16,
        decoder_start_token_id=ids["<s>"],
        **{**sizes, **roles},
    )
    model = transformers.WhisperForConditionalGeneration(config).eval()
    small_models.save(model, old, folder)
    said = json.loads((folder / "generation_config.json").read_text())
    said |= {
        "lang_to_id": {"<|en|>": ids["<|turn|>"], "<|xx|>": gone},
        "task_to_id": {"transcribe": ids["<image>"]},
        "no_timestamps_token_id": ids["<image>"],
        "forced_decoder_ids": [[1, None], [2, ids["<image>"]]],
        "suppress_tokens": [1, gone, ids["<s>"]],
        "begin_suppress_tokens": [ids["</s>"]],
        "alignment_heads": [[0, 1]],
        "max_initial_timestamp_index": 50,
    }
    write(
        folder,
        {
            "generation_config.json": said,
            "preprocessor_config.json": {"feature_size": 8, "sampling_rate": 16000},
            "normalizer.json": {"accessorise": "accessorize"},
            "vocab.json": {},
            "merges.txt": "",
            "added_tokens.json": {},
            "README.md": "",
            "flax_model.msgpack": "",
            "tf_model.h5": "",
            "pytorch_model.bin": "",
            "model.fp32-00001-of-00002.safetensors": "",
            ".gitattributes": "",
            "model.safetensors.index.fp32.json": {"weight_map": {}},
        },
    )


def t5(folder: Path) -> None:
    """Encoder and decoder over one table."""
    old = small_models.old_tokenizer()
    small_models.save(small_models.build("mt5-tied", old), old, folder)
    write(
        folder,
        {
            "spiece.model": "",
            "special_tokens_map.json": {},
            "README.md": "",
            "rust_model.ot": "",
            "tf_model.h5": "",
            "onnx/decoder_model.onnx": "",
            "runs/Nov22/events.out.tfevents.1": "",
            "training_args.bin": "",
            "all_results.json": {"eval_loss": 1.0},
        },
    )


LAYOUTS: dict[str, Callable[[Path], None]] = {
    "llama": llama,
    "qwen2-vl": qwen2_vl,
    "sentence-transformers": sentence_transformer,
    "whisper": whisper,
    "t5": t5,
}


class EntityModel(torch.nn.Module):
    """What GLiNER stores: an encoder below two modules of its own, and layers on top."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.token_rep_layer = torch.nn.Module()
        self.token_rep_layer.bert_layer = torch.nn.Module()
        self.token_rep_layer.bert_layer.model = encoder
        self.span_rep_layer = torch.nn.Linear(16, 8)

    def forward(self, **batch: Any) -> Any:
        """(texts, tokens, 8)."""
        encoder = self.token_rep_layer.bert_layer.model
        return self.span_rep_layer(encoder(**batch).last_hidden_state)


def entity_model(folder: Path) -> EntityModel:
    """A model like GLiNER's, with its config and tokenizer in `folder`."""
    tokenizer = wordpiece(folder, *ENTITY)
    torch.manual_seed(5)
    config = transformers.DebertaV2Config(
        vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, type_vocab_size=0, **SIZES
    )
    model = EntityModel(transformers.DebertaV2Model(config)).eval()
    save_file(model.state_dict(), folder / "model.safetensors")
    said = {
        "model_type": "gliner_uni_encoder_span",
        "model_name": "someone/encoder",
        "vocab_size": len(tokenizer),
        "class_token_index": tokenizer.convert_tokens_to_ids(ENTITY[0]),
        "sep_token_index": -1,
        "hidden_size": 16,
        "ent_token": ENTITY[0],
        "encoder_config": config.to_dict(),
    }
    write(folder, {"gliner_config.json": said, "README.md": "", "pytorch_model.bin": ""})
    return model


def open_entity_model(folder: Path) -> EntityModel:
    """The model of such a folder, every tensor of which must be there."""
    from safetensors.torch import load_file

    said = json.loads((folder / "gliner_config.json").read_text())
    assert said["vocab_size"] == said["encoder_config"]["vocab_size"]
    config = transformers.AutoConfig.for_model(**said["encoder_config"])
    model = EntityModel(transformers.AutoModel.from_config(config)).eval()
    model.load_state_dict(load_file(folder / "model.safetensors"))
    return model
