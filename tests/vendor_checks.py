"""What every change to a vendor's tokenizer keeps, and the text to see it on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from real_text import eval_lines
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer

# Vendors like another one, which is always run: in spelling, normalizer and kind of pattern.
LIKE = {
    "llama2": "mistral7b-v1",
    "mistral7b-v3": "mistral7b-v1",
    "llama4": "llama3",
    "mistral-nemo": "llama3",
    "cl100k_base": "llama3",
    "o200k_base": "llama3",
    "deepseek": "llama3",
    "gguf-command-r": "qwen25",
}


def vendor_params(paths: Iterable[str]) -> list[Any]:
    """Parameters. Tests of one vendor, in all files, run in a row and share what is loaded."""
    return [vendor_param(path, name=path.rsplit("/", maxsplit=1)[-1]) for path in paths]


def vendor_param(path: str, *values: object, name: str, is_nightly: bool = False) -> Any:
    """One parameter set, which begins with the path of the vendor called `name`."""
    marks = [pytest.mark.xdist_group(f"vendor {name}")]
    if is_nightly or name in LIKE:
        marks.append(pytest.mark.nightly)
    return pytest.param(path, *values, id="-".join([name, *map(str, values)]), marks=marks)


def some_languages(shared_data: Path) -> Corpus:
    """The first half of the evaluation lines of some languages."""
    folder = shared_data / "eval" / "sib200-flores"
    lines = {name: (folder / f"{name}.txt").read_text().split("\n") for name in _LANGUAGES}
    return Corpus.from_texts({name: text[:500] for name, text in lines.items()})


_LANGUAGES = ("et", "hi", "ta", "en")


def sample(shared_data: Path, tokenizer: Tokenizer) -> list[str]:
    """Lines of every evaluation file, text with special tokens in it, and odd text."""
    lines = [line for text in eval_lines(shared_data, 4_000).values() for line in text]
    assert len(lines) > 400
    specials = [token.content for token in tokenizer.added_tokens[:5]]
    odd = ["👩‍👩‍👧 e\u0301 क्\u200dष\u200cत \x00\t", "", "  a\n\n b\t", "\x7f\u200d", "🏽👩‍👩‍👧"]
    return [*lines, *(f"a{token} b" for token in specials), *odd]


def check_against_base(
    base: Tokenizer, longer: Tokenizer, lines: list[str], before: Encoder | None = None
) -> None:
    """What every operation keeps: texts, special tokens, reachability, the ids of `tokenizers`."""
    before, after = before or Encoder(base), Encoder(longer)
    old_ids, old_offsets = before.encode_batch(lines)
    ids, offsets = after.encode_batch(lines)
    assert after.decode_batch(ids, offsets) == before.decode_batch(old_ids, old_offsets)
    expected = longer.backend.encode_batch(lines, add_special_tokens=False)
    assert ids.tolist() == [i for encoding in expected for i in encoding.ids]
    assert set(unreachable_tokens(longer)) <= set(unreachable_tokens(base))
    meaning = {token.id: token.content for token in base.added_tokens}
    assert meaning == {token.id: token.content for token in longer.added_tokens}
    for text in ("x", "न"):
        template = longer.backend.encode(text).ids
        bare = set(longer.backend.encode(text, add_special_tokens=False).ids)
        base_template = base.backend.encode(text).ids
        assert [i for i in template if i in meaning and i not in bare] == [
            i for i in base_template if i in meaning and i not in bare
        ]


def decoded(backend: Any, texts: list[str]) -> list[str]:
    """What comes back of texts."""
    ids = [encoding.ids for encoding in backend.encode_batch(texts, add_special_tokens=False)]
    return list(backend.decode_batch(ids, skip_special_tokens=False))
