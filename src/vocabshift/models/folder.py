"""A model's folder: finding it, downloading it, and the small files in it other than the weights.

Owns which files of a folder or Hub repository belong to a model, reading its tokenizer, and writing
one that users load with the same ids. Loads no weights.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.models.contents import (
    CONFIG,
    PARTS,
    SMALL_FILES,
    WEIGHTS,
    WRAPPER_CONFIG,
    config_file,
    module_paths,
)
from vocabshift.storage import hub
from vocabshift.storage.output import check_free
from vocabshift.tokenizer import pretrained_folder
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer, own_probes
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

_WANTED = "give its weights"
_PATCHED_ABOVE = 100_000  # tokens
_RIGHT_SINCE = "5.0.0"
_NO_VERSION = ("inkling2",)  # types that take a config without a version for another kind of model
MAX_SHARD_SIZE = "5GB"
"""Of a file of weights, as transformers reads it."""


def find_model(source: Any) -> Path | None:
    """The folder of a model, or None where `source` is a tokenizer.

    A model has weights and a `config.json`. The files of a Hub name are listed first and downloaded
    only if they are a model's; without a network the Hub's cache is used. FileNotFoundError, with
    the reason, if a download fails.
    """
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    try:
        if path.exists():
            names = (entry.name for entry in path.iterdir()) if path.is_dir() else ()
            return path if _is_model(names) else None
    except (OSError, ValueError):  # a name that no file can have
        return None
    return _from_hub(str(source))


def require_model(source: str | Path, *, advice: str = "") -> Path:
    """The folder of a model, as `find_model` finds it; FileNotFoundError where there is none.

    `advice`: what to do with a folder that holds no model.
    """
    folder = find_model(source)
    if folder is not None:
        return folder
    if not hub.is_there(source) and (hub.is_offline() or not hub.is_hub_name(source)):
        raise hub.missing(str(source))
    raise FileNotFoundError(
        f"{source} is no model: there are no weights beside a config.json{advice and '; '}{advice}"
    )


def check_folder(source: str | Path) -> None:
    """FileNotFoundError for a file, for a folder without a config.json, and for a path that is not
    there; a name that the Hub could have passes."""
    path = Path(source)
    if not hub.is_there(source) and not hub.is_hub_name(source):
        raise hub.missing(str(source))
    if path.is_file() or (path.is_dir() and not config_file(path).is_file()):
        inner = sorted(file.parent for file in path.glob(f"*/{CONFIG}"))
        advice = next((f"; {part} is one" for part in inner if find_model(part)), "")
        raise FileNotFoundError(f"{source} is no model folder: it holds no {CONFIG}{advice}")


def local_folder(source: str | Path) -> Path:
    """The folder itself, or of a Hub name the safetensors and small files, downloaded.

    FileNotFoundError for anything that is not a model, with the reason if a download fails.
    """
    check_folder(source)
    path = Path(source)
    if path.is_dir():
        return path
    return _download(str(source), WEIGHTS[0], wanted="give the model")


def _is_model(names: Iterable[str]) -> bool:
    found = list(names)
    has_weights = any(fnmatch(name, pattern) for name in found for pattern in WEIGHTS)
    return has_weights and (CONFIG in found or WRAPPER_CONFIG in found)


def _from_hub(name: str) -> Path | None:
    """The downloaded folder of a model, or None where the repository holds no weights.

    FileNotFoundError with the reason if the Hub cannot be reached or a file is not downloaded: a
    failed download must never be taken for a repository without weights.
    """
    if not hub.is_hub_name(name):
        return None
    try:
        names = hub.list_files(name, wanted="tell whether it is a model")
    except FileNotFoundError:
        folder = _from_cache(name)
        if folder is None:
            raise
        return folder
    if names is None:  # offline
        return _from_cache(name)
    if not _is_model(names):
        return None
    weights = WEIGHTS[0] if any(fnmatch(file, WEIGHTS[0]) for file in names) else WEIGHTS[1]
    folder = _download(name, weights, wanted=_WANTED)
    if find_model(folder) is None:  # the client falls back to its cache where a connection breaks
        raise hub.hub_error(name, _WANTED, OSError(f"they are not in {folder}"))
    return folder


def _download(name: str, weights: str, *, wanted: str) -> Path:
    """The folder of a repository's weights and small files, and of the modules that it names."""
    folder = hub.download(name, [weights, *SMALL_FILES], wanted=wanted, nested=False)
    parts = [f"{glob.escape(path)}/*" for path in module_paths(folder)]
    if (folder / WRAPPER_CONFIG).is_file():
        parts += [f"{part}/*" for part in PARTS]
    return hub.download(name, parts, wanted=wanted) if parts else folder


