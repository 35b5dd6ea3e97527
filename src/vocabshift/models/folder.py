"""Model folders: a model and its tokenizer read from one, written as one, proved to load again.

Owns the files of a transferred model (safetensors, config.json, generation_config.json, the
tokenizer's, vocabshift.json). Knows nothing of how a model was changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import VocabMismatchError
from vocabshift.storage.output import atomic_folder, check_free
from vocabshift.storage.provenance import write_provenance
from vocabshift.surgery import row_sources as transfer_map
from vocabshift.text.patterns import NAMED, from_spec
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
    from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer


# What other programs will ask of a transferred model: lines for `vocabshift.json` and the screen.
#
# Owns what is known of converters, servers and encoders (in versions of November 2026); nothing of
# them is run here.


_GGUF_NAMES = {"gpt2": "gpt-2", "cl100k": "llama-bpe", "o200k": "gpt-4o", "qwen2": "qwen2"}
_GGUF_NAMES |= {"tekken": "tekken"}
"""Our name of a pattern -> llama.cpp's name of the pre-tokenizer."""


def serving_notes(tokenizer: Any) -> list[str]:
    """One line each for llama.cpp, for servers and for fast encoders."""
    name = pattern_name(tokenizer)
    servers = (
        "vLLM, TGI: they load tokenizer.json as AutoTokenizer does, without further settings; vLLM "
        "refuses LoRA adapters that hold whole embeddings (modules_to_save): merge them first"
    )
    if name is None:
        kind = "no pattern that they have a scanner for"
        return [_gguf(None), servers, f"fast encoders (fastokens, gigatoken): {kind}; {_SLOWER}"]
    return [
        _gguf(_GGUF_NAMES[name]),
        servers,
        f"fast encoders: the pre-tokenizer is {name}'s, which fastokens and gigatoken know",
    ]


_SLOWER = (
    "gigatoken refuses such files, tokie gave wrong ids for superwords; use vocabshift.Encoder, "
    "tokenizers, or (slower) fastokens"
)


def pattern_name(tokenizer: Any) -> str | None:
    """The pattern of a widely known pre-tokenizer, or None for any other."""
    if not isinstance(tokenizer, Tokenizer) or not tokenizer.model.is_byte_level:
        return None
    pattern = from_spec(tokenizer.pre_tokenizer)
    return next((name for name in _GGUF_NAMES if pattern and NAMED[name] == pattern), None)


def _gguf(name: str | None) -> str:
    known = (
        "llama.cpp: convert_hf_to_gguf.py knows a BPE pre-tokenizer by the hash of the ids of a "
        'fixed text, and says "BPE pre-tokenizer was not recognized" for a new vocabulary; '
    )
    if name is not None:
        return known + f"add the hash that it prints, with the name of this one's base, {name!r}"
    return known + "this pre-tokenizer has no name there: it needs code in llama.cpp first"


# What a transfer did, in figures. Owns no work.


@dataclass(frozen=True)
class TransferReport:
    """What a transfer did. Counts are of tokens; rows are those of the embedding matrix."""

    n_copied: int  # new tokens that took over the row of an old one
    n_initialized: int  # new tokens whose row was made by `init`
    n_removed: int  # old tokens that the new tokenizer does not have
    tied: bool  # whether head and input embeddings are one tensor
    vocab_size: int  # tokens of the new tokenizer, special tokens included
    rows: int  # padding included
    old_rows: int
    init: str
    special_ids: dict[str, list[Any]]  # {"eos": [old, new], "generation_config.eos": …}
    tried: dict[str, float] = field(default_factory=dict)  # init -> price, of "auto"; lowest first
    n_overridden: int = 0  # new tokens that `overrides` decided
    ambiguous: dict[int, list[int]] = field(default_factory=dict)
    """New id -> old ids: copied by bytes that several old tokens have; one gave the row."""
    n_moved: int = 0  # kept tokens whose id is another now
    bytes_before: int = 0  # of the shards; 0 where the model was in memory
    bytes_after: int = 0
    files: dict[str, str] = field(default_factory=dict)  # file -> what was (or will be) done


