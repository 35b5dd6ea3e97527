"""Small random models of many architectures, and small byte-level tokenizers for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from vocabshift.tokenizer import byte_level
from vocabshift.tokenizer.added_tokens import AddedToken
from vocabshift.tokenizer.components import bos_template
from vocabshift.tokenizer.formats.load import as_tokenizer, load_tokenizer
from vocabshift.tokenizer.model import BpeModel
from vocabshift.tokenizer.tokenizer import Tokenizer

ENGLISH = ["the cat and the other cat sat by the heater", "another day, another letter"] * 5
HINDI = ["बिल्ली और दूसरी बिल्ली वहाँ बैठी थी", "एक और दिन, एक और चिट्ठी", "the cat and the day"] * 5
SPECIALS = ("<s>", "</s>", "<pad>", "<|turn|>", "<image>")

_S = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
_G = {**_S, "num_key_value_heads": 1, "head_dim": 8}
_N = {"n_embd": 16, "n_layer": 1, "n_head": 2}
_T = {"d_model": 16, "d_kv": 8, "d_ff": 8, "num_layers": 1, "num_heads": 2}
_EYE = {**_S, "image_size": 28, "patch_size": 14}
_BART = {
    f"{side}_{what}": 1 if what == "layers" else 2
    for side in ("encoder", "decoder")
    for what in ("layers", "attention_heads", "ffn_dim")
} | {"d_model": 16}
_MOBILE = {**_S, "embedding_size": 8, "intra_bottleneck_size": 8, "true_hidden_size": 8}

PLAIN: dict[str, tuple[str, dict[str, Any], int]] = {  # model type, settings, padding rows
    "llama": ("llama", {**_S, "rope_theta": 500_000.0}, 0),
    "llama-tied": ("llama", {**_S, "tie_word_embeddings": True}, 0),
    "qwen2-padded": ("qwen2", {**_S, "num_key_value_heads": 1}, 32),
    "qwen3-tied": ("qwen3", {**_G, "tie_word_embeddings": True}, 0),
    "mistral": ("mistral", _G, 0),
    "gemma2": ("gemma2", _G, 0),
    "gemma3": ("gemma3_text", _G, 0),
    "phi3": ("phi3", _S, 0),
    "gpt2": ("gpt2", _N, 0),
    "gpt_neox": ("gpt_neox", _S, 0),
    "openai-gpt": ("openai-gpt", _N, 0),
    "gptj": ("gptj", {**_N, "rotary_dim": 4}, 0),
    "opt": ("opt", {**_S, "word_embed_proj_dim": 16, "ffn_dim": 8}, 0),
    "bloom": ("bloom", {"hidden_size": 16, "n_layer": 1, "n_head": 2}, 0),
    "gemma4-per-layer": (
        "gemma4_text",
        {**_G, "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 288},
        0,
    ),
    "gemma3n-per-layer": (
        "gemma3n_text",
        {
            **_G,
            "num_hidden_layers": 2,
            "intermediate_size": [24, 24],
            "layer_types": ["sliding_attention", "full_attention"],
            "activation_sparsity_pattern": [0.0, 0.0],
            "num_kv_shared_layers": 0,
            "hidden_size_per_layer_input": 4,
            "vocab_size_per_layer_input": 287,  # the last token shares row 0
            "laurel_rank": 2,
        },
        0,
    ),
}
OTHERS: dict[str, tuple[str, str, dict[str, Any]]] = {  # class, model type, settings
    "mt5": ("MT5ForConditionalGeneration", "mt5", {**_T, "tie_word_embeddings": False}),
    "mt5-tied": ("MT5ForConditionalGeneration", "mt5", {**_T, "tie_word_embeddings": True}),
    "mbart": ("MBartForConditionalGeneration", "mbart", _BART),
    "xlm-roberta": ("XLMRobertaForMaskedLM", "xlm-roberta", {**_S, "pad_token_id": 1}),
    "bert": ("BertForMaskedLM", "bert", _S),
    "mobilebert": ("MobileBertForMaskedLM", "mobilebert", _MOBILE),
    "classifier": ("XLMRobertaForSequenceClassification", "xlm-roberta", {**_S, "pad_token_id": 1}),
}
WRAPPERS = ("llava", "gemma3-wrapper")
KINDS = (*PLAIN, *OTHERS, *WRAPPERS)
WITHOUT_GENERATION = ("xlm-roberta", "bert", "mobilebert", "classifier")


def train(texts: list[str], size: int, specials: tuple[str, ...] = ()) -> Tokenizer:
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


def old_tokenizer(texts: list[str] = ENGLISH, size: int = 283) -> Tokenizer:
    """English, with bos, eos, pad, turn and image tokens, and a template that begins texts."""
    tokenizer = train(texts, size, SPECIALS)
    return replace(
        tokenizer,
        post_processor=bos_template("<s>", special_ids(tokenizer)["<s>"]),
        config={"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
    )


def new_tokenizer() -> Tokenizer:
    """Hindi, without a special token."""
    return train(HINDI, 340)


def sentencepiece_tokenizer(place: Path) -> Tokenizer:
    """What SentencePiece itself learns of English (with byte fallback, and Hindi's letters); its
    file is `place / "small.model"`."""
    import pytest

    sentencepiece = pytest.importorskip("sentencepiece")
    (place / "english.txt").write_text("\n".join(ENGLISH * 8))
    sentencepiece.SentencePieceTrainer.train(
        input=str(place / "english.txt"),
        model_prefix=str(place / "small"),
        model_type="bpe",
        vocab_size=340,
        byte_fallback=True,
        required_chars="".join(sorted({*"".join(HINDI)} - {" "})),
        minloglevel=2,
    )
    tokenizer = load_tokenizer(place / "small.model")
    known, first = special_ids(tokenizer), tokenizer.row_count
    lacking = [text for text in SPECIALS if text not in known]
    added = [
        replace(tokenizer.added_tokens[0], content=text, id=first + i)
        for i, text in enumerate(lacking)
    ]
    return replace(tokenizer, added_tokens=(*tokenizer.added_tokens, *added))


def tiny_tokenizer() -> Tokenizer:
    """256 bytes, ten merges (one superword, one half character), one special token."""
    merges = (
        *(("t", "h"), ("th", "e"), ("Ġ", "the"), ("a", "t"), ("c", "at"), ("Ġ", "cat")),
        *(("Ġthe", "Ġcat"), ("m", "at"), ("à", "¤"), ("à¤", "ķ")),
    )
    tokens = [*byte_level.ALPHABET, *("".join(merge) for merge in merges)]
    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return Tokenizer(
        BpeModel({token: i for i, token in enumerate(tokens)}, merges),
        pre_tokenizer={**spec, "use_regex": False},
        decoder={**spec, "use_regex": False},
        added_tokens=(AddedToken("<|end|>", len(tokens)),),
        name="tiny",
    )


def joining_tokenizer(*merges: tuple[str, str]) -> Tokenizer:
    """256 bytes and these merges, at any place of a text, spaces included; SPECIALS after them."""
    tokens = list(dict.fromkeys([*byte_level.ALPHABET, *("".join(merge) for merge in merges)]))
    spec = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return Tokenizer(
        BpeModel({token: i for i, token in enumerate(tokens)}, merges),
        pre_tokenizer={**spec, "use_regex": False},
        decoder={**spec, "use_regex": False},
        added_tokens=tuple(AddedToken(text, len(tokens) + i) for i, text in enumerate(SPECIALS)),
        config={"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
        name="joining",
    )


def write_rows(
    place: Path,
    tokenizer: Tokenizer,
    embeddings: Any,
    head: Any = None,
    *,
    name: str = "model",
    config: dict[str, Any] | None = None,
) -> Path:
    """A folder below `place`: a Llama of which nothing but these rows is stored, and a tokenizer.

    `config`: keys of `config.json` that are to be others.
    """
    folder = tokenizer.save_pretrained(place / name)
    embeddings = np.asarray(embeddings, dtype=np.float32)
    tensors = {"model.embed_tokens.weight": embeddings}
    if head is not None:
        tensors["lm_head.weight"] = np.asarray(head, dtype=np.float32)
    save_file(tensors, folder / "model.safetensors")
    rows, width = embeddings.shape
    sizes = {**_S, "num_attention_heads": 1, "head_dim": 2, "vocab_size": rows}
    settings = {"model_type": "llama", **sizes, "hidden_size": width}
    settings |= {"tie_word_embeddings": head is None, **(config or {})}
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def special_ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Text -> id of the added tokens."""
    return {token.content: token.id for token in tokenizer.added_tokens}


def build(kind: str, tokenizer: Tokenizer, **changes: Any) -> Any:
    """A random model of the kind for this tokenizer, with lists of ids where configs may."""
    ids = special_ids(tokenizer)
    roles = {
        "bos_token_id": ids["<s>"],
        "eos_token_id": ids["</s>"],
        "pad_token_id": ids["<pad>"],
    }
    makers: dict[str, Callable[[], Any]] = {
        "llava": lambda: _llava(tokenizer, roles, ids),
        "gemma3-wrapper": lambda: _gemma3(tokenizer, roles, ids),
    }
    torch.manual_seed(5)
    if kind in makers:
        model = makers[kind]()
    elif kind in OTHERS:
        class_name, model_type, settings = OTHERS[kind]
        size = {"vocab_size": tokenizer.row_count, "max_position_embeddings": 80}
        values = {**size, **roles, "decoder_start_token_id": ids["<pad>"], **settings, **changes}
        config = transformers.AutoConfig.for_model(model_type, **values)
        model = getattr(transformers, class_name)(config)
    else:
        model_type, settings, padding = PLAIN[kind]
        size = {"vocab_size": tokenizer.row_count + padding, "max_position_embeddings": 64}
        values = {**size, **roles, **settings, **changes}
        config = transformers.AutoConfig.for_model(model_type, **values)
        model = transformers.AutoModelForCausalLM.from_config(config)
    if model.can_generate():
        model.generation_config.eos_token_id = [ids["</s>"], ids["<|turn|>"]]
    for parameter in (p for p in model.parameters() if p.dim() == 1):
        torch.nn.init.normal_(parameter)  # a bias of zeros would show nothing
    return model.eval()


def mllama(tokenizer: Tokenizer) -> Any:
    """A random Mllama, whose input embeddings have 8 rows that its head has not.

    The first of them is its image token's, the last id of `tokenizer`.
    """
    ids = special_ids(tokenizer)
    text = {**_S, "num_hidden_layers": 2, "num_key_value_heads": 1, "cross_attention_layers": [1]}
    for role, token in (("bos", "<s>"), ("eos", "</s>"), ("pad", "<pad>")):
        text[f"{role}_token_id"] = ids[token]
    text["vocab_size"] = tokenizer.row_count - 1
    eye = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "image_size": 8}
    eye |= {"num_global_layers": 1, "attention_heads": 2, "patch_size": 4, "max_num_tiles": 1}
    eye |= {"intermediate_layers_indices": [0], "vision_output_dim": 32}
    eye |= {"supported_aspect_ratios": [[1, 1]]}
    torch.manual_seed(3)
    return transformers.MllamaForConditionalGeneration(
        transformers.MllamaConfig(
            text_config=text, vision_config=eye, image_token_index=ids["<image>"]
        )
    ).eval()


def save(model: Any, tokenizer: Tokenizer, path: Path, **options: Any) -> Path:
    """Model and tokenizer as one folder."""
    folder = tokenizer.save_pretrained(path)
    model.save_pretrained(folder, **options)
    return folder


def _llava(tokenizer: Tokenizer, roles: dict[str, int], ids: dict[str, int]) -> Any:
    text = {**_G, **roles, "model_type": "llama", "vocab_size": tokenizer.row_count}
    eye = {**_EYE, "model_type": "clip_vision_model", "projection_dim": 8}
    return transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            text_config=text, vision_config=eye, image_token_index=ids["<image>"]
        )
    )


def _gemma3(tokenizer: Tokenizer, roles: dict[str, int], ids: dict[str, int]) -> Any:
    text = {**_G, **roles, "model_type": "gemma3_text", "vocab_size": tokenizer.row_count}
    return transformers.Gemma3ForConditionalGeneration(
        transformers.Gemma3Config(
            text_config=text,
            vision_config=_EYE,
            mm_tokens_per_image=4,
            image_token_index=ids["<image>"],
            boi_token_index=ids["<|turn|>"],
            eoi_token_index=ids["<pad>"],
            **roles,
        )
    )
