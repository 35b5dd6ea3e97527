"""A Hugging Face tokenizer folder: read it, write it, prove that what was written is the same.

Owns `tokenizer_config.json`, `special_tokens_map.json` and the chat template; `tokenizer.json`
itself is `tokenizer_json`'s. Never imports transformers: `reload` checks what that makes of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.storage.output import atomic_folder
from vocabshift.tokenizer import tokenizer_json
from vocabshift.tokenizer.formats import sentencepiece as sentencepiece_model
from vocabshift.tokenizer.formats.sentencepiece_proto import SentencePieceRules
from vocabshift.tokenizer.pipeline import Pipeline
from vocabshift.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
NO_LIMIT = int(1e30)
"""What transformers writes for a `model_max_length` that is not known."""

PROBES = (
    "Two  spaces, a tab\tand 1234567 digits; don't stop.\r\n\n  New line.",
    "नमस्ते दुनिया। यह ١٢٣ और १२३४ है।  வணக்கம் உலகம்! ಕನ್ನಡ తెలుగు മലയാളം",
    "Straße, õhtu, Київ, 中文字符, かな, 한국어 👩‍👩‍👧 e\u0301 \u200d\u00a0x",
)
"""Texts of every kind that pre-tokenizers treat differently."""


def load_folder(folder: str | Path) -> Tokenizer:
    """The tokenizer of a folder that holds a `tokenizer.json`, with its config and template."""
    path = Path(folder)
    tokenizer = tokenizer_json.from_json((path / "tokenizer.json").read_bytes(), name=path.name)
    config, template = read_config(path)
    rules = None if tokenizer.model.is_byte_level else _piece_rules(path)
    return replace(tokenizer, config=config, chat_template=template, piece_rules=rules)


def read_config(folder: str | Path) -> tuple[dict[str, Any], str | None]:
    """The config and the chat template of a folder; empty and None where there are none."""
    path = Path(folder)
    config = _read_object(path / "tokenizer_config.json")
    for key, value in _read_object(path / "special_tokens_map.json").items():
        config.setdefault(key, value)  # the older home of the roles
    template = config.pop("chat_template", None)
    file = path / "chat_template.jinja"
    if file.exists():
        try:
            template = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTokenizerError(f"{file} is not UTF-8: {error}") from None
    elif (path / "chat_template.json").exists():
        template = _read_object(path / "chat_template.json").get("chat_template", template)
    if isinstance(template, list):  # several by name; "default" is the one that is used
        if not all(isinstance(entry, Mapping) for entry in template):
            raise InvalidTokenizerError(f"the chat templates of {path} are no list of objects")
        defaults = [t.get("template") for t in template if t.get("name") == "default"]
        template = defaults[-1] if defaults else None
    if template is not None and not isinstance(template, str):
        raise InvalidTokenizerError(f"the chat template of {path} is no text")
    return _with_role_texts(config), template


def _piece_rules(folder: Path) -> SentencePieceRules | None:
    """What the SentencePiece model beside a tokenizer says; None where there is none to be read.

    The tokenizer does not need it: a file that is damaged, or something else, is left alone.
    """
    try:
        return sentencepiece_model.read_rules((folder / "tokenizer.model").read_bytes())
    except (OSError, InvalidTokenizerError):
        return None


def with_config_of(tokenizer: Tokenizer, fast: Any) -> Tokenizer:
    """The tokenizer with roles, config and template of a transformers tokenizer."""
    config, template = config_of_fast(fast)
    return replace(tokenizer, config=config, chat_template=template)


def config_of_fast(fast: Any) -> tuple[dict[str, Any], str | None]:
    """The config and the chat template of a transformers tokenizer."""
    config = dict(getattr(fast, "init_kwargs", {}))
    config.update(fast.special_tokens_map)
    plain = tokenizer_json.neutral_config(config)
    kept = {key: value for key, value in plain.items() if _is_json(value)}
    template = fast.chat_template if isinstance(fast.chat_template, str) else None
    return _with_role_texts(kept), template


def save_pretrained(tokenizer: Tokenizer, folder: str | Path, *, force: bool = False) -> Path:
    """Write a tokenizer folder, whole or not at all; FileExistsError without `force`."""
    with atomic_folder(folder, force=force) as partial:
        write_files(tokenizer, partial)
    return Path(folder)


def write_files(tokenizer: Tokenizer, folder: str | Path) -> Backend:
    """Write the tokenizer's files into an existing folder and compare what `tokenizers` reads.

    For callers that own the folder (a model folder gets the tokenizer's files beside its own).
    Returns what `tokenizers` has read: opening a large file takes it half a second.
    """
    path = Path(folder)
    text = tokenizer_json.to_json(tokenizer)
    (path / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    write_config(config_of(tokenizer), tokenizer.chat_template, path)
    return verify(tokenizer, path, text=text)


def write_config(config: Mapping[str, Any], chat_template: str | None, path: Path) -> None:
    """Write the config and the chat template into a folder that is there."""
    text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
    (path / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
    template = path / "chat_template.jinja"
    if chat_template is not None:
        template.write_text(chat_template, encoding="utf-8")
    else:
        template.unlink(missing_ok=True)


def config_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """`tokenizer_config.json`: what was read, with a class that keeps our pre-tokenizer.

    Subtle: other class names make transformers rebuild a pre-tokenizer of its own.
    """
    return loadable_config(tokenizer.config)


def loadable_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config under which transformers takes `tokenizer.json` as it is."""
    config = {"model_max_length": NO_LIMIT, **tokenizer_json.neutral_config(config)}
    return config | {"tokenizer_class": "PreTrainedTokenizerFast"}


def config_with_ids(config: Mapping[str, Any], old_to_new: Mapping[int, int]) -> dict[str, Any]:
    """A tokenizer config whose `…_token_id` (one or a list) follow; numbers of no token stay."""

    def follow(value: Any) -> Any:
        if isinstance(value, list):
            return [follow(entry) for entry in value]
        return old_to_new.get(value, value) if type(value) is int else value

    return {
        key: follow(value) if key.endswith(("_token_id", "_token_ids")) else value
        for key, value in config.items()
    }


def verify(
    tokenizer: Tokenizer,
    folder: str | Path,
    probes: Iterable[str] = PROBES,
    *,
    text: str | None = None,
) -> Backend:
    """Reopen a folder: `tokenizers` must read this vocabulary and give our encoder's ids, or raise.

    The file must be what the tokenizer is written as (`text`, where that is known), merges too.
    Returns what `tokenizers` has read.
    """
    from tokenizers import Tokenizer as Backend

    file = Path(folder) / "tokenizer.json"
    backend = Backend.from_file(str(file))
    expected = dict(tokenizer.model.vocab) | {
        token.content: token.id for token in tokenizer.added_tokens
    }
    if backend.get_vocab(with_added_tokens=True) != expected:
        raise InvalidTokenizerError(f"{file} reads back with another vocabulary than was written")
    pipeline = Pipeline(tokenizer, parse_special=True)
    for probe in probes:
        found = backend.encode(probe, add_special_tokens=False).ids
        if found != pipeline.encode(probe).tolist():
            raise InvalidTokenizerError(f"{file} reads back with other ids for {probe!r}")
    if file.read_text(encoding="utf-8").rstrip("\n") != (
        tokenizer_json.to_json(tokenizer) if text is None else text
    ):
        raise InvalidTokenizerError(f"{file} reads back with other merges than were written")
    return backend


def _with_role_texts(config: dict[str, Any]) -> dict[str, Any]:
    """The config with each role as its plain text; older files spell it as an object."""
    roles = [f"{role}_token" for role in ROLES]
    for role in roles:
        value = config.get(role)
        if isinstance(value, Mapping):
            config[role] = value.get("content")
    return {key: value for key, value in config.items() if key not in roles or value is not None}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _read_object(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        data = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidTokenizerError(f"{file} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidTokenizerError(f"{file} holds no JSON object")
    return data


# What AutoTokenizer makes of a folder: the check, and the class that some models need.
#
# Several model types make AutoTokenizer rebuild a pre-tokenizer of its own when a `config.json`
# lies beside `tokenizer.json`, silently. `tokenizer_class: PreTrainedTokenizerFast` prevents that
# in all but qwen2 and qwen3_5 (transformers 5), whose types stand in a list that overrides it. An
# `auto_map` switches that list off; without `trust_remote_code` the file that it names is not run.
# Found by reading and trying 4.57.6 and 5.23.0, not a documented promise: hence the check.


OVERRIDDEN_TYPES = frozenset(
    {
        *("qwen2", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen4_exp"),
        "hyperclovax_vision_v2",
    }
)
"""Model types whose class transformers prefers to the one that `tokenizer_config.json` names."""

_CLASS_FILE = "tokenization_vs.py"
_CLASS = """from transformers import PreTrainedTokenizerFast
class VSTokenizer(PreTrainedTokenizerFast):
    \"\"\"Loads tokenizer.json as it is.\"\"\"
"""


def write_auto_class(folder: str | Path, model_type: str) -> bool:
    """Write the three-line class and its `auto_map` where the model type needs them.

    `folder` holds a written `tokenizer_config.json`. Returns whether anything was written: for
    other types the class name in the config is enough.
    """
    if model_type not in OVERRIDDEN_TYPES:
        return False
    path = Path(folder)
    (path / _CLASS_FILE).write_text(_CLASS, encoding="utf-8")
    file = path / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["auto_map"] = {"AutoTokenizer": [None, f"{_CLASS_FILE[:-3]}.VSTokenizer"]}
    text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")
    return True


def check_auto(folder: str | Path, probes: Iterable[str] = PROBES) -> None:
    """Reopen a folder with AutoTokenizer and compare its ids with `tokenizer.json`'s, or raise.

    InvalidTokenizerError names the class that transformers took and the first text that differs.
    Nothing in the folder is run.
    """
    from tokenizers import Tokenizer as Backend

    path = Path(folder)
    expected = Backend.from_file(str(path / "tokenizer.json"))
    expected.no_truncation()
    expected.no_padding()
    auto = tokenizer_json.open_auto(path)
    for text in probes:
        for special in (False, True):
            want = expected.encode(text, add_special_tokens=special).ids
            got = auto.encode(text, add_special_tokens=special)
            if list(got) != want:
                raise InvalidTokenizerError(
                    f"{path}: AutoTokenizer loads it as {type(auto).__name__} with another "
                    f"segmentation: {text[:40]!r} gives {len(got)} tokens, not {len(want)}; "
                    'write "tokenizer_class": "PreTrainedTokenizerFast" into '
                    "tokenizer_config.json (qwen2 and qwen3_5 need the class of "
                    "vocabshift.tokenizer.pretrained_folder.write_auto_class beside it)"
                )
