"""A model on an OpenAI-compatible server, such as vLLM, as latency measures it.

Owns the request, and reading the answer as it streams in (server-sent events). The server may be
any program, so its answer is checked. Its memory is not known. Standard library only.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vocabshift.evaluation.latency.latency import Answer

_LONGEST_LINE = 1 << 20  # bytes; an event holds a few tokens
_LONGEST_ANSWER = 1 << 24  # bytes
_TIMEOUT = 600.0  # seconds without a byte


class ServedModel:
    """A `Responder`: a model name at the base address of a server, such as http://host:8000/v1."""

    def __init__(self, url: str, model: str, *, max_new_tokens: int = 64) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(f"{url!r} is no address of a server; write for example {_EXAMPLE}")
        if max_new_tokens < 2:
            raise ValueError(
                f"max_new_tokens is {max_new_tokens}; at least 2 are needed to time writing"
            )
        self._url = url.rstrip("/") + "/completions"
        self._model = model
        self._n_new = max_new_tokens
        self._usages: dict[str, Any] = {}  # of prompts, where the stream has none

    tokenizer_sha256 = None  # as its memory

    def ask(self, prompt: str) -> Answer:
        """Time a completion: temperature 0, `ignore_eos`, `max_new_tokens` tokens.

        The first token is there when the first event with text is; of an event with several
        tokens only the time is known, so `rest` is what later events hold. A server whose streams
        do not count tokens (llama-cpp-python's) is asked once more for each prompt, without a
        stream and untimed. Raises ValueError for an answer that is none, OSError where the server
        cannot be reached.
        """
        start = time.perf_counter()
        first, rest, usage = b"", b"", None
        first_at = last_at = 0.0
        for event in self._events(prompt):
            usage = event.get("usage") or usage
            text = self._text(event).encode("utf-8", "replace")
            if not text:
                continue
            last_at = time.perf_counter()
            if first:
                rest += text
            else:
                first, first_at = text, last_at
        if usage is None and first:
            usage = self._usage_of(prompt)
        if usage is None or not first or not _is_usage(usage):
            missing = "no usage" if first else "no text"
            raise ValueError(
                f"{self._url} answered with {missing}: a server is needed that streams completions "
                "and counts tokens, as vLLM does"
            )
        return Answer(
            input_tokens=usage["prompt_tokens"],
            output_tokens=usage["completion_tokens"],
            first=first,
            rest=rest,
            first_token_seconds=first_at - start,
            seconds=last_at - start,
        )

    def peak_memory(self, prompt: str) -> None:
        """A server does not say."""

    def _usage_of(self, prompt: str) -> Any:
        """The tokens of a prompt and of its answer, by a request of its own."""
        if prompt not in self._usages:
            with self._request(prompt, stream=False) as answer:
                self._usages[prompt] = self._parsed(answer.read(_LONGEST_ANSWER)).get("usage")
        return self._usages[prompt]

    def _events(self, prompt: str) -> Iterator[dict[str, Any]]:
        with self._request(prompt, stream=True) as answer:
            while line := answer.readline(_LONGEST_LINE):
                if line.startswith(b"data:"):
                    data = line.removeprefix(b"data:").strip()
                    if data == b"[DONE]":
                        return
                    yield self._parsed(data)

    @contextmanager
    def _request(self, prompt: str, *, stream: bool) -> Iterator[Any]:
        wish: dict[str, Any] = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": self._n_new,
            "temperature": 0,
            "ignore_eos": True,
            "stream": stream,
        }
        if stream:
            wish["stream_options"] = {"include_usage": True}
        request = urllib.request.Request(
            self._url,
            data=json.dumps(wish).encode(),
            headers={
                "Content-Type": "application/json",
                "Accept": "text/event-stream" if stream else "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            said = " ".join(error.read(500).decode("utf-8", "replace").split())
            raise ValueError(f"{self._url} refused with status {error.code}: {said}") from None
        except urllib.error.URLError as error:
            raise OSError(f"{self._url} cannot be reached: {error.reason}") from None
        except http.client.HTTPException as error:
            raise ValueError(f"{self._url} broke off: {error!r}") from None

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise ValueError(f"{self._url} sent an event that is no JSON object: {data[:80]!r}")
        if "error" in event:
            raise ValueError(f"{self._url} sent an error: {str(event['error'])[:300]}")
        return event

    def _text(self, event: dict[str, Any]) -> str:
        """The text of an event; none where it holds no choice, as that with the usage."""
        choices = event.get("choices") or []
        try:
            text = choices[0]["text"] if choices else ""
        except (LookupError, TypeError):
            text = None
        if not isinstance(text, str):
            raise ValueError(f"{self._url} sent an event without text: {str(event)[:200]}")
        return text


_EXAMPLE = "http://localhost:8000/v1"


def _is_usage(usage: Any) -> bool:
    names = ("prompt_tokens", "completion_tokens")
    return isinstance(usage, dict) and all(
        isinstance(usage.get(name), int) and usage[name] >= 1 for name in names
    )
