"""A Hugging Face tokenizer folder: read its config, write it, check that it reloads with equal ids.

Owns `tokenizer_config.json`, `special_tokens_map.json`, the chat template, and what transformers
makes of them; `tokenizer.json` itself is `tokenizer_json`'s. Takes tokenizers of any kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.storage.output import atomic_folder
from vocabshift.tokenizer.model import BpeModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

    from vocabshift.tokenizer.any_tokenizer import AnyTokenizer

ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
NO_LIMIT = int(1e30)
"""What transformers writes for a `model_max_length` that is not known."""

PROBES = (
    "Two  spaces, a tab\tand 1234567 digits; don't stop.\r\n\n  New line.",
    "नमस्ते दुनिया। यह ١٢٣ और १२३४ है।  வணக்கம் உலகம்! ಕನ್ನಡ తెలుగు മലയാളം",
    "Straße, õhtu, Київ, 中文字符, かな, 한국어 👩‍👩‍👧 e\u0301 \u200d\u00a0x",
)
"""Texts of every kind that pre-tokenizers treat differently."""

_PIPELINE_KEYS = (
    *("add_bos_token", "add_eos_token", "add_prefix_space", "legacy", "from_slow", "use_fast"),
    *("auto_map", "added_tokens_decoder", "chat_template", "backend", "post_processor"),
    *("tokenizer_file", "vocab_file", "merges_file", "name_or_path", "tokenizer_class"),
    *("tokenizer_truncation", "tokenizer_padding", "processor_class", "special_tokens_map_file"),
)
"""Keys of a config by which transformers changes the pipeline it loads."""


def read_config(folder: str | Path) -> tuple[dict[str, Any], str | None]:
    """The config and the chat template of a folder; empty and None where there are none."""
    path = Path(folder)
    config = _read_object(path / "tokenizer_config.json")
    for key, value in _read_object(path / "special_tokens_map.json").items():
        config.setdefault(key, value)  # the older home of the roles
    template = config.pop("chat_template", None)
    file = path / "chat_template.jinja"
    if file.is_file():
        try:
            template = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InvalidTokenizerError(f"{file} is not UTF-8: {error}") from None
    elif (path / "chat_template.json").is_file():
        template = _read_object(path / "chat_template.json").get("chat_template", template)
    if isinstance(template, list):  # several by name; "default" is the one that is used
        if not all(isinstance(entry, Mapping) for entry in template):
            raise InvalidTokenizerError(f"the chat templates of {path} are no list of objects")
        defaults = [t.get("template") for t in template if t.get("name") == "default"]
        template = defaults[-1] if defaults else None
    if template is not None and not isinstance(template, str):
        raise InvalidTokenizerError(f"the chat template of {path} is no text")
    return _with_role_texts(config), template


def config_of_fast(fast: Any) -> tuple[dict[str, Any], str | None]:
    """The config and the chat template of a transformers tokenizer."""
    config = {**getattr(fast, "init_kwargs", {}), **fast.special_tokens_map}
    kept = {key: value for key, value in neutral_config(config).items() if _is_json(value)}
    template = fast.chat_template if isinstance(fast.chat_template, str) else None
    return _with_role_texts(kept), template


def save_pretrained(tokenizer: AnyTokenizer, folder: str | Path, *, force: bool = False) -> Path:
    """Write a folder, whole or not at all. `force` replaces one, but none with weights or code."""
    texts = ("", ".json", ".jinja", ".md", ".model", ".txt")  # none: LICENSE, .gitattributes
    others = [p.name for p in Path(folder).glob("*") if p.is_dir() or p.suffix not in texts]
    if others and force:
        raise FileExistsError(f"{folder} would be replaced, {min(others)} included; name another")
    with atomic_folder(folder, force=force) as partial:
        write_files(tokenizer, partial)
    return Path(folder)


def write_files(tokenizer: AnyTokenizer, folder: str | Path) -> Backend:
    """Write the tokenizer's files into an existing folder and compare what `tokenizers` reads.

    For callers that own the folder (a model folder gets the tokenizer's files too).
    Returns what `tokenizers` has read: opening a large file takes it half a second.
    """
    path = Path(folder)
    text = tokenizer.to_json()
    (path / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    config = loadable_config(tokenizer.config)
    if tokenizer.kind != "BPE":
        config.setdefault("model_input_names", _input_names(tokenizer.post_processor))
    write_config(config, tokenizer.chat_template, path)
    return verify(tokenizer, path, text=text)


def write_config(config: Mapping[str, Any], chat_template: str | None, path: Path) -> None:
    """Write the config and the chat template into a folder that is there."""
    text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
    (path / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")
    template = path / "chat_template.jinja"
    template.unlink(missing_ok=True)
    if chat_template is not None:
        template.write_text(chat_template, encoding="utf-8")


def loadable_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config under which transformers takes `tokenizer.json` as it is.

    Subtle: other class names make transformers rebuild a pre-tokenizer of its own.
    """
    config = {"model_max_length": NO_LIMIT, **neutral_config(config)}
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
    tokenizer: AnyTokenizer,
    folder: str | Path,
    probes: Iterable[str] = PROBES,
    *,
    text: str | None = None,
) -> Backend:
    """Reopen a folder: `tokenizers` must read this vocabulary and give the same ids, or raise.

    The file must be what the tokenizer is written as (`text`, where that is known), merges too.
    Returns what `tokenizers` has read.
    """
    from tokenizers import Tokenizer as Backend

    file = Path(folder) / "tokenizer.json"
    backend = Backend.from_file(str(file))
    if not _same_vocabulary(backend, tokenizer):
        raise InvalidTokenizerError(f"{file} reads back with another vocabulary than was written")
    texts = list(probes)
    ids, offsets = tokenizer.encode_batch(texts)
    for probe, (start, end) in zip(texts, pairwise(offsets.tolist()), strict=True):
        if backend.encode(probe, add_special_tokens=False).ids != ids[start:end].tolist():
            raise InvalidTokenizerError(f"{file} reads back with other ids for {probe!r}")
    if file.read_bytes().rstrip(b"\n") != (text or tokenizer.to_json()).encode():
        raise InvalidTokenizerError(f"{file} reads back with other merges than were written")
    return backend


