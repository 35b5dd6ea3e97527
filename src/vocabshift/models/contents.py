"""What each file of a model folder is, and whether it stays with the model under new ids.

Owns the names by which files are known: configs in which ids may stand, files that are copied, and
why any other file is left out; where a model's own config is; and `modules.json`. The weights that
transformers loads are the caller's, and so are the files in `WRITTEN`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from vocabshift.models.quantized import FILES
from vocabshift.storage.output import CHECKPOINTS

MODULES = "modules.json"
"""The list of modules of sentence-transformers: a folder for each but the model itself."""

CONFIG = "config.json"
WRAPPER_CONFIG = "gliner_config.json"
"""GLiNER's config, in the place of a `config.json`; the encoder's own is in it, at `ENCODER`."""
ENCODER = "encoder_config"

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""Files of weights that transformers loads; the second where there are none of the first."""

WRITTEN = (
    *(CONFIG, WRAPPER_CONFIG, "generation_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"),
)
"""Files that are made anew for the new vocabulary."""

LEGAL = ("LICENSE*", "LICENCE*", "NOTICE*", "*POLICY*", "COPYING*")
SMALL_FILES = ("*.json", "*.jinja", "*.model", *LEGAL, *FILES)
"""What is downloaded beside the weights."""

_WEIGHTS = "weights that the model is not loaded from, with rows for the tokenizer before"
_TOKENIZER = "of the tokenizer before; tokenizer.json holds all of the new one"
_TRAINING = "state or results of the training before"
_ADAPTER = "an adapter: merge it into the model, or move it by itself"
_CODE = "code, which is not copied or run"
_ABOUT = "a text about the model before"
_OURS = "about the run that wrote the model before"
_HIDDEN = "hidden"
_UNREADABLE = "a link that leads nowhere, or no ordinary file"
_ABSENT = f"{MODULES} names it, and it is not there (a module without files needs none)"
_UNKNOWN = "not known to belong to a model; copy it if yours needs it"

_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_HIDDEN, (".*",)),
    (_OURS, ("vocabshift.json", "token_map.json", "transfer_map.json", "adapt.md")),
    (_ADAPTER, ("adapter_*",)),
    (
        _TRAINING,
        (
            *("*_results.json", "trainer_state.json", "training_args.bin", "optimizer*.pt"),
            *("optimizer.bin", "scheduler.*", "rng_state*", "scaler.pt", "events.out.*"),
        ),
    ),
    (
        _WEIGHTS,
        (
            *("*.safetensors", "*.bin", "*.h5", "*.msgpack", "*.index.json", "*.ot", "params.json"),
            *("*.pt", "*.pth", "*.ckpt", "*.pkl", "*.nemo", "*.gguf", "*.ggml", "*.onnx"),
            *("*.onnx_data", "*.onnx.data", "openvino_*", "*.tflite", "*.mlmodel", "*.pdparams"),
        ),
    ),
    (
        _TOKENIZER,
        (
            *("*vocab*", "merges*.txt", "*.model", "*.model.v*", "*.spm", "*.tiktoken", "*.bpe"),
            *("tekken.json", "tokenizer*.json", "added_tokens.json", "special_tokens_map.json"),
            *("dict*.txt", "bpe.codes"),
        ),
    ),
    (_CODE, ("*.py", "*.pyc", "*.ipynb", "*.sh")),
    (_ABOUT, ("*.md",)),
)
"""Why a file is left out, and the names of such files; the first that fits."""

OF_OLD_IDS = (_TOKENIZER, _OURS, _ABOUT)
"""Reasons that fit only while a model gets other ids: as it is, these files belong to it."""

CHAT_TEMPLATES = "additional_chat_templates"

_FOLDERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_HIDDEN, (".*",)),
    (
        _WEIGHTS,
        ("onnx*", "openvino*", "coreml*", "original*", "flax*", "tf*", "gguf*", "metal*"),
    ),
    (_TRAINING, ("checkpoint*", "runs", "logs", "eval")),
    (_CODE, ("__pycache__",)),
    ("only the default chat template is kept", (CHAT_TEMPLATES,)),
    (f"a folder that is {_UNKNOWN}", ("*",)),
)

PARTS = ("labels_tokenizer", "decoder_tokenizer")
"""Tokenizers of further models in GLiNER's, whose rows stay as they are."""


@dataclass(frozen=True)
class Contents:
    """The files of a model folder that are neither its weights nor `WRITTEN`, by name.

    A name is the path below the folder, with "/"; that of a folder ends in "/".
    """

    folder: Path
    configs: tuple[str, ...]  # JSON in which ids may stand
    copied: tuple[str, ...]
    folders: tuple[str, ...]  # of the modules, the empty ones too
    left_out: dict[str, str]  # file, or folder with all that is in it -> reason

    @property
    def n_bytes(self) -> int:
        """Of the files that stay with the model."""
        return sum((self.folder / name).stat().st_size for name in (*self.configs, *self.copied))


