"""MODEL arguments of the verbs that judge models, and the flags about how they are loaded."""

from __future__ import annotations

import argparse
from typing import Any

DTYPES = ("float32", "bfloat16", "float16", "auto")


def add_models(parser: argparse.ArgumentParser, *, nargs: str = "+") -> None:
    """`MODEL…`, `--dtype`, `--device` and `--trust-remote-code`."""
    parser.add_argument(
        "models", metavar="MODEL", nargs=nargs, help="folder or Hub name of a causal language model"
    )
    parser.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="of the weights (default: float32)"
    )
    parser.add_argument(
        "--device",
        default="auto",
        help="cpu, cuda, cuda:N, mps, or auto: a GPU where there is one (default)",
    )
    parser.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run code that lies in a model's folder; refused unless given",
    )


def loading(args: argparse.Namespace) -> dict[str, Any]:
    """These flags as keyword arguments."""
    return {
        "dtype": args.dtype,
        "device": args.device,
        "trust_remote_code": args.trust_remote_code,
    }
