"""What verbs take in: the TOKENIZER and MODEL arguments, and the text that they learn from.

Owns `--corpus` and related flags, `--counts`, and how they become a corpus or a folder of counts.
Each verb decides what to do with the result.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vocabshift.cli.fields import add_fields, given
from vocabshift.cli.options import UsageError, add_many, natural, positive, size
from vocabshift.workflows.measure_models import DTYPES, score_to_file
from vocabshift.workflows.tokenizers import PATTERN_FLAG

if TYPE_CHECKING:
    from vocabshift import Corpus, CountFolder, Tokenizer
    from vocabshift.workflows.extend import NamedTokens


def add_pattern(parser: argparse.ArgumentParser) -> None:
    """Add `--pattern NAME|REGEX`."""
    parser.add_argument(
        PATTERN_FLAG,
        metavar="NAME|REGEX",
        help="pre-tokenizer of rank files and GGUF vocabularies that do not name theirs",
    )


def add_names(parser: argparse.ArgumentParser, *, with_text: bool = True) -> None:
    """Add `--words`, `--special` and `--role`, which `names_of` reads, and `--held-out`."""
    from vocabshift import NamedTokens

    group = parser.add_argument_group("words and special tokens by name")
    add_many(
        group,
        "--words",
        metavar="FILE",
        help="one word a line: each becomes one token, and what that costs is reported",
    )
    add_fields(group, NamedTokens, ("word_forms", "words_as"))
    add_many(
        group,
        "--special",
        metavar="TOKEN[=DESCRIPTION]",
        help="a special token; transfer makes its row of its description's tokens",
    )
    add_many(
        group,
        "--role",
        metavar="ROLE=TOKEN",
        help="a special token becomes bos, eos, pad, sep, cls or mask; the model's config follows",
    )
    if with_text:
        help = "other text, on which the cost of the words is measured (default: the corpus)"
        add_many(group, "--held-out", metavar="SPEC", help=help)


def names_of(args: argparse.Namespace) -> NamedTokens:
    """The words, special tokens and roles that are given."""
    from vocabshift.workflows.extend import NamedTokens, read_words

    words = [word for file in args.words or () for word in read_words(file)]
    special: dict[str, str] = {}
    for token, description in map(_special, args.special or ()):
        if special.setdefault(token, description) != description:
            raise UsageError(f"--special {token} is given twice; give one description")
    roles: dict[str, str] = {}
    for value in args.role or ():
        role, equals, token = value.partition("=")
        if not equals or not token:
            raise UsageError(f"--role {value!r} is no ROLE=TOKEN; write for example pad=<|pad|>")
        if role in roles:
            raise UsageError(f"--role {role} is given twice")
        roles[role] = token
    return NamedTokens(
        words=tuple(dict.fromkeys(words)),
        special_tokens=special,
        roles=roles,
        **given(args, ("word_forms", "words_as")),
    )


def _special(value: str) -> tuple[str, str]:
    """TOKEN and DESCRIPTION; an "=" inside of <…> or […] belongs to the token."""
    found = re.fullmatch(r"(<[^<>]*>|\[[^\[\]]*\]|[^=]*)(?:=(.*))?", value, re.DOTALL)
    token, description = found.groups() if found else (value, None)
    if description is not None and not description.strip():
        raise UsageError(f"--special {value!r} describes nothing; leave the '=' out")
    return token, (description or "").strip()


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


def add_windows(parser: argparse.ArgumentParser, *, note: str = "") -> None:
    """Add `--context`, `--overlap` and `--batch-tokens`; `note` follows the last one's default."""
    parser.add_argument(
        "--context",
        metavar="N",
        type=positive,
        help="tokens that a model sees at once (default: its positions, at most 4096)",
    )
    parser.add_argument(
        "--overlap",
        metavar="N",
        type=positive,
        help="tokens of a window that repeat the one before (default: half the context)",
    )
    parser.add_argument(
        "--batch-tokens",
        metavar="N",
        type=positive,
        help="tokens run at once, padding included (default: "
        f"{defaults_of(score_to_file)['batch_tokens']}{note})",
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


CORPUS = "[lang=]PATH|DIR|GLOB|hf:DATASET[@WEIGHT]"

_CHOICES = ("languages", "documents", "errors", "max_roman_words", "language_bytes", "draw_seed")


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add `--corpus`, `--counts`, and the flags of `add_choices`."""
    add_many(parser, "--corpus", metavar="SPEC", help=CORPUS)
    parser.add_argument(
        "--counts",
        metavar="DIR",
        help="a folder that `vocabshift count` wrote with the same pattern, as the corpus",
    )
    add_choices(parser)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Add the flags for which parts of a corpus are read and how documents are split."""
    add_many(parser, "--languages", metavar="L", help="use only these labels of the corpus")
    parser.add_argument("--documents", choices=("line", "file"), help="a .txt is one per line/file")
    add_errors(parser)
    parser.add_argument(
        "--max-roman-words",
        metavar="N",
        type=natural,
        help="leave out lines of more words in Roman script, in languages of other scripts",
    )
    add_many(
        parser,
        "--language-bytes",
        metavar="[L=]SIZE",
        help="at most so much text of each language, or of language L, such as 20MB hi=50MB: "
        "documents drawn at random",
    )
    parser.add_argument("--draw-seed", metavar="N", type=natural, help="which documents (0)")


def add_errors(parser: argparse.ArgumentParser) -> None:
    """Add `--errors`, which `text_of` and `corpus_of` read."""
    parser.add_argument(
        "--errors",
        choices=("strict", "replace"),
        help="bytes of text that are not UTF-8: an error (default), or U+FFFD in their place",
    )


def require_source(args: argparse.Namespace, see: str) -> None:
    """UsageError unless a corpus or a folder of counts is given; `see` names the help."""
    if not (args.corpus or args.counts):
        raise UsageError(f"--corpus (or --counts) is required {see}")


def source_of(args: argparse.Namespace) -> Corpus | CountFolder:
    """The corpus, limited by the flags of `add_choices`, or the folder of counts."""
    if not args.counts:
        return corpus_of(args.corpus, args)
    for name in ("corpus", *_CHOICES):
        if getattr(args, name) is not None:
            flag = name.replace("_", "-")
            raise UsageError(f"--counts stands for the whole corpus; leave --{flag} out")
    import vocabshift as vs

    return vs.CountFolder.open(args.counts, getattr(args, "runs", None))


def held_out_of(args: argparse.Namespace) -> Corpus:
    """The text of `--held-out`: whole, whatever parts of the corpus are chosen."""
    return text_of(args.held_out, args, documents=args.documents)


def corpus_of(specs: Sequence[str], args: argparse.Namespace) -> Corpus:
    """The corpus of the specs, with the flags of `add_choices` applied in their order."""
    budgets = language_budgets(args.language_bytes or ())
    if args.draw_seed is not None and not budgets:
        raise UsageError("--draw-seed chooses what --language-bytes takes; give both")
    corpus = text_of(specs, args, documents=args.documents)
    if args.languages:
        corpus = corpus.select(args.languages)
    if args.max_roman_words is not None:
        corpus = corpus.limit_roman_words(args.max_roman_words)
    if budgets:
        every = budgets.pop(None, None)
        of = {part.language: every for part in corpus.parts} if every else {}
        corpus = corpus.limit_bytes(of | budgets, seed=args.draw_seed or 0)
    return corpus


def text_of(specs: Sequence[str], args: argparse.Namespace, *, documents: Any = None) -> Corpus:
    """The corpus of the specs as they are, with the flag of `add_errors`."""
    import vocabshift as vs

    return vs.Corpus.from_specs(
        specs, documents=documents or "line", errors=args.errors or "strict"
    )


def language_budgets(words: Sequence[str]) -> dict[str | None, int]:
    """Bytes by label, None for all other labels; UsageError for an invalid size."""
    budgets: dict[str | None, int] = {}
    for word in words:
        label, equals, amount = word.rpartition("=")
        try:
            n_bytes = size(amount)
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"--language-bytes {word}: {error}") from None
        key = label if equals else None
        if key in budgets:
            raise UsageError(f"--language-bytes {word}: it is given twice; give one size")
        budgets[key] = n_bytes
    return budgets


def tokenizer_of(args: argparse.Namespace) -> str | Tokenizer:
    """TOKENIZER as named on the command line, or loaded if `--pattern` is given."""
    if args.pattern is None:
        return str(args.tokenizer)
    [tokenizer] = load_all([args.tokenizer], args.pattern)
    return tokenizer


def words_of(args: argparse.Namespace) -> list[str]:
    """The flags of `add_choices` as given, for the suggested next command."""
    words = []
    for name in _CHOICES:
        value = getattr(args, name)
        if value is not None:
            values = value if isinstance(value, list) else [value]
            words += ["--" + name.replace("_", "-"), *map(str, values)]
    return words
