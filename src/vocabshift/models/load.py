"""Models in memory: loading a folder or Hub name with transformers, and checks of the model.

Owns the only call that loads weights. Code in a model's folder runs only if the caller asks for it,
and a model with incomplete weights is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vocabshift.errors import VocabMismatchError
from vocabshift.models.quantized import loading_advice, quantization_method
from vocabshift.storage.hub import hub_error, is_there

DTYPES = ("float32", "bfloat16", "float16", "auto")
"""What weights may be loaded as; "auto" is the checkpoint's own."""


def load_configs(source: str | Path) -> tuple[Any, Any | None]:
    """The config of a model, and its generation config if it has one.

    ValueError for a model of which transformers knows no config. No code in the folder is run.
    """
    config = _load_config(source, trust_remote_code=False)
    from transformers import GenerationConfig

    try:
        quantization_method(config)
    except Exception as error:  # whatever transformers' checks of its many configs raise
        raise _not_loaded(source, error) from error
    try:
        generation = GenerationConfig.from_pretrained(source)
    except OSError:
        generation = None
    except Exception as error:  # as above
        raise _not_loaded(f"{source} (generation_config.json)", error) from error
    return config, generation


def model_class(config: Any) -> Any:
    """The class that the config names, else the causal language model of its type.

    ValueError where transformers has neither.
    """
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
    """The model of a folder or Hub name, in the checkpoint's dtype unless a torch dtype is given.

    A quantized one is loaded as transformers does it, which may dequantize it, and on a GPU where
    there is one: its layers may run on no CPU. ValueError for a folder without a complete model, or
    one that cannot be loaded here. No code in it is run.
    """
    config, _ = load_configs(source)
    options = {"device_map": {"": str(torch_device("auto"))}} if quantization_method(config) else {}
    return _load(model_class(config), source, config, dtype or "auto", **options)


def load_causal_model(
    source: str | Path,
    *,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
) -> Any:
    """The causal language model of a folder or Hub name, in evaluation mode, on `device`.

    `device`: "auto" (a GPU where there is one), "cpu", "cuda", "cuda:1", "mps". A quantized model
    has its own dtype, unless transformers had to dequantize it. ValueError for a model that is not
    causal, lacks weights, needs code that is not trusted or a quantizer that is not there, or does
    not fit on the device; FileNotFoundError for a folder without a model.
    """
    import torch
    from transformers import AutoModelForCausalLM

    place = torch_device(device)
    config = check_model(source, trust_remote_code=trust_remote_code)
    if dtype not in DTYPES:
        raise ValueError(f"unknown dtype {dtype!r}; known are: {', '.join(DTYPES)}")
    kind = dtype if dtype == "auto" else getattr(torch, dtype)
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if is_quantized := quantization_method(config) is not None:
        # Subtle: some cannot be moved later, and transformers mixes dtypes if it is given another.
        options["device_map"] = {"": str(place)}
    model = _load(AutoModelForCausalLM, source, config, "auto" if is_quantized else kind, **options)
    try:
        if quantization_method(model.config) is not None:
            return model.eval()
        if is_quantized and kind != "auto":  # it was dequantized
            model = model.to(kind)
        return model.to(place).eval()
    except Exception as error:  # whatever torch raises of a device
        raise _not_loaded(source, error) from error


def _load(loader: Any, source: str | Path, config: Any, dtype: Any, **options: Any) -> Any:
    """The model that `loader` returns; ValueError if its weights are incomplete."""
    from vocabshift.models.facts import check_weights  # here, as the folder below

    method = quantization_method(config)  # now: a model that is dequantized says it no more
    try:
        with _quiet():
            known = None if options.get("trust_remote_code") else loader
            check_weights(Path(source), config, known)
            model, loading = loader.from_pretrained(
                source,
                config=config,
                dtype=dtype,
                **options,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported below, where they can be named
            )
    except Exception as error:  # whatever transformers, safetensors and torch raise of a model
        raise _not_loaded(source, error, loading_advice(method)) from error
    if loading["mismatched_keys"]:
        name, stored, wanted = sorted(loading["mismatched_keys"])[0]
        raise ValueError(
            f"the model {source} cannot be loaded: {name} is {list(stored)} in its weights, and "
            f"{list(wanted)} by its config.json"
        )
    if missing := sorted(loading["missing_keys"]):
        raise ValueError(
            f"the checkpoint {source} lacks {len(missing)} tensors of the model, such as "
            f"{missing[0]}; they would be random"
        )
    return model


