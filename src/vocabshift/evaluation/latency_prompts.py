"""Prompts for latency: the same bytes of text for every model, whatever its tokenizer.

Owns how documents become prompts. Knows nothing of models or time. A prompt is cut by bytes, never
by tokens: a tokenizer that needs fewer tokens for the same text is what is to be measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from vocabshift.errors import CorpusError
from vocabshift.evaluation.counts import ALL

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus


def cut_prompts(
    texts: Corpus | Mapping[str, Iterable[str]], *, n_prompts: int = 20, prompt_bytes: int = 512
) -> dict[str, list[str]]:
    """`n_prompts` prompts of each language, of `prompt_bytes` bytes of UTF-8 each or a little less.

    Documents are taken in order, blank ones skipped, and joined with a newline until they hold
    enough; the rest of the last one is dropped, so that every prompt begins where a document
    does. A prompt ends before a space, or between two characters where there is none near its end.

    Raises ValueError for numbers below 1, CorpusError where a language has too little text.
    """
    from vocabshift.text.corpus import Corpus

    for name, value in (("n_prompts", n_prompts), ("prompt_bytes", prompt_bytes)):
        if value < 1:
            raise ValueError(f"{name} is {value}; at least 1 is needed")
    corpus = texts if hasattr(texts, "texts") else Corpus.from_texts(texts)
    documents: dict[str, list[str]] = {}
    for language, text in corpus.texts():
        own = documents.setdefault(ALL if language is None else language, [])
        if text.strip():
            own.append(text)
    if not any(documents.values()):
        raise CorpusError("there is no text to make prompts of; name files that are not empty")
    prompts: dict[str, list[str]] = {}
    for language, own in documents.items():
        found = list(islice(_joined(own, prompt_bytes), n_prompts))
        if len(found) < n_prompts:
            raise CorpusError(
                f"the text of {language!r} gives {len(found)} prompts of {prompt_bytes} bytes and "
                f"{n_prompts} are asked for; give more text, or ask for fewer or shorter ones"
            )
        prompts[language] = found
    return prompts


def _joined(documents: list[str], prompt_bytes: int) -> Iterator[str]:
    """Prompts that lie one after another in `documents`; what is left at the end is no prompt."""
    parts: list[str] = []
    size = 0
    for document in documents:
        parts.append(document)
        size += len(document.encode("utf-8")) + (len(parts) > 1)
        if size >= prompt_bytes:
            yield _cut("\n".join(parts), prompt_bytes)
            parts, size = [], 0


def _cut(text: str, n_bytes: int) -> str:
    """The head of `text`, at most `n_bytes` long and never empty."""
    data = text.encode("utf-8")
    head = data[:n_bytes].decode("utf-8", "ignore") or text[0]
    if len(head) == len(text) or text[len(head)].isspace():
        return head
    whole_words = head[: max(head.rfind(" "), head.rfind("\n"), 0)].rstrip()
    return whole_words if 2 * len(whole_words) > len(head) else head