def _from_cache(name: str) -> Path | None:
    """The model in the Hub client's cache; None if the cache has no record of weights.

    FileNotFoundError if the cache has a record of weights but not the weights.
    """
    lacking = None
    for weights in WEIGHTS:
        try:
            # By name: a snapshot lacks whatever nobody asked for, such as a README.
            folder = hub.cached(name, [CONFIG, WRAPPER_CONFIG, weights], wanted=_WANTED)
        except FileNotFoundError as error:
            lacking = error
        else:
            found = None if folder is None else find_model(folder)
            if found is not None:
                return found
    if lacking is not None:
        raise lacking
    return None


def check_paths(model: str | Path, *others: Any, out: str | Path, force: bool) -> None:
    """FileExistsError where `out` is taken; ValueError where it holds one of the inputs.

    `others`: other inputs, as they were given: a path, or a Corpus; anything else is ignored.
    """
    inputs = [source for source in (model, *others) if isinstance(source, str | Path)]
    inputs += [path for source in others for path in getattr(source, "paths", ())]
    check_free(out, force=force, inputs=inputs)
    check_folder(model)


def load_own_tokenizer(source: str | Path) -> Tokenizer | UnigramOrWordPieceTokenizer:
    """The tokenizer in a model's folder; VocabMismatchError where there is none."""
    try:
        return open_tokenizer(source)
    except InvalidTokenizerError as error:
        raise VocabMismatchError(
            f"the model's own tokenizer is needed in its folder, and cannot be used: {error}"
        ) from None


def check_own_tokenizer(source: str | Path, tokenizer: AnyTokenizer) -> None:
    """VocabMismatchError for a model whose folder holds a tokenizer with another vocabulary."""
    try:
        own = open_tokenizer(source)
    except InvalidTokenizerError:  # none, or of a kind that is not read
        return
    if own.vocab != tokenizer.vocab:
        raise VocabMismatchError(
            f"{source} has another tokenizer than {tokenizer.name}; a model with this one is needed"
        )


def write_model(model: Any, tokenizer: AnyTokenizer, folder: Path) -> None:
    """Write a transformers model in memory, with its tokenizer, into an empty folder.

    InvalidTokenizerError where AutoTokenizer gives other ids than the tokenizer.
    """
    model.save_pretrained(folder, max_shard_size=MAX_SHARD_SIZE)
    write_old_rope_keys(folder / "config.json")
    write_tokenizer(tokenizer, folder, model.config.model_type)


def write_tokenizer(tokenizer: AnyTokenizer, folder: Path, model_type: str) -> None:
    """Write the tokenizer into the folder of a written config.json, and reopen it as users will.

    InvalidTokenizerError where AutoTokenizer gives other ids than the tokenizer; without
    transformers only `tokenizers` reads it.
    """
    probes = list(pretrained_folder.PROBES)
    pretrained_folder.write_files(tokenizer, folder)
    if tokenizer.kind == "BPE":
        probes += own_probes(tokenizer)
    else:
        probes += [" ".join(list(tokenizer.vocab)[start::400]) for start in range(0, 400, 20)]
    pretrained_folder.write_auto_class(folder, model_type)
    if (folder / CONFIG).is_file():
        write_version(folder / CONFIG, tokenizer.row_count)
    if find_spec("transformers") is not None:
        pretrained_folder.check_auto(folder, probes)


def write_version(file: Path, n_tokens: int = _PATCHED_ABOVE + 1) -> None:
    """Write the version that keeps transformers from replacing the pre-tokenizer.

    transformers 5 does so with `fix_mistral_regex=True` (`_patch_mistral_regex`) for the model
    types mistral, mistral3, voxtral, ministral and pixtral, for models that the Hub's tags derive
    from Mistral's, and from 4.57.3 on for all whose config names no version or one after 4.57.2.
    A `transformers_version` of 5 or later says that the tokenizer's regex is right. Ours is.
    """
    config = json.loads(file.read_text(encoding="utf-8"))
    said = config.get("transformers_version")
    release = re.fullmatch(r"(\d+)(\.\d+)*", str(said))
    is_new = release is not None and int(release[1]) >= 5
    is_needed = said is not None or config.get("model_type") not in _NO_VERSION
    if n_tokens > _PATCHED_ABOVE and not is_new and is_needed:
        config["transformers_version"] = _RIGHT_SINCE
        text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
        file.write_text(text + "\n", encoding="utf-8")


def write_old_rope_keys(file: Path) -> None:
    """Write the rotary embedding's settings where transformers 4 looks for them too.

    Subtle: transformers 5 writes them only into `rope_parameters`, and 4.57 then silently uses its
    defaults (base 10000, no scaling). Version 5 reads both, and they agree.
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