# ---


MAX_SHARD_SIZE = "5GB"


def check_paths(model: str | Path, *others: Any, out: str | Path, force: bool) -> None:
    """FileExistsError where `out` is taken; ValueError where it holds one of the inputs.

    `others`: what else is read, as it was given: a path, or a Corpus; anything else has no place.
    """
    inputs = [source for source in (model, *others) if isinstance(source, str | Path)]
    inputs += [path for source in others for path in getattr(source, "paths", ())]
    check_free(out, force=force, inputs=inputs)
    path = Path(model)
    if path.is_file() or (path.is_dir() and not (path / "config.json").exists()):
        raise FileNotFoundError(f"{model} is no model folder: it holds no config.json")


def load_own_tokenizer(source: str | Path) -> Tokenizer | UnigramOrWordPieceTokenizer:
    """The tokenizer that lies beside a model; VocabMismatchError where there is none."""
    from vocabshift.errors import InvalidTokenizerError
    from vocabshift.tokenizer.formats.load import open_tokenizer

    try:
        return open_tokenizer(source)
    except InvalidTokenizerError as error:
        raise VocabMismatchError(
            f"the model's own tokenizer is needed beside it, and cannot be used: {error}"
        ) from None


def load_configs(source: str | Path) -> tuple[Any, Any | None]:
    """The config of a model, and its generation config where it has one.

    ValueError for a quantized model, and for one of which transformers knows no config. No code
    in the folder is run.
    """
    try:
        from transformers import AutoConfig, GenerationConfig
    except ImportError as error:
        raise ImportError(
            "transfer needs torch and transformers; install them with: pip install 'vocabshift[hf]'"
        ) from error
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        text_config = config.get_text_config()
    except Exception as error:  # whatever transformers' checks of its many configs raise
        raise _not_loaded(source, error) from error
    _refuse_quantized(source, config, text_config)
    try:
        generation = GenerationConfig.from_pretrained(source)
    except OSError:
        generation = None
    except Exception as error:  # as above
        raise _not_loaded(f"{source} (generation_config.json)", error) from error
    return config, generation


