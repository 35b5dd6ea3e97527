"""A GGUF file as a Hugging Face folder: `convert_gguf`.

Owns the order of the work, everything checked before anything is written, and which ids of tokens
the configs name. `gguf_config` makes the config, `gguf_weights` the weights.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, get_args

from vocabshift.errors import InvalidTokenizerError
from vocabshift.models.folder import write_old_rope_keys, write_tokenizer
from vocabshift.models.gguf_config import ROPE_FACTORS, SUPPORTED, Metadata, build_config
from vocabshift.models.gguf_weights import (
    Dtype,
    Weight,
    check_weights,
    expected_tensors,
    new_tensors,
)
from vocabshift.models.shard_writer import write_new_shards
from vocabshift.progress import Progress, in_phase
from vocabshift.storage.outcome import outcome
from vocabshift.tokenizer.formats.gguf import from_metadata
from vocabshift.tokenizer.formats.gguf_header import read_header
from vocabshift.tokenizer.tokenizer import Tokenizer

_SHARD_BYTES = 5_000_000_000


def convert_gguf(
    source: str | Path,
    out: str | Path,
    *,
    dtype: Dtype = "bfloat16",
    pattern: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the model in a GGUF file as a plain Hugging Face folder.

    source: the file. out: the folder, which appears whole or not at all; `force` replaces it.
    dtype: of the weights, which are dequantized. pattern: name or regex of the pre-tokenizer, for
        a file that names one that is not known; else it is the one that the file names.
    progress: called with "weights", and bytes of the file.

    Returns the keys of `vocabshift convert --json`. ValueError for an architecture or a type of
    weights that cannot be converted, and, with the byte, for a file that is damaged or cut short;
    FileNotFoundError without `source`; FileExistsError if `out` exists, without `force`;
    ImportError without the package gguf. Needs neither torch nor transformers.
    """
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"{source} is no file; give the path of a GGUF file")
    if dtype not in get_args(Dtype):
        raise ValueError(f"dtype is {dtype!r}; it must be one of {', '.join(get_args(Dtype))}")
    with outcome("convert", out, inputs=[source], force=force) as result:
        config, generation, tokenizer, weights, pre_tokenizer = _read(path, pattern)
        _write_json(result.folder / "config.json", config | {"dtype": dtype})
        write_old_rope_keys(result.folder / "config.json")
        _write_json(result.folder / "generation_config.json", generation)
        write_tokenizer(tokenizer, result.folder, config["model_type"])
        tensors = list(new_tensors(weights, path, dtype, in_phase(progress, "weights")))
        with _named(path):
            n_bytes = write_new_shards(tensors, result.folder, max_bytes=_SHARD_BYTES)
        kinds = [weight.kind.name for weight in weights]
        figures = {
            "architecture": config["architectures"][0],
            "n_parameters": sum(math.prod(weight.info.shape) for weight in weights),
            "n_tensors": len(weights),
            "types": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
            "dtype": dtype,
            "bytes_before": path.stat().st_size,
            "bytes_after": n_bytes,
            "vocab_size": config["vocab_size"],
            "n_tokens": tokenizer.row_count,
            "pre_tokenizer": pre_tokenizer,
            "tied": config["tie_word_embeddings"],
            "has_chat_template": tokenizer.chat_template is not None,
        }
        request = {"source": path.name, "dtype": dtype, "pattern": pattern}
        return result.record(request, figures)


class _Model(NamedTuple):
    """All that is in the file; the weights are not read yet."""

    config: dict[str, Any]
    generation: dict[str, Any]
    tokenizer: Tokenizer
    weights: list[Weight]
    pre_tokenizer: str | None  # its name; a SentencePiece model has none


def _read(path: Path, pattern: str | None) -> _Model:
    """Read and check all but the values of the weights."""
    with _named(path):
        if not path.stat().st_size:
            raise ValueError("the file is empty")
        with path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        with mapped:
            data: Any = mapped
            header = read_header(data)
            metadata = _architecture(header.metadata)
            config = build_config(metadata, header, data)
            tensors = {info.name: info for info in header.tensors if info.name != ROPE_FACTORS}
            expected = expected_tensors(metadata.architecture, config, tensors)
            weights = check_weights(tensors, expected, len(data))
        tokenizer = from_metadata(header.metadata, pattern=pattern, name=path.stem)
        if config["vocab_size"] < tokenizer.row_count:
            raise ValueError(
                f"the GGUF file has {tokenizer.row_count} tokens, and only "
                f"{config['vocab_size']} rows in token_embd.weight"
            )
    ids = _token_ids(header.metadata, tokenizer)
    generation = {key: value for key, value in ids.items() if value is not None}
    is_bpe = header.metadata["tokenizer.ggml.model"] == "gpt2"
    name = pattern or header.metadata.get("tokenizer.ggml.pre") if is_bpe else None
    return _Model(config | ids, generation, tokenizer, weights, name)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put the name of the file before the message of a ValueError."""
    try:
        yield
    except InvalidTokenizerError as error:
        raise InvalidTokenizerError(f"{path}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _architecture(values: Mapping[str, Any]) -> Metadata:
    """The keys of the file's architecture.

    ValueError for an architecture that is not SUPPORTED, a mixture of experts, and one part of a
    model in several files.
    """
    name = values.get("general.architecture")
    if not isinstance(name, str):
        raise ValueError("the GGUF file names no general.architecture; it holds no model")
    if name not in SUPPORTED:
        raise ValueError(
            f"the GGUF file holds a model of architecture {name!r}, which cannot be converted; "
            f"supported are {', '.join(SUPPORTED)} (Mistral's older models are llama)"
        )
    parts = values.get("split.count", 1)
    if parts not in (0, 1):
        raise ValueError(
            f"the GGUF file is one of {parts} parts of a model; join them first, with "
            "llama-gguf-split --merge FIRST OUT"
        )
    metadata = Metadata(values, name)
    if metadata.get("expert_count"):
        raise ValueError(
            f"the GGUF file holds a mixture of experts ({name}.expert_count), which cannot be "
            f"converted; supported are dense models of {', '.join(SUPPORTED)}"
        )
    return metadata


def _token_ids(keys: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    """The ids of BOS, EOS and PAD; of several tokens that end a text or a turn, all."""
    named = {
        role: keys.get(f"tokenizer.ggml.{key}_token_id")
        for role, key in (("bos", "bos"), ("pad", "padding"))
    }
    ends = [keys.get(f"tokenizer.ggml.{key}_token_id") for key in ("eos", "eot", "eom")]
    n = tokenizer.row_count
    known = list(dict.fromkeys(end for end in ends if type(end) is int and 0 <= end < n))
    eos = known[0] if len(known) == 1 else known or None
    return {"bos_token_id": named["bos"], "eos_token_id": eos, "pad_token_id": named["pad"]}


def _write_json(file: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=2, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")
