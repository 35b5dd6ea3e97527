"""The inputs of `cpt`, opened and checked before anything is trained or written.

Owns the early checks: is there a model, does the text fit its tokenizer, which rows are new, which
packages are missing. Loads no weights.
"""

from __future__ import annotations

import importlib.util
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vocabshift.cpt.config import LORA, MATCHING, NEW_ROWS
from vocabshift.cpt.megatron import megatron_files, open_megatron
from vocabshift.cpt.packed_ids import FILE as PACKED
from vocabshift.cpt.packed_ids import PackedIds
from vocabshift.cpt.run_config import TRACKERS, CptConfig
from vocabshift.cpt.teacher_folder import StoredTeacher, check_teacher, weights_key
from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.models.folder import load_own_tokenizer, require_model
from vocabshift.models.load import check_model, load_configs
from vocabshift.models.quantized import quantization_method
from vocabshift.storage.outcome import read_history
from vocabshift.surgery.matching import TRANSFER_MAP
from vocabshift.text.corpus import Corpus
from vocabshift.text.readers import input_key
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.formats.load import load_tokenizer
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.tokenizer.tokenizer_json import fingerprint


@dataclass(frozen=True, eq=False)
class Inputs:
    """All inputs of a run."""

    folder: Path  # folder of the model
    tokenizer: Tokenizer
    data: PackedIds | Corpus
    held_out: Corpus | None
    new_ids: tuple[int, ...]
    dtype: str  # of the output, or "auto"
    teacher: Path | StoredTeacher | None = None  # the folder of its model, or what it has read

    @property
    def paths(self) -> list[Path]:
        """Files and folders that must not be overwritten."""
        paths = [self.folder]
        if isinstance(self.teacher, StoredTeacher):
            paths.append(self.teacher.folder)
        elif self.teacher is not None:
            paths.append(self.teacher)
        for source in (self.data, self.held_out):
            if isinstance(source, PackedIds):
                paths.append(source.folder)
            elif source is not None:
                paths += source.paths
        return paths

    def facts(self) -> dict[str, Any]:
        """Plain JSON values by which a later process recognises the same inputs."""
        return {
            **model_key(self.folder),
            "tokenizer": fingerprint(self.tokenizer),
            "data": data_key(self.data),
            "new_ids": f"{len(self.new_ids)} ids, {zlib.crc32(repr(self.new_ids).encode()):08x}",
            **self._teacher_key(),
        }

    def _teacher_key(self) -> dict[str, Any]:
        if self.teacher is None:
            return {}
        if isinstance(self.teacher, StoredTeacher):
            return {"teacher": self.teacher.key}
        return {"teacher": model_key(self.teacher)["model"]}


def model_key(folder: Path) -> dict[str, Any]:
    """Plain JSON values by which a later process recognises a model's weights and config."""
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    return {
        "model": [[f.name, f.stat().st_size, f.stat().st_mtime_ns] for f in files],
        "config.json": f"{zlib.crc32((folder / 'config.json').read_bytes()):08x}",
    }


def open_inputs(config: CptConfig) -> Inputs:
    """Open all inputs; ValueError, OSError or ImportError that says what is wrong.

    VocabMismatchError for packed ids of another tokenizer, CorpusError if there is no text.
    """
    check_trackers(config.trackers)
    _check_tasks(config)
    folder = require_model(config.model)
    tokenizer = load_own_tokenizer(folder)
    if not isinstance(tokenizer, Tokenizer):
        raise InvalidTokenizerError(
            f"the tokenizer of {config.model} is {tokenizer.kind}, and text is encoded for BPE only"
        )
    method = quantization_method(load_configs(folder)[0])
    if method is not None:
        raise ValueError(
            f"{config.model} is quantized ({method}), and quantized weights cannot be trained; "
            "train the unquantized checkpoint, and quantize the result"
        )
    held_out = None
    if config.held_out:
        if config.loop.objective == "masked":
            raise ValueError(
                f"held_out is scored in bits per byte, which the objective "
                f"{config.loop.objective!r} does not have; leave it out"
            )
        held_out = _corpus(config, config.held_out)
        held_out.require_text()
    elif config.evaluate_bytes is not None and not (config.save_models or config.evaluate_tasks):
        raise ValueError(
            "evaluate_bytes is given without held_out, the text to evaluate on, and without "
            "save_models and evaluate_tasks, so that there is nothing to do"
        )
    data = _data(config, tokenizer)
    return Inputs(
        folder=folder,
        tokenizer=tokenizer,
        data=data,
        teacher=_teacher_of(config, folder, data) if config.loop.objective == MATCHING else None,
        held_out=held_out,
        new_ids=_new_ids(config, folder, tokenizer),
        dtype=config.dtype,
    )


def check_trackers(names: tuple[str, ...]) -> None:
    """ImportError if the package of a tracker is not installed."""
    for name in names:
        packages = TRACKERS[name]
        if not any(importlib.util.find_spec(package) for package in packages):
            raise ImportError(
                f"the tracker {name!r} is not installed; run: pip install {packages[0]}, or leave "
                "it out of trackers"
            )


def _check_tasks(config: CptConfig) -> None:
    """Refuse early tasks that cannot be run, or that could not be named."""
    if not config.evaluate_tasks:
        return
    from vocabshift.evaluation.harness.known_tasks import requests_of

    if config.loop.objective == "masked":
        raise ValueError(
            f"evaluate_tasks needs a causal language model, and the objective is "
            f"{config.loop.objective!r}; leave it out"
        )
    if importlib.util.find_spec("lm_eval") is None:
        raise ImportError(
            "evaluate_tasks needs lm-eval; install it with: pip install 'vocabshift[eval]'"
        )
    requests_of(config.evaluate_tasks)
    data = config.evaluate_tasks_data
    if data is not None and not Path(data).is_dir():
        raise FileNotFoundError(f"evaluate_tasks_data: {data} is no folder")


