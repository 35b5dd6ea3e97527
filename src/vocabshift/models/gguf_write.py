"""A Hugging Face folder as a GGUF file: `convert_to_gguf`, the way back of `gguf`.

Owns the order of the work, and everything checked before anything is written. `gguf_keys` makes the
metadata, `gguf_tensors` the tensors, `tokenizer.formats.gguf_write` the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from vocabshift.errors import InvalidTokenizerError
from vocabshift.models.contents import CHAT_TEMPLATES
from vocabshift.models.folder import load_own_tokenizer, local_folder
from vocabshift.models.gguf_config import ROPE_FACTORS
from vocabshift.models.gguf_keys import Hyperparameters, to_hyperparameters
from vocabshift.models.gguf_tensors import (
    READABLE,
    NewTensor,
    blocks_of,
    kind_of,
    new_tensor,
    write_file,
)
from vocabshift.models.gguf_weights import Expected, expected_tensors, gguf_package
from vocabshift.models.load import load_configs
from vocabshift.models.shards import Checkpoint, open_checkpoint
from vocabshift.progress import Progress, in_phase
from vocabshift.storage.output import atomic_file
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.gguf_header import header_bytes, key_bytes
from vocabshift.tokenizer.formats.gguf_write import GgufVocabulary, to_vocabulary
from vocabshift.tokenizer.tokenizer import Tokenizer

GgufType = Literal["auto", "F32", "F16", "BF16", "Q8_0"]
"""Of matrices in the file; "auto" is the widest of those in the folder."""

_FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7, "BF16": 32}  # LlamaFileType
_WIDEST = {"BF16": "BF16", "F16": "F16", "F32": "F32", "F64": "F32"}
_QUANTIZATION_VERSION = 2


def convert_to_gguf(
    source: str | Path,
    out: str | Path,
    *,
    dtype: GgufType = "auto",
    pre: str | None = None,
    text: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a model folder as one GGUF file, for llama.cpp and what is built on it.

    source: the folder (or Hub name); its weights are in safetensors. out: the file, which appears
        whole or not at all; `force` replaces it. dtype: of the matrices; norms and biases have
        32 bits. pre: write this name of a pre-tokenizer, and compare no ids. text: more held-out
        texts to compare ids on. progress: called with "weights", and bytes of the folder.

    Returns the keys of `vocabshift convert --json`. ValueError for a model that llama.cpp does not
    have or computes otherwise; NoPreTokenizerError, with lines to paste, where llama.cpp cuts text
    in no way that gives the tokenizer's ids; FileExistsError if `out` exists, without `force`.
    """
    if dtype not in get_args(GgufType):
        raise ValueError(f"dtype is {dtype!r}; it must be one of {', '.join(get_args(GgufType))}")
    gguf = gguf_package()
    with atomic_file(out, force=force, inputs=[source]) as target:
        model = _read(source, pre, text)
        tensors, kind = _plan(model, dtype)
        types = [tensor.kind for tensor in tensors]
        keys = {**_general(model, kind), **model.hyperparameters.keys, **model.vocabulary.keys}
        header, starts = header_bytes(
            [key_bytes(name, value) for name, value in keys.items()],
            [
                (t.name, t.expected.shape, int(gguf.GGMLQuantizationType[t.kind]), t.n_bytes)
                for t in tensors
            ],
        )
        n_bytes = starts[-1] + tensors[-1].n_bytes
        parts = [partial(blocks_of, tensor) for tensor in tensors]
        write_file(
            target,
            header,
            list(zip(starts, parts, strict=True)),
            n_bytes=n_bytes,
            progress=in_phase(progress, "weights"),
        )
    config, vocabulary = model.hyperparameters.config, model.vocabulary
    warnings = [*model.hyperparameters.warnings, *vocabulary.warnings]
    if any((model.checkpoint.folder / CHAT_TEMPLATES).glob("*.jinja")):
        warnings.append(f"only the default chat template is written, none of {CHAT_TEMPLATES}")
    stored = {stored for tensor in tensors if (stored := tensor.stored) is not None}
    return {
        "out": str(out),
        "architecture": model.hyperparameters.architecture,
        "n_parameters": sum(math.prod(each.shape) for each in stored),
        "n_tensors": len(tensors),
        "types": {each: types.count(each) for each in sorted(set(types))},
        "dtype": kind,
        "bytes_before": sum(shard.n_bytes for shard in model.checkpoint.shards),
        "bytes_after": n_bytes,
        "vocab_size": config["vocab_size"],
        "n_tokens": model.tokenizer.row_count,
        "pre_tokenizer": vocabulary.pre,
        "chkhsh": vocabulary.chkhsh,
        "n_texts_compared": vocabulary.n_texts,
        "tied": config["tie_word_embeddings"],
        "has_chat_template": model.tokenizer.chat_template is not None,
        "warnings": warnings,
    }


