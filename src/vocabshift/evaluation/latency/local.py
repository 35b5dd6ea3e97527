"""A causal model in this process, as latency measures it: transformers, one request at a time.

Owns loading for speed, the timed `generate`, the bytes of its tokens, and peak memory. Prompts that
end inside a superword are healed (`models.healing`). Knows nothing of repeats or rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError, VocabMismatchError
from vocabshift.evaluation.latency.latency import Answer
from vocabshift.evaluation.lines.subject import checksum_if_readable
from vocabshift.models.healing import healer_of
from vocabshift.models.load import (
    check_model,
    lack_of_memory,
    load_causal_model,
    load_tokenizer,
    positions_of,
    torch_device,
)

if TYPE_CHECKING:
    import torch


class LocalModel:
    """A `Responder`: a causal model and its tokenizer, both of transformers.

    The model's own settings for generation are replaced.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        max_new_tokens: int = 64,
        tokenizer_sha256: str | None = None,
    ) -> None:
        if max_new_tokens < 2:
            raise ValueError(
                f"max_new_tokens is {max_new_tokens}; at least 2 are needed to time writing"
            )
        rows = model.get_input_embeddings().weight.shape[0]
        if len(tokenizer) > rows:
            raise VocabMismatchError(
                f"the tokenizer needs {len(tokenizer)} embedding rows and the model has {rows}; "
                "time a model with its own tokenizer"
            )
        self._model = model.eval()
        # `generate` takes from the model's settings whatever a call leaves open.
        self._model.generation_config = _settings(model.generation_config, max_new_tokens)
        self._tokenizer = tokenizer
        self._n_new = max_new_tokens
        self.tokenizer_sha256 = tokenizer_sha256
        self._text_of = _decoder(tokenizer)
        self._healer = healer_of(tokenizer)

    def ask(self, prompt: str) -> Answer:
        """Time `generate`, and the tokenizer's work before it.

        What the model generates again of the prompt's end is part of no text. The end of text is
        never chosen, so that every model writes `max_new_tokens` tokens. Raises ValueError where
        prompt and answer have more tokens than the model has positions.
        """
        clock = _Clock()
        ids, tail = self._ids(prompt)
        written = self._generate(ids, tail, clock)
        first, last = clock.times[0], clock.times[-1]
        texts = self._text_of(written[:1]), self._text_of(written[1:])
        return Answer(
            input_tokens=int(ids.shape[1]),
            output_tokens=len(written),
            first=texts[0][len(tail) :],
            rest=texts[1][max(0, len(tail) - len(texts[0])) :],
            first_token_seconds=first - clock.start,
            seconds=last - clock.start,
        )

    def peak_memory(self, prompt: str) -> int:
        """Bytes of the weights, and the most that answering takes besides.

        On CUDA what torch's allocator held; elsewhere the tensors that operations gave and that
        lived together, without the scratch space inside an operation.
        """
        import torch

        weights = sum(
            tensor.numel() * tensor.element_size()
            for tensor in (*self._model.parameters(), *self._model.buffers())
        )
        ids, tail = self._ids(prompt)
        if ids.device.type == "cuda":
            torch.cuda.synchronize(ids.device)
            before = torch.cuda.memory_allocated(ids.device)
            torch.cuda.reset_peak_memory_stats(ids.device)
            self._generate(ids, tail, None)
            return int(weights + torch.cuda.max_memory_allocated(ids.device) - before)
        return int(weights + _peak_of_tensors(lambda: self._generate(ids, tail, None)))

    def _ids(self, prompt: str) -> tuple[torch.Tensor, bytes]:
        """Return (1, n) ids on the model's device, with the tokens that start a text.

        Tokens at the end that a superword may replace are left out; their bytes are to come first.
        """
        import torch

        ids = self._tokenizer(prompt, verbose=False)["input_ids"]
        positions = positions_of(self._model)
        if positions is not None and len(ids) + self._n_new > positions:
            raise ValueError(
                f"a prompt of {len(ids)} tokens and {self._n_new} new ones do not fit the "
                f"{positions} positions of {self._model.name_or_path or 'the model'}; ask for "
                "shorter prompts or fewer new tokens"
            )
        n_back, tail = (0, b"") if self._healer is None else self._healer.tail(ids)
        device = self._model.get_input_embeddings().weight.device
        return torch.tensor([ids[: len(ids) - n_back]], device=device), tail

    def _constraints(self, tail: bytes, n_prompt: int) -> Any:
        from transformers import LogitsProcessorList

        found: Any = LogitsProcessorList  # untyped
        if self._healer is None or not tail:
            return found()
        return found([self._healer.constraint([tail], n_prompt)])

    def _generate(self, ids: torch.Tensor, tail: bytes, streamer: Any) -> list[int]:
        import torch

        advice = (
            f"no memory for a prompt of {ids.shape[1]} tokens and {self._n_new} new ones: ask for "
            "shorter prompts or fewer new tokens, or choose a smaller dtype"
        )
        with lack_of_memory(advice), torch.inference_mode():
            found = self._model.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                streamer=streamer,
                logits_processor=self._constraints(tail, ids.shape[1]),
            )
        return list(found[0, ids.shape[1] :].tolist())


