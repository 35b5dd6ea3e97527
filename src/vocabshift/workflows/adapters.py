"""LoRA adapters on disk: merged into their base, or moved to its new vocabulary.

What `vocabshift merge` and `vocabshift transfer ADAPTER MODEL` do.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.models.adapter import (
    Adapter,
    base_of,
    find_adapter,
    is_adapter,
    open_adapter,
    plain_bytes,
)
from vocabshift.models.contents import CHAT_TEMPLATES, WRITTEN, read_contents
from vocabshift.models.folder import local_folder
from vocabshift.models.shards import INDEX, open_checkpoint
from vocabshift.storage.hub import is_there
from vocabshift.storage.outcome import FILE, check_output, outcome
from vocabshift.surgery.adapter_rows import move_adapter
from vocabshift.surgery.matching import TRANSFER_MAP
from vocabshift.surgery.merge import find_changes, plan_changes
from vocabshift.surgery.stream import check_space, transfer_key, write_shards
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.formats.load import open_tokenizer

__all__ = ["is_adapter", "merge_adapter", "transfer_adapter"]

_SMALL = ("*.json", "*.jinja", "*.model", "*.py", "*.txt")  # a tokenizer among them

_TABLES = {"weight": 0, "lora_embedding_A": 1}  # part of a table -> its dimension of tokens


def merge_adapter(
    adapter: str | Path,
    out: str | Path,
    *,
    base: str | Path | None = None,
    force: bool = False,
    hard_links: bool = False,
    resume: bool = True,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Write the base model with a LoRA adapter merged into its weights, as a folder.

    `adapter`: a folder as PEFT saves it, or a Hub name; `base`: the model, by default the one that
    the adapter names. W + scaling·B·A is computed in float32 and rounded once to the stored dtype;
    rows of `trainable_token_indices`, biases and `modules_to_save` are written as they are. Other
    tensors are copied byte for byte, or their shards linked with `hard_links`. `resume`: keep the
    shards that a killed run of the same merge finished. `dry_run`: check everything, write nothing.

    Returns the keys of `vocabshift merge --json`. ValueError (VocabMismatchError) before anything
    is written for adapters that are more than a change to weights (DoRA and others), that do not
    fit the base, or that change tied embeddings and head as if they were two; FileExistsError if
    `out` exists, without `force`; FileNotFoundError where there is no adapter or base; OSError if
    the disk is full.
    """
    opened = open_adapter(adapter)
    named = str(base) if base is not None else base_of(opened)
    if named is None:
        raise ValueError(f"{adapter} does not name its base model; name it with --base MODEL")
    revision = opened.config.get("revision")
    if base is None and revision not in (None, "main") and not is_there(named):
        raise ValueError(
            f"the base of {adapter} is of revision {revision} of {named}; download that one, and "
            "name it with --base"
        )
    check_output(out, adapter, named, force=force)
    try:
        folder = local_folder(named)
    except FileNotFoundError as error:
        if base is not None:
            raise
        raise FileNotFoundError(f"the adapter's base: {error}; name it with --base MODEL") from None
    checkpoint = open_checkpoint(folder)
    if checkpoint is None:
        raise ValueError(
            f"{folder} holds no safetensors weights, which are changed without loading the model; "
            "save it with save_pretrained of transformers first"
        )
    _check_rows(opened, [find_adapter(adapter), base_of(opened)], folder)
    changes, figures = find_changes(opened, folder, checkpoint)
    plans = plan_changes(checkpoint, changes)
    weights = (*([INDEX] if checkpoint.index is not None else []), *(p.name for p in plans))
    contents = read_contents(folder, weights)
    check_space(Path(out), plans, hard_links=hard_links, n_bytes=contents.n_bytes)
    kept = {*contents.copied, *contents.configs} | _small(folder)
    kept |= {name for name in WRITTEN if (folder / name).is_file()}
    templates = (folder / CHAT_TEMPLATES).glob("*.jinja")
    kept |= {f"{CHAT_TEMPLATES}/{file.name}" for file in templates}
    kept = {name for name in kept if _belongs(name)}
    result = {
        "out": str(out),
        "adapter": str(adapter),
        "base": named,
        **figures,
        "n_tensors": len(checkpoint.tensors),
        "n_changed": len(changes),
        "n_bytes": sum(plan.n_bytes for plan in plans),
        "dry_run": dry_run,
        "left_out": {
            name: reason
            for name, reason in contents.left_out.items()
            if name not in {*kept, f"{CHAT_TEMPLATES}/"}
        },
        "files": {
            plan.name: "rewrite" if plan.changed else "link" if hard_links else "copy"
            for plan in plans
        },
    }
    if dry_run:
        return result
    key = transfer_key(checkpoint, opened.config, *_digests(opened))
    inputs = [adapter, folder]
    with outcome(
        "merge", out, inputs=inputs, force=force, keep_checkpoints=True, resume=resume
    ) as output:
        done = write_shards(checkpoint, plans, output.folder, key, hard_links=hard_links)
        _copy(folder, output.folder, kept)
        output.record({"adapter": str(adapter), "base": named}, figures)
    return result | {"files": done}