class _Model(NamedTuple):
    """All that the file will hold; the weights are not read yet."""

    name: str
    checkpoint: Checkpoint
    tokenizer: Tokenizer
    hyperparameters: Hyperparameters
    vocabulary: GgufVocabulary


def _read(
    source: str | Path,
    pre: str | None,
    text: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None,
) -> _Model:
    """Read and check all but the values of the weights."""
    folder = local_folder(source)
    checkpoint = open_checkpoint(folder)
    if checkpoint is None:
        raise FileNotFoundError(f"{source} holds no weights in safetensors; save it in that form")
    config, generation = load_configs(folder)
    hyperparameters = to_hyperparameters(config.to_dict())
    tokenizer = load_own_tokenizer(folder)
    if not isinstance(tokenizer, Tokenizer):
        raise InvalidTokenizerError(
            f"the tokenizer of {source} is {tokenizer.kind}; BPE ones can be written as GGUF"
        )
    ends = next((own for own in (_ids(generation, "eos"), _ids(config, "eos")) if own), [])
    roles = {"bos": _ids(config, "bos"), "pad": _ids(config, "pad")}
    corpus = text if isinstance(text, Corpus) or text is None else Corpus.from_texts(text)
    vocabulary = to_vocabulary(
        tokenizer,
        hyperparameters.config["vocab_size"],
        roles={role: ids[0] for role, ids in roles.items() if ids},
        ends=ends,
        pre=pre,
        texts=_texts(corpus),
    )
    return _Model(folder.name, checkpoint, tokenizer, hyperparameters, vocabulary)


def _texts(corpus: Corpus | None) -> Iterator[str]:
    for part in () if corpus is None else corpus.parts:
        for documents in part.read():
            yield from documents.texts()


def _ids(config: Any, role: str) -> list[int]:
    """The ids of a role in a config: none, one or several."""
    value = getattr(config, f"{role}_token_id", None)
    values = value if isinstance(value, list) else [value]
    return [token_id for token_id in values if type(token_id) is int and token_id >= 0]


def _plan(model: _Model, dtype: GgufType) -> tuple[list[NewTensor], str]:
    """The tensors in the order of the file, and the type of the matrices.

    ValueError where the folder lacks one, has another, or one of another shape.
    """
    config, architecture = model.hyperparameters.config, model.hyperparameters.architecture
    expected = expected_tensors(architecture, config)
    stored = model.checkpoint.tensors
    wanted = {own.name for own in expected.values()}
    ignored = {"lm_head.weight"} if config["tie_word_embeddings"] else set()
    beyond = {name for name in stored if not name.endswith("rotary_emb.inv_freq")} - ignored
    for names, wrong in (
        (wanted - stored.keys(), "lacks tensors that a model of this kind has"),
        (beyond - wanted, "has tensors that llama.cpp has no place for"),
    ):
        if names:
            shown = sorted(names)
            more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
            raise ValueError(f"the folder ({architecture}) {wrong}: {', '.join(shown[:3])}{more}")
    dtypes = {stored[name][1].dtype for name in wanted}
    if not dtypes <= READABLE.keys():
        raise ValueError(
            f"weights are stored as {', '.join(sorted(dtypes - READABLE.keys()))}, and only F32, "
            "F16 and BF16 can be written as GGUF: give the unquantized model"
        )
    matrices = [stored[own.name][1].dtype for own in expected.values() if len(own.shape) > 1]
    kind = max(map(_WIDEST.__getitem__, matrices), key=["BF16", "F16", "F32"].index)
    kind = kind if dtype == "auto" else dtype
    tensors = []
    for name, own in expected.items():
        shard, tensor = stored[own.name]
        if tensor.shape != own.shape:
            raise ValueError(
                f"{own.name} has the shape {list(tensor.shape)}, and config.json says "
                f"{list(own.shape)}"
            )
        tensors.append(new_tensor(name, kind_of(own.shape, kind), own, shard.file, tensor))
    if model.hyperparameters.rope_factors is not None:
        factors = tuple(model.hyperparameters.rope_factors)
        own = Expected("", (len(factors),))
        tensors.append(new_tensor(ROPE_FACTORS, "F32", own, None, None)._replace(values=factors))
    return tensors, kind


def _general(model: _Model, kind: str) -> dict[str, Any]:
    keys = {
        "general.architecture": model.hyperparameters.architecture,
        "general.type": "model",
        "general.name": model.name,
        "general.file_type": _FILE_TYPES[kind],
    }
    if model.hyperparameters.config["model_type"] == "mistral":
        keys["general.basename"] = "Mistral"  # else nothing tells it from a Llama
    if kind == "Q8_0":
        keys["general.quantization_version"] = _QUANTIZATION_VERSION
    return keys
