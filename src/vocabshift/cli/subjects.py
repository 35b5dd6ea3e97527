"""The TOKENIZER and MODEL arguments of the verbs that measure, and the related flags."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vocabshift.workflows.measure_models import DTYPES, score_to_file
from vocabshift.workflows.tokenizers import PATTERN_FLAG

if TYPE_CHECKING:
    from vocabshift import Tokenizer


def add_pattern(parser: argparse.ArgumentParser) -> None:
    """Add `--pattern NAME|REGEX`."""
    parser.add_argument(
        PATTERN_FLAG,
        metavar="NAME|REGEX",
        help="pre-tokenizer of rank files and GGUF vocabularies that do not name theirs",
    )


def load_all(sources: Sequence[str], pattern: str | None) -> list[Tokenizer]:
    """Load all tokenizers in order; ValueError for a pattern that none of them needs."""
    from vocabshift.workflows.tokenizers import load_bpe_tokenizers

    return load_bpe_tokenizers(sources, pattern=pattern)


def add_models(parser: argparse.ArgumentParser, *, nargs: str = "+") -> None:
    """Add `MODEL…`, `--dtype`, `--device` and `--trust-remote-code`."""
    parser.add_argument(
        "models", metavar="MODEL", nargs=nargs, help="folder or Hub name of a causal language model"
    )
    add_loading(parser)
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run code that lies in a model's folder; refused unless given",
    )


def add_loading(parser: argparse.ArgumentParser) -> None:
    """Add `--dtype` and `--device`."""
    defaults = defaults_of(score_to_file)
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default=defaults["dtype"],
        help="of the weights (default: %(default)s)",
    )
    parser.add_argument(
        "--device",
        default=defaults["device"],
        help="cpu, cuda, cuda:N, mps, or auto: a GPU where there is one (default)",
    )


def loading(args: argparse.Namespace) -> dict[str, Any]:
    """These flags as keyword arguments."""
    return {
        "dtype": args.dtype,
        "device": args.device,
        "trust_remote_code": args.trust_remote_code,
    }


def defaults_of(function: Callable[..., object]) -> dict[str, Any]:
    """The defaults of a function's parameters, for the corresponding flags."""
    parameters = inspect.signature(function).parameters.items()
    return {name: own.default for name, own in parameters if own.default is not own.empty}