def transfer_adapter(
    adapter: str | Path,
    model: str | Path,
    out: str | Path,
    *,
    force: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Move an adapter of a model before its transfer to `model`, the folder that `transfer` wrote.

    Layers pass unchanged. Rows of embeddings and head (`trainable_token_indices`,
    `modules_to_save`, LoRA of embeddings or head) move to the new ids by `transfer_map.json`; rows
    of tokens that are gone are dropped; new tokens have the model's rows. `model` becomes the base
    that the adapter names, and its tokenizer is copied beside it.

    Returns the keys of `vocabshift transfer ADAPTER MODEL --json`. VocabMismatchError where the
    adapter belongs to another vocabulary, ValueError where rows cannot be moved, FileNotFoundError
    where there is no map; nothing is written then, nor with `dry_run`. FileExistsError if `out`
    exists, without `force`.
    """
    source, folder = find_adapter(adapter), local_folder(model)
    check_output(out, source, folder, force=force)
    opened = open_adapter(source, has_to_merge=False)
    files = [folder / name for name in (TRANSFER_MAP, id_map.FILE) if (folder / name).is_file()]
    if not files:
        raise FileNotFoundError(
            f"{folder} holds no {TRANSFER_MAP}, which says where the tokens of the adapter's model "
            "went; name the folder that `vocabshift transfer` wrote"
        )
    tokens = id_map.load(files[0])
    notes = _check_vocabulary(source, base_of(opened), tokens)
    moved = move_adapter(opened, folder, tokens)
    named = str(folder.resolve()) if Path(model).exists() else str(model)
    about = {**moved.adapter.config, "base_model_name_or_path": named}
    if about.get("revision") is not None:  # of the base before
        about["revision"] = None
    final = replace(moved.adapter, config=about)
    if moved.tables:
        notes.append(
            f"{' and '.join(moved.tables)}: new tokens have the model's own rows, which the "
            "adapter does not change"
        )
    figures = {
        "n_layers": len(final.modules),
        "n_rows_moved": moved.n_moved,
        "n_rows_dropped": moved.n_dropped,
        "tables": list(moved.tables),
        "notes": notes,
    }
    if not dry_run:
        with outcome("transfer", out, inputs=[source, folder], force=force) as output:
            final.save(output.folder)
            _copy(folder, output.folder, _small(folder) - {*WRITTEN[:3], TRANSFER_MAP, id_map.FILE})
            output.record({"adapter": str(adapter), "model": str(model)}, figures)
    return {"out": str(out), "adapter": str(adapter), "base": named, **figures, "dry_run": dry_run}


def _digests(adapter: Adapter) -> list[Any]:
    """What distinguishes this adapter's tensors from others'."""
    found: list[Any] = []
    for module, parts in sorted(adapter.modules.items()):
        for part, tensor in sorted(parts.items()):
            found += [f"{module}.{part}", plain_bytes(tensor)]
    return found


def _check_vocabulary(source: Path, base: str | None, tokens: id_map.TokenIdMap) -> list[str]:
    """VocabMismatchError where the tokenizer of adapter or base is not the map's; notes."""
    for place in (source, *([Path(base)] if base is not None else [])):
        if not place.is_dir():
            continue
        try:
            found = open_tokenizer(place).fingerprint
        except InvalidTokenizerError:
            continue
        if found != tokens.old:
            raise VocabMismatchError(
                f"the tokenizer of {place} is {found}, and the model was transferred from "
                f"{tokens.old}: the adapter was trained with another vocabulary, so its tokens "
                "have other ids"
            )
        return []
    return ["neither the adapter nor its base has a tokenizer here: ids were not checked"]


def _check_rows(adapter: Adapter, places: Sequence[str | Path | None], folder: Path) -> None:
    """VocabMismatchError where a row of the adapter is another token in the base in `folder`.

    `places`: where the tokenizer that the adapter was trained with may be. A token that only one of
    the two has is none that was moved: people add some in training.
    """
    given = adapter.config.get("trainable_token_indices") or []
    ids = set(chain.from_iterable(given.values() if isinstance(given, Mapping) else [given]))
    parts = [part for module in adapter.modules.values() for part in module.items()]
    sizes = [tensor.shape[_TABLES[name]] for name, tensor in parts if name in _TABLES]
    n_rows = max(sizes, default=0)
    if not (ids or n_rows):
        return
    theirs = _tokens(folder)
    own = next((found for place in places if place and (found := _tokens(Path(place)))), {})
    if own and n_rows > max(own):
        ids |= own.keys()  # a whole table
    for token_id in sorted(ids & own.keys() & theirs.keys()):
        if own[token_id] != theirs[token_id]:
            raise VocabMismatchError(
                f"the adapter has a row for token {token_id}, which is {own[token_id]!r} in its "
                f"tokenizer and {theirs[token_id]!r} in that of {folder}: it was trained with "
                "another vocabulary; see: vocabshift transfer ADAPTER MODEL"
            )


def _tokens(folder: Path) -> dict[int, str]:
    """The tokens of the tokenizer in a folder by id; none where there is no tokenizer."""
    if not folder.is_dir():
        return {}
    try:
        vocab = open_tokenizer(folder).backend.get_vocab(with_added_tokens=True)
    except InvalidTokenizerError:
        return {}
    return {token_id: token for token, token_id in vocab.items()}


def _small(folder: Path) -> set[str]:
    """Names of the small files of a model folder, its tokenizer among them."""
    return {file.name for pattern in _SMALL for file in folder.glob(pattern) if file.is_file()}


def _belongs(name: str) -> bool:
    """Whether a small file is copied: no index, adapter or record, which are written anew."""
    return not (name.endswith(".index.json") or name.startswith("adapter_") or name == FILE)


def _copy(source: Path, target: Path, names: set[str]) -> None:
    for name in sorted(names):
        if _belongs(name):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)
