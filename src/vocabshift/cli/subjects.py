"""Loading the TOKENIZER arguments of a verb, with `--pattern` for files that lack theirs.

Owns to which of several tokenizers a pattern goes: to those that cannot be read without one.
Knows nothing of formats.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError
from vocabshift.errors import InvalidTokenizerError

if TYPE_CHECKING:
    from vocabshift.tokenizer.tokenizer import Tokenizer
    from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

FLAG = "--pattern"


def add_pattern(parser: argparse.ArgumentParser) -> None:
    """`--pattern NAME|REGEX`."""
    parser.add_argument(
        FLAG,
        metavar="NAME|REGEX",
        help="pre-tokenizer of rank files and GGUF vocabularies that do not name theirs",
    )


def load_all(sources: Sequence[str], pattern: str | None) -> list[Tokenizer]:
    """All tokenizers, in order; UsageError for a pattern that none of them needs."""
    return _load(sources, pattern, None)


def load_any(
    sources: Sequence[str], pattern: str | None
) -> list[Tokenizer | UnigramOrWordPieceTokenizer]:
    """The same for tokenizers of every kind, Unigram and WordPiece too."""
    return _load(sources, pattern, _open_other)


def _load(
    sources: Sequence[str], pattern: str | None, open_other: Callable[[str], Any] | None
) -> list[Any]:
    from vocabshift.tokenizer.formats.load import load_tokenizer

    loaded = []
    is_used = False
    for source in sources:
        try:
            loaded.append(load_tokenizer(source))
        except InvalidTokenizerError as error:
            if pattern is not None and FLAG in str(error):
                loaded.append(load_tokenizer(source, pattern=pattern))
                is_used = True
            elif open_other is not None:
                loaded.append(open_other(source))
            else:
                raise
    if pattern is not None and not is_used:
        raise UsageError(f"{FLAG} is not needed: the tokenizers bring their own; leave it out")
    return loaded


def _open_other(source: str) -> Any:
    """Raises what loading it as BPE raised, where it is no tokenizer of another kind."""
    from vocabshift.tokenizer.formats.load import open_tokenizer

    return open_tokenizer(source)


# MODEL arguments of the verbs that judge models, and the flags about how they are loaded.


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
