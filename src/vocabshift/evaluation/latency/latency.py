"""Latency: the time to the first token, and the amount of text then generated per second.

Owns the prompts, the order of requests, and the rows. Knows nothing of torch or HTTP: a `Responder`
(`local`, `server`) answers. Two models of the same shape generate about the same number of tokens
per second, but the bytes in these tokens differ. So bytes and characters are counted too (IST
section 4.3 and Table 5, which gives tokens only). Models take turns within every repeat, so other
load on the machine affects all of them.

A prompt is cut by bytes, never by tokens, because the effect of needing fewer tokens for the same
text is to be measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from vocabshift.errors import CorpusError
from vocabshift.evaluation.metrics.metric import Terms, estimate
from vocabshift.progress import Progress
from vocabshift.results import UNLABELLED, Result, Results, with_sources

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus

_CONTINUES = 0b10  # the top bits of a byte of UTF-8 that does not begin a character


@dataclass(frozen=True, slots=True)
class Answer:
    """One request: a prompt, and what came back when. Times in seconds, from sending the prompt."""

    input_tokens: int
    output_tokens: int
    first: bytes  # the text of the first token
    rest: bytes  # of all that follow it
    first_token_seconds: float
    seconds: float  # until the last token


class Responder(Protocol):
    """Something that continues a prompt."""

    @property
    def tokenizer_sha256(self) -> str | None:
        """`Result.tokenizer_sha256`; None where it cannot know."""

    def ask(self, prompt: str) -> Answer:
        """Continue `prompt` greedily for a fixed number of tokens, on past the end of text."""

    def peak_memory(self, prompt: str) -> int | None:
        """Bytes of the weights and of what answering needs besides; None where it cannot know."""


@dataclass(frozen=True, slots=True)
class Request:
    """One timed request."""

    subject: str
    language: str
    prompt: int  # index among the language's
    repeat: int  # from 0
    prompt_bytes: int
    answer: Answer

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, the text as the number of its bytes."""
        row = asdict(self)
        answer = row.pop("answer")
        answer["first"], answer["rest"] = len(answer["first"]), len(answer["rest"])
        names = {"first": "first_bytes", "rest": "rest_bytes"}
        return row | {names.get(name, name): value for name, value in answer.items()}


@dataclass(frozen=True, slots=True)
class Latency:
    """What `measure_latency` found."""

    results: Results
    spread: list[dict[str, Any]]  # {subject, language, metric, sd}: over repeats
    requests: list[Request]