def load_tokenizer(source: str | Path, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer in a model's folder, as transformers opens it; ValueError if it cannot."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code)
    except Exception as error:  # whatever transformers and tokenizers raise of damaged files
        raise ValueError(
            f"the tokenizer of {source} is needed with the model, and cannot be loaded: "
            f"{_reason(error)}"
        ) from error


def check_model(source: str | Path, *, trust_remote_code: bool = False) -> Any:
    """The config of a causal model, without loading its weights; errors as `load_causal_model`."""
    from vocabshift.models.folder import check_folder  # here: DTYPES are asked for in a hurry

    check_folder(source)
    config = _load_config(source, trust_remote_code=trust_remote_code)
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING

    named = ", ".join(map(str, config.architectures or ())) or "no class named"
    is_known = trust_remote_code or type(config) in MODEL_FOR_CAUSAL_LM_MAPPING
    # Masked models have a causal class too, into which transformers would load them.
    if config.is_encoder_decoder or "MaskedLM" in named or not is_known:
        raise ValueError(
            f"{source} is no causal language model that transformers knows "
            f"({config.model_type}: {named})"
        )
    return config


def _load_config(source: str | Path, *, trust_remote_code: bool) -> Any:
    if find_spec("transformers") is None:
        raise ImportError(
            "models need torch and transformers; install them with: pip install 'vocabshift[hf]'"
        )
    from vocabshift.models.facts import read_config

    try:
        with _quiet():
            return read_config(source, trust_remote_code=trust_remote_code)
    except Exception as error:  # whatever transformers' checks of its many configs raise
        if not is_there(source):
            raise hub_error(str(source), "give its config", error) from error
        raise _not_loaded(source, error) from error


def torch_device(name: str) -> Any:
    """The torch device of that name; ValueError if this machine has no such device."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("meta"):
        raise ValueError("the device 'meta' holds no numbers; give cpu, cuda, cuda:N, mps or auto")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().split("\n")[0]
        advice = "give cpu, cuda, cuda:N, mps or auto"
        raise ValueError(f"no device {name!r} here ({reason}); {advice}") from error
    return device


def check_fit(model: Any, n_rows: int) -> int | None:
    """The model's BOS id or None; VocabMismatchError where ids lie beyond the model's rows."""
    rows = model.get_input_embeddings().weight.shape[0]
    if n_rows > rows:
        raise VocabMismatchError(
            f"the tokenizer needs {n_rows} embedding rows and the model has {rows}; "
            "score a model with its own tokenizer"
        )
    bos: int | None = model.config.get_text_config().bos_token_id
    if bos is not None and not 0 <= bos < rows:
        raise VocabMismatchError(
            f"the model's config names bos_token_id {bos} but the model has {rows} rows; "
            "set it to an id of its tokenizer, or to None"
        )
    return bos


def positions_of(model: Any) -> int | None:
    """The model's maximum number of positions, if it says so."""
    import torch

    for name, module in model.named_modules():
        pad = module.padding_idx if isinstance(module, torch.nn.Embedding) else None
        if pad is not None and "position" in name.rpartition(".")[2]:
            return int(module.num_embeddings) - pad - 1  # RoBERTa: the first has the row after pad
    config = model.config.get_text_config()
    found = (getattr(config, key, None) for key in ("max_position_embeddings", "max_seq_len"))
    return next((int(number) for number in found if number), None)


def check_causal(model: Any) -> None:
    """ValueError if later tokens change a token's logits: bits per byte would be meaningless.

    The test runs the model itself, because its class says little: BERT has a causal class too.
    """
    import torch

    weight = model.get_input_embeddings().weight
    ids = torch.tensor([[[0, 1, 2, 3]], [[0, 1, 2, 4]]], device=weight.device) % weight.shape[0]
    with torch.inference_mode():
        # One by one, because rows of a batch may be rounded in different ways.
        one, other = (model(input_ids=row, use_cache=False).logits[0, :3].float() for row in ids)
    rounding = max(1e-5, 4 * torch.finfo(weight.dtype).eps) * float(one.abs().max())
    if float((one - other).abs().max()) > rounding:
        raise ValueError(
            f"{type(model).__name__} is no causal language model: its prediction of a token "
            "depends on what follows it, so that it has no bits per byte"
        )


@contextmanager
def lack_of_memory(advice: str) -> Iterator[None]:
    """Raise a ValueError with this advice if the GPU or the CPU runs out of memory."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_named = type(error).__name__ in ("OutOfMemoryError", "MemoryError")
        if not is_named and "can't allocate memory" not in str(error):  # the CPU has no class
            raise
        raise ValueError(advice) from error


def _not_loaded(source: str | Path, error: Exception, advice: str = "") -> ValueError:
    return ValueError(f"the model {source} cannot be loaded: {_reason(error)}{advice}")


def _reason(error: Exception) -> str:
    said = " ".join(str(error).split())[:300].rstrip(".")
    return f"{type(error).__name__}: {said}" if isinstance(error, LookupError) else said


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' table of lacking tensors, and its bar where no terminal shows it."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    level, has_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bar:
            logging.enable_progress_bar()