def read_contents(folder: Path, weights: Collection[str]) -> Contents:
    """What the files of a model folder are; ValueError for a `modules.json` that is damaged.

    `weights`: names of those that the model is loaded from.
    """
    paths = module_paths(folder)
    parts = {PurePosixPath(path).parts[0] for path in paths}
    configs: list[str] = []
    copied: list[str] = []
    folders: list[str] = []
    left_out = {f"{path}/": _ABSENT for path in paths if not (folder / path).is_dir()}
    for entry in sorted(folder.iterdir()):
        name = entry.name
        if entry.is_dir():
            if name in parts:
                inner = _read_module(folder, entry, left_out)
                folders += [name, *inner[0]]
                configs += inner[1]
                copied += inner[2]
            elif name in PARTS and (folder / WRAPPER_CONFIG).is_file():
                copied += _names(folder, entry)
            else:
                left_out[f"{name}/"] = _reason(name, _FOLDERS) or ""
        elif not entry.is_file():
            left_out[name] = _UNREADABLE
        elif name in (*WRITTEN, *weights):
            continue
        elif any(fnmatchcase(name, pattern) for pattern in (*LEGAL, *FILES)):
            copied.append(name)
        else:
            reason = _reason(name, _REASONS)
            if reason is None and name.endswith(".json"):
                configs.append(name)
            else:
                left_out[name] = reason or _UNKNOWN
    return Contents(folder, tuple(configs), tuple(copied), tuple(folders), left_out)


def may_be_packed(name: str) -> bool:
    """Whether a file that does not come from the model's base may be in a language pack.

    No code and no pickles: what a pack brings is read, never run.
    """
    last = PurePosixPath(name).name
    reason = _reason(last, _REASONS)
    if fnmatchcase(last, "*.py*") or fnmatchcase(last, "*.sh") or reason is _HIDDEN:
        return False
    if reason is _WEIGHTS:  # of a module, which has a folder
        return "/" in name and last.endswith(".safetensors")
    known = (*LEGAL, *FILES, "*.json", "*.jinja")
    return reason in OF_OLD_IDS or any(fnmatchcase(last, pattern) for pattern in known)


def config_file(folder: Path) -> Path:
    """The file of a model folder that holds its config."""
    wrapper = folder / WRAPPER_CONFIG
    return wrapper if wrapper.is_file() else folder / CONFIG


def module_paths(folder: Path) -> list[str]:
    """The folders that `modules.json` names, below `folder`; none where there is no such file.

    ValueError if it is damaged, or names a place outside of `folder`.
    """
    file = folder / MODULES
    if not file.is_file():
        return []
    try:
        paths = [str(module["path"]) for module in json.loads(file.read_bytes())]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{file} is no list of modules with their paths: {error!r}") from None
    for path in paths:
        parts = PurePosixPath(path).parts
        if path.startswith("/") or any(part[0] == "." or part == CHECKPOINTS for part in parts):
            raise ValueError(f"{file} names {path!r}, which is no folder beside it")
    return [PurePosixPath(path).as_posix() for path in paths if PurePosixPath(path).parts]


def _read_module(
    folder: Path, module: Path, left_out: dict[str, str]
) -> tuple[list[str], list[str], list[str]]:
    """Folders, configs and copied files of a module.

    All but code is copied, weights too: they hold no row per token, unless beside a tokenizer of
    the module's own. Then no id in it is the model's.
    """
    folders, configs, copied = [], [], []
    is_alone = any(module.rglob("tokenizer_config.json")) or any(module.rglob("tokenizer.json"))
    for entry in sorted(module.rglob("*")):
        name = entry.relative_to(folder).as_posix()
        if entry.is_dir():
            folders.append(name)
        elif not entry.is_file():
            left_out[name] = _UNREADABLE
        elif (reason := _reason(entry.name, _REASONS)) in (_HIDDEN, _CODE):
            left_out[name] = reason
        elif entry.suffix == ".json" and not is_alone:
            configs.append(name)
        else:
            copied.append(name)
    return folders, configs, copied


def _names(folder: Path, part: Path) -> Iterator[str]:
    for file in sorted(part.rglob("*")):
        if file.is_file():
            yield file.relative_to(folder).as_posix()


def _reason(name: str, reasons: tuple[tuple[str, tuple[str, ...]], ...]) -> str | None:
    for reason, patterns in reasons:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return reason
    return None