def data_key(data: PackedIds | Corpus) -> str:
    """A key that identifies the text across runs."""
    if isinstance(data, PackedIds):
        checksums = repr([shard["crc32"] for shard in data.header["shards"]])
        return f"packed {data.fingerprint} {zlib.crc32(checksums.encode()):08x} {data.n_bytes}"
    return input_key(data) or repr(data)


def check_same_text(config: CptConfig, data: PackedIds | Corpus) -> None:
    """ValueError if the control's packed documents differ in bytes from those of the run."""
    given = _open_packed(config, checksums=False) if isinstance(data, PackedIds) else None
    if isinstance(data, PackedIds) and given is not None:
        own, sizes = data.document_bytes, given.document_bytes
        if len(own) != len(sizes) or (own != sizes).any():
            raise ValueError(
                f"control_data {data.folder} holds {len(own)} documents and data {config.data[0]} "
                f"{len(sizes)}, or others: pack the same corpus with both tokenizers"
            )


def _open_packed(config: CptConfig, *, checksums: bool = True) -> PackedIds | None:
    """The packed ids that `data` names, ours or Megatron's; None if it names text."""
    if len(config.data) == 1 and (Path(config.data[0]) / PACKED).exists():
        return PackedIds.open(config.data[0], checksums=checksums)
    files = megatron_files(config.data)
    return open_megatron(files, load_tokenizer(require_model(config.model))) if files else None


def _corpus(config: CptConfig, specs: tuple[str, ...]) -> Corpus:
    return Corpus.from_specs(specs, documents=config.documents, errors=config.errors)  # type: ignore[arg-type]  # checked


def _data(config: CptConfig, tokenizer: Tokenizer) -> PackedIds | Corpus:
    packed = _open_packed(config)
    if packed is not None:
        packed.require(tokenizer)
        return packed
    corpus = _corpus(config, config.data)
    if any(part.weight != 1 for part in corpus.parts):
        raise ValueError("every document is packed once; leave out the @WEIGHT of data")
    return corpus


def _new_ids(config: CptConfig, folder: Path, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The requested ids, or those that the map in the model folder does not lead to."""
    if config.new_ids is not None:
        return config.new_ids
    trained = {phase.trained for phase in config.phases}
    found = [folder / name for name in (TRANSFER_MAP, id_map.FILE)]
    found = [file for file in found if file.exists()] if trained & {NEW_ROWS, LORA} else []
    if not found and NEW_ROWS not in trained:
        return ()
    if not found:
        raise ValueError(
            f"the phase {NEW_ROWS!r} needs to know which tokens are new: {folder} holds no "
            f"{TRANSFER_MAP} or {id_map.FILE}; name them as new_ids = [...]"
        )
    kept = set(id_map.load(found[0]).new_to_old())
    ids = {*tokenizer.model.vocab.values(), *(token.id for token in tokenizer.added_tokens)}
    return tuple(sorted(ids - kept))


# The teacher of a run of `cpt`.

_KEEPING = ("cpt", "cpt-export", "merge")
"""Operations that leave a model its tokenizer."""


def _origin_of(folder: Path) -> str | None:
    """The model whose tokenizer was changed to make the one in `folder`, as its provenance says.

    Steps that kept the tokenizer are passed over. None if a folder on the way says nothing.
    """
    made = next((x for x in read_history(folder) if x["operation"] not in _KEEPING), None)
    source = None if made is None else made["config"].get("model")
    return source if isinstance(source, str) else None


def _teacher_of(config: CptConfig, folder: Path, data: PackedIds | Corpus) -> Path | StoredTeacher:
    """The teacher that a run asks for: the folder of its model, or what it has read of `data`.

    Loads no weights. ValueError where none is known; CorpusError where it has read another text;
    VocabMismatchError where the log-probabilities are of another model than the one named.
    """
    named = config.teacher or (None if config.teacher_logprobs else _origin_of(folder))
    if named is None and config.teacher_logprobs is None:
        raise ValueError(
            f"{folder} does not say which model it was made of (vocabshift.json), so the teacher "
            "is not known; name its folder as teacher, or what it has read as teacher_logprobs"
        )
    model = None
    if named is not None:
        try:
            model = require_model(named)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"the teacher is not there: {error}; name its folder as teacher, or what it has "
                "read as teacher_logprobs"
            ) from None
        check_model(model)
    if config.teacher_logprobs is None:
        assert model is not None
        return model
    stored = StoredTeacher.open(config.teacher_logprobs)
    if model is not None:
        own = {"weights": weights_key(model), "tokenizer": load_own_tokenizer(model).fingerprint}
        others = [what for what in own if stored.header.get(what) != own[what]]
        if others:
            raise VocabMismatchError(
                f"{stored.folder} holds log-probabilities of {stored.header.get('model')}, which "
                f"is not the model {named} (teacher): it has another {' and '.join(others)}; leave "
                "teacher out, or let that model read the text"
            )
    check_teacher(config.loop, stored, _document_bytes(data))
    return stored


def _document_bytes(data: PackedIds | Corpus) -> NDArray[np.int64]:
    if isinstance(data, PackedIds):
        return data.document_bytes
    return np.concatenate([block.ends - block.starts for block in data.batches()])