def _same_vocabulary(backend: Backend, tokenizer: AnyTokenizer) -> bool:
    """Whether tokens and ids are those: without holes id by id, which is three times as fast."""
    added = {token.content: token.id for token in tokenizer.added_tokens}
    model = getattr(tokenizer, "model", None)
    if isinstance(model, BpeModel) and model.size == model.n_tokens:
        n_all = model.size + sum(model.token_id(content) is None for content in added)
        tokens = list(map(backend.id_to_token, range(model.size)))
        if tokens == model.strings.names_by_id() and n_all == backend.get_vocab_size():
            return all(backend.token_to_id(content) == added[content] for content in added)
    return bool(backend.get_vocab() == dict(tokenizer.vocab) | added)


def to_fast(backend: Backend, config: Mapping[str, Any], chat_template: str | None) -> Any:
    """A transformers PreTrainedTokenizerFast with roles, lengths and template; ImportError without
    transformers. `backend` is changed by transformers, which adds tokens and templates to it."""
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise ImportError(
            "to_hf() needs transformers; install it with: pip install 'vocabshift[hf]'"
        ) from error
    build: Any = PreTrainedTokenizerFast
    fast = build(tokenizer_object=backend, **neutral_config(config))
    if chat_template is not None:
        fast.chat_template = chat_template
    return fast


def neutral_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A tokenizer config without the keys by which transformers changes the pipeline it loads.

    `tokenizer.json` holds the whole pipeline: with these keys transformers would rebuild its
    template, its prefix space or its added tokens, or look for files that are not there.
    """
    kept = {key: value for key, value in config.items() if key not in _PIPELINE_KEYS}
    return kept | {"clean_up_tokenization_spaces": False}


def _input_names(template: Mapping[str, Any] | None) -> list[str]:
    """Segments are marked only where the template does: T5 takes no token_type_ids."""
    given = template or {}
    has_segments = given.get("type") == "BertProcessing" or '"type_id": 1' in json.dumps(given)
    return ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"]


def _with_role_texts(config: dict[str, Any]) -> dict[str, Any]:
    """The config with each role as its plain text; older files spell it as an object."""
    roles = [f"{role}_token" for role in ROLES]
    for role in roles:
        if isinstance(value := config.get(role), Mapping):
            config[role] = value.get("content")
    return {key: value for key, value in config.items() if key not in roles or value is not None}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _read_object(file: Path) -> dict[str, Any]:
    if not file.is_file():  # a pipe might never end
        return {}
    try:
        data = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidTokenizerError(f"{file} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InvalidTokenizerError(f"{file} holds no JSON object")
    return data


# Several model types make AutoTokenizer rebuild a pre-tokenizer of its own when a `config.json`
# is next to `tokenizer.json`, silently. `tokenizer_class: PreTrainedTokenizerFast` prevents that
# in all but qwen2 and qwen3_5 (transformers 5), whose types are in a list that overrides it. An
# `auto_map` switches that list off; without `trust_remote_code` the file that it names is not run.
# Found by reading and trying 4.57.6 and 5.23.0, not a documented promise: hence `check_auto`.

OVERRIDDEN_TYPES = frozenset(
    ("hyperclovax_vision_v2", "qwen2", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen4_exp")
)
"""Model types whose class transformers prefers to the one that `tokenizer_config.json` names."""

CLASS_FILE = "tokenization_vs.py"
CLASS_TEXT = """from transformers import PreTrainedTokenizerFast
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
    (path / CLASS_FILE).write_text(CLASS_TEXT, encoding="utf-8")
    file = path / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["auto_map"] = {"AutoTokenizer": [None, f"{CLASS_FILE[:-3]}.VSTokenizer"]}
    text = json.dumps(config, ensure_ascii=False, indent=2, sort_keys=True)
    file.write_text(text + "\n", encoding="utf-8")
    return True


def check_auto(folder: str | Path, probes: Iterable[str] = PROBES) -> None:
    """Reopen a folder with AutoTokenizer and compare its ids with `tokenizer.json`'s, or raise.

    InvalidTokenizerError names the class that transformers took and the first text that differs.
    Nothing in the folder is run.
    """
    from tokenizers import Tokenizer as Backend
    from transformers import AutoTokenizer

    path = Path(folder)
    expected = Backend.from_file(str(path / "tokenizer.json"))
    expected.no_truncation()
    expected.no_padding()
    auto = AutoTokenizer.from_pretrained(str(path), local_files_only=True, trust_remote_code=False)
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