def measure_latency(
    responders: Mapping[str, Responder],
    prompts: Mapping[str, Sequence[str]],
    *,
    warmup: int = 5,
    repeats: int = 10,
    progress: Progress | None = None,
) -> Latency:
    """Time every responder on every prompt, `repeats` times after `warmup` requests each.

    Rows by subject and language, n = requests: ttft_seconds (time to first token, the work of the
    tokenizer included), output_tokens_per_second, output_bytes_per_second and
    output_characters_per_second (all of what follows the first token), text_bytes_per_second
    (tokens per second, times the prompts' bytes per token: what the same speed is worth on text of
    this language, where a weak model repeats itself), input_tokens (a prompt), and
    peak_memory_bytes where it is known (of the longest prompt, n = 1). Values are ratios of sums;
    95 % intervals of what is timed are a bootstrap over repeats, left out where there is one.

    `progress`: called with the phase "requests", prompts done, and all prompts of all repeats.
    Raises ValueError where there is nothing to do, and what the responders raise.
    """
    if not responders or not any(prompts.values()):
        raise ValueError("a model and a prompt are needed")
    if warmup < 0 or repeats < 1:
        raise ValueError(f"warmup is {warmup}, repeats {repeats}; at least 0 and 1 are needed")
    turns = [
        (language, index, prompt)
        for language, own in prompts.items()
        for index, prompt in enumerate(own)
    ]
    for index in range(warmup):
        for responder in responders.values():
            responder.ask(turns[index * len(turns) // warmup][2])
    names = list(responders)
    requests: list[Request] = []
    for repeat in range(repeats):
        for turn, (language, index, prompt) in enumerate(turns):
            shift = (repeat + turn) % len(names)
            size = len(prompt.encode("utf-8"))
            for name in (*names[shift:], *names[:shift]):
                answer = responders[name].ask(prompt)
                requests.append(Request(name, language, index, repeat, size, answer))
            if progress:
                progress("requests", repeat * len(turns) + turn + 1, repeats * len(turns))
    return _summary(requests, names, responders, prompts)


_TERMS: dict[str, Callable[[Request], tuple[float, float]]] = {
    "ttft_seconds": lambda r: (r.answer.first_token_seconds, 1),
    "output_tokens_per_second": lambda r: (r.answer.output_tokens - 1, _writing(r.answer)),
    "output_bytes_per_second": lambda r: (len(r.answer.rest), _writing(r.answer)),
    "output_characters_per_second": lambda r: (_characters(r.answer.rest), _writing(r.answer)),
    "input_tokens": lambda r: (r.answer.input_tokens, 1),
}
"""Numerator and denominator of a request, by metric."""


def _writing(answer: Answer) -> float:
    """Seconds from the first token to the last."""
    return answer.seconds - answer.first_token_seconds


def _characters(text: bytes) -> int:
    """Characters that begin in `text`."""
    return sum(byte >> 6 != _CONTINUES for byte in text)


def _summary(
    requests: list[Request],
    names: Sequence[str],
    responders: Mapping[str, Responder],
    prompts: Mapping[str, Sequence[str]],
) -> Latency:
    rows: list[Result] = []
    spread: list[dict[str, Any]] = []
    for subject in names:
        for language, own_prompts in prompts.items():
            own = [r for r in requests if (r.subject, r.language) == (subject, language)]
            if not own:
                continue
            for metric, (above, below) in _by_repeat(own).items():
                found = estimate([(above, below)])[0]
                is_timed = metric != "input_tokens"
                low, high = (found.low, found.high) if is_timed else (None, None)
                rows.append(Result(subject, language, metric, found.value, len(own), low, high))
                if is_timed and len(above) > 1:
                    sd = float(np.std(above / below, ddof=1))
                    spread.append(
                        {"subject": subject, "language": language, "metric": metric, "sd": sd}
                    )
            longest = max(own, key=lambda request: request.answer.input_tokens).prompt
            memory = responders[subject].peak_memory(own_prompts[longest])
            if memory is not None:
                rows.append(Result(subject, language, "peak_memory_bytes", float(memory), 1))
    tokenizers = {subject: responders[subject].tokenizer_sha256 for subject in names}
    return Latency(with_sources(rows, prompts, tokenizers), spread, requests)


def _by_repeat(requests: Sequence[Request]) -> dict[str, Terms]:
    """Numerators and denominators, (n_repeats,) each, of one subject on one language."""
    n_repeats = 1 + max(request.repeat for request in requests)
    columns: dict[str, Any] = {}
    for metric, terms in _TERMS.items():
        sums = np.zeros((n_repeats, 2))
        for request in requests:
            sums[request.repeat] += terms(request)
        if sums[:, 1].all():  # no time passes between the first token and the last of one
            columns[metric] = (sums[:, 0], sums[:, 1])
        if metric == "output_tokens_per_second" and metric in columns:
            n_bytes = sum(request.prompt_bytes for request in requests)
            share = n_bytes / sum(request.answer.input_tokens for request in requests)
            columns["text_bytes_per_second"] = (sums[:, 0] * share, sums[:, 1])
    return columns


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
        own = documents.setdefault(UNLABELLED if language is None else language, [])
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
    """Cut consecutive prompts from `documents`; the remainder at the end is dropped."""
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