def load_local(
    source: str,
    *,
    max_new_tokens: int,
    device: str = "auto",
    dtype: str = "float32",
    trust_remote_code: bool = False,
) -> LocalModel:
    """The model of a folder or Hub name, with its tokenizer.

    `device` and `dtype` are those of `load_causal_model`, which says what is raised; ValueError
    for a tokenizer that is missing or damaged, too.
    """
    torch_device(device)
    check_model(source, trust_remote_code=trust_remote_code)
    tokenizer = load_tokenizer(source, trust_remote_code=trust_remote_code)
    model = load_causal_model(
        source, dtype=dtype, device=device, trust_remote_code=trust_remote_code
    )
    return LocalModel(
        model,
        tokenizer,
        max_new_tokens=max_new_tokens,
        tokenizer_sha256=checksum_if_readable(source),
    )


def _settings(own: Any, n_new: int) -> Any:
    """The likeliest token each time, `n_new` of them, whatever the model's own settings are."""
    import transformers

    settings: Any = transformers.GenerationConfig  # untyped
    return settings(
        max_new_tokens=n_new,
        min_new_tokens=n_new,
        do_sample=False,
        num_beams=1,
        use_cache=True,
        eos_token_id=own.eos_token_id,  # so that it is suppressed
        pad_token_id=0 if own.pad_token_id is None else own.pad_token_id,  # one prompt: no padding
    )


class _Clock:
    """A streamer of `generate` that notes when tokens come; first it is handed the prompt."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self._has_prompt = False
        self.start = time.perf_counter()

    def put(self, _: Any) -> None:
        """A token has reached the CPU, or the prompt."""
        if self._has_prompt:
            self.times.append(time.perf_counter())
        self._has_prompt = True

    def end(self) -> None:
        """Nothing more comes."""


def _decoder(tokenizer: Any) -> Callable[[Sequence[int]], bytes]:
    """Ids -> the bytes of their text, without special tokens.

    Subtle: a token may hold part of a character, which `decode` replaces by three other bytes; so
    tokens of a BPE vocabulary yield their own bytes.
    """
    from vocabshift.tokenizer.formats.load import as_tokenizer
    from vocabshift.tokenizer.token_bytes import token_bytes

    try:
        known = token_bytes(as_tokenizer(tokenizer))
    except InvalidTokenizerError:  # Unigram, WordPiece
        return lambda ids: tokenizer.decode(ids, skip_special_tokens=True).encode("utf-8")
    return lambda ids: b"".join(known.get(token_id, b"") for token_id in ids)


def _peak_of_tensors(work: Callable[[], Any]) -> int:
    """The most bytes of new tensors that lived at one time while `work` ran."""
    import weakref

    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    mode: Any = TorchDispatchMode  # untyped

    class Tally(mode):  # type: ignore[misc]
        """Count a storage from the operation that first returns it until it is freed."""

        def __init__(self) -> None:
            super().__init__()
            self.live: dict[int, int] = {}
            self.total = self.peak = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given = {_storage_id(leaf) for leaf in tree_leaves((args, kwargs))}
            found = func(*args, **(kwargs or {}))
            for leaf in tree_leaves(found):
                key = _storage_id(leaf)
                if key is None or key in given or key in self.live:
                    continue
                storage = leaf.untyped_storage()
                self.live[key] = storage.nbytes()
                self.total += storage.nbytes()
                weakref.finalize(storage, self._free, key).atexit = False
            self.peak = max(self.peak, self.total)
            return found

        def _free(self, key: int) -> None:
            self.total -= self.live.pop(key, 0)

    def _storage_id(leaf: Any) -> int | None:
        return int(leaf.untyped_storage()._cdata) if isinstance(leaf, torch.Tensor) else None

    with Tally() as tally:
        work()
    return int(tally.peak)