def model_class(config: Any) -> Any:
    """The class that the config names, else the causal language model of its type."""
    import transformers

    for name in getattr(config, "architectures", None) or ():
        found = getattr(transformers, str(name), None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    mapping = transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    if type(config) not in mapping:
        raise ValueError(
            f"transformers {transformers.__version__} has no class for this model "
            f"({config.model_type}: {config.architectures}); models with code of their own are not "
            "run"
        )
    return mapping[type(config)]


def load_model(source: str | Path, *, dtype: Any = None) -> Any:
    """The model of a folder or Hub name in memory, in the checkpoint's dtype unless given.

    ValueError for a folder that does not hold a model whole. No code in it is run.
    """
    config, _ = load_configs(source)
    import safetensors

    try:
        model, loading = model_class(config).from_pretrained(
            source,
            config=config,
            dtype=dtype or "auto",
            trust_remote_code=False,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError, safetensors.SafetensorError) as error:
        raise _not_loaded(source, error) from error
    missing = sorted(loading["missing_keys"])
    if missing:
        raise ValueError(
            f"the checkpoint {source} lacks {len(missing)} tensors of the model, such as "
            f"{missing[0]}; they would be random"
        )
    return model


def _not_loaded(source: str | Path, error: Exception) -> ValueError:
    reason = " ".join(str(error).split())[:300]
    return ValueError(f"the model {source} cannot be loaded: {reason}")


def save(
    model: Any,
    tokenizer: AnyTokenizer,
    out: str | Path,
    *,
    force: bool,
    config: Mapping[str, Any],
    figures: TransferReport,
    id_map: TokenIdMap | None = None,
) -> None:
    """Write model and tokenizer as one folder, reopen its tokenizer as users will, rename it.

    InvalidTokenizerError where AutoTokenizer gives other ids than the tokenizer; `out` is then
    left as it was. `id_map` is written as `transfer_map.json`.
    """
    with atomic_folder(out, force=force) as partial:
        model.save_pretrained(partial, max_shard_size=MAX_SHARD_SIZE)
        write_old_rope_keys(partial / "config.json")
        write_tokenizer(tokenizer, partial, model.config.model_type)
        if id_map is not None:
            id_map.save(partial, transfer_map.FILE)
        said = asdict(figures) | {"notes": serving_notes(tokenizer)}
        write_provenance(partial, "transfer", config, said)


def write_tokenizer(tokenizer: AnyTokenizer, folder: Path, model_type: str) -> None:
    """Write the tokenizer beside a written config.json, and reopen it as users will.

    InvalidTokenizerError where AutoTokenizer gives other ids than the tokenizer.
    """
    from vocabshift.tokenizer import pretrained_folder
    from vocabshift.tokenizer import pretrained_folder as reload

    probes = list(pretrained_folder.PROBES)
    pretrained_folder.write_files(tokenizer, folder)
    if tokenizer.kind == "BPE":
        probes += own_probes(tokenizer)
    else:
        probes += [" ".join(list(tokenizer.vocab)[start::400]) for start in range(0, 400, 20)]
    reload.write_auto_class(folder, model_type)
    reload.check_auto(folder, probes)


def own_probes(tokenizer: AnyTokenizer, *, n_tokens: int = 400) -> Iterator[str]:
    """Text of the tokenizer's own languages: what its tokens, evenly picked, say."""
    texts = [data for _, data in sorted(tokenizer.token_bytes.items())]
    step = max(1, len(texts) // n_tokens)
    words = [data.decode(errors="ignore") for data in texts[::step]]
    for start in range(0, len(words), 50):
        yield " ".join(words[start : start + 50])


def _refuse_quantized(source: str | Path, *configs: Any) -> None:
    for part in configs:
        if getattr(part, "quantization_config", None):
            raise ValueError(
                "it is quantized, and rows of a quantized model cannot be averaged; transfer the "
                f"unquantized checkpoint that {source} was made from, and quantize the result"
            )


def write_old_rope_keys(file: Path) -> None:
    """Say the rotary embedding where transformers 4 looks for it too.

    Subtle: transformers 5 writes it into `rope_parameters` only, and 4.57 then takes its defaults
    (base 10000, no scaling) without a word. Version 5 reads both and finds the same.
    """
    config = json.loads(file.read_text(encoding="utf-8"))
    for part in (config, config.get("text_config")):
        rope = part.get("rope_parameters") if isinstance(part, dict) else None
        if isinstance(rope, dict):
            for key, value in _old_rope_keys(rope, part.get("model_type")).items():
                part.setdefault(key, value)
    text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")


def _old_rope_keys(rope: Mapping[str, Any], model_type: Any) -> dict[str, Any]:
    by_layer = [rope.get("full_attention"), rope.get("sliding_attention")]
    if all(isinstance(part, dict) for part in by_layer):  # Gemma 3
        whole, local = (part.get("rope_theta") for part in by_layer if part is not None)
        keys = {"rope_theta": whole, "rope_local_base_freq": local}
    elif model_type == "gpt_neox":
        share = rope.get("partial_rotary_factor")
        keys = {"rotary_emb_base": rope.get("rope_theta"), "rotary_pct": share}
    else:
        keys = {key: rope.get(key) for key in ("rope_theta", "partial_rotary_factor")}
    if rope.get("rope_type", "default") != "default":
        keys["rope_scaling"] = {key: value for key, value in rope.items() if key not in keys}
    return {key: value for key, value in keys.items() if value is not None}
