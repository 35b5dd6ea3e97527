"""Verification by prompting: can the model repeat, or spell, a token that its prompt contains?

Owns the three prompts of Land and Bartolo's program (a 20-shot copy, an explanation, fifty
repetitions). They are built with a placeholder token, whose id is then replaced, so that tokens
that no text yields can be tried too. The model continues greedily for three steps, and the token's
highest probability counts. Greedy steps are deterministic, so more samples would add nothing. There
are fewer shots if the model has too few positions.

A fourth prompt, ours, asks for the spelling after eight examples. The letters are given one by one,
and those that the model ranks first count. Spelling needs what the embedding knows of a token's
letters, so it is reported and is no part of the verdict: small models spell ordinary words badly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vocabshift.errors import VocabMismatchError
from vocabshift.evaluation.glitch.classes import verdict_of
from vocabshift.models.load import lack_of_memory, positions_of
from vocabshift.progress import Progress
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.token_bytes import texts_of_tokens
from vocabshift.tokenizer.tokenizer import Tokenizer

STEPS = 3
_BATCH_TOKENS = 4096
_MOST_PLACEHOLDERS = 3000
_HOLE = "{token}"
_SPELLING_TOKENS = 1024  # in a batch: here every position has logits
_MOST_LETTERS = 24
_SPELLED = ("house", "paper", "window", "yellow", "doctor", "simple", "garden", "market")


@dataclass(frozen=True, slots=True)
class _Prompt:
    name: str
    shots: int
    preamble: str
    question: str
    answer: str

    def text(self, shots: int, token: str) -> str:
        """The prompt up to where the token is to come."""
        lead = self.answer[: self.answer.index(_HOLE)]
        whole = self.preamble + (self.question + self.answer) * shots + self.question + lead
        return whole.replace(_HOLE, token)


_PROMPTS = (
    _Prompt(
        "copy",
        20,
        "This device repeats its input exactly, as shown in these 100 identical trials.",
        "\nInput: «{token}»\nOutput:",
        " «{token}»",
    ),
    _Prompt(
        "explain",
        0,
        "This helpful assistant explains what a phrase means, replying with identical responses to "
        "identical questions for reliability.",
        "\nUser: What does 'edslfkj' mean?\nAssistant: 'edslfkj' has no specific meaning I am "
        "aware of.\nUser: what does '{token}' mean?\nAssistant:",
        " '{token}'",
    ),
    _Prompt(
        "repeat",
        50,
        "Below is the output, as you can see it's just giving the same phrase repeated "
        "indefinitely:\n",
        "{token}",
        "{token}",
    ),
)
_SPELL = _Prompt(
    "spell",
    0,
    "This device spells its input.\n"
    + "".join(f"«{word}»: {' '.join(word)}\n" for word in _SPELLED)
    + f"«{_HOLE}»:",
    "",
    _HOLE,
)


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of one token."""

    token_id: int
    max_probability: float
    verdict: str  # one of classes.VERDICTS
    spelled: float | None  # share of its letters; None for half characters and white space


@dataclass(frozen=True, slots=True)
class Verification:
    """What came of all of them."""

    tokens: tuple[Verified, ...]
    placeholder: int
    shots: dict[str, int]  # by prompt; a prompt that does not fit the model is not there


@dataclass(frozen=True, slots=True)
class _Built:
    """A prompt as ids; `holes`: where the token's id goes."""

    name: str
    shots: int
    ids: npt.NDArray[np.int64]
    holes: npt.NDArray[np.bool_]


def verify(
    model: Any,
    tokenizer: Tokenizer,
    token_ids: Sequence[int],
    *,
    progress: Progress | None = None,
) -> Verification:
    """Try some tokens on a causal language model of transformers, in its own dtype and place.

    ValueError where no prompt fits the model's positions, or where the tokenizer gives no token
    that prompts can be built with; VocabMismatchError for more ids than rows.
    """
    rows = model.get_input_embeddings().weight.shape[0]
    if tokenizer.row_count > rows:
        raise VocabMismatchError(
            f"the tokenizer has ids up to {tokenizer.row_count - 1} and the model {rows} rows"
        )
    encoder = Encoder(tokenizer)
    positions = positions_of(model)
    room = (positions or 1 << 20) - STEPS
    placeholder, prompts = _build(encoder, room)
    highest = np.zeros(len(token_ids))
    is_encoded = np.zeros(len(token_ids), dtype=np.bool_)
    was_training = model.training
    model.eval()
    try:
        done = 0
        for prompt in prompts:
            n = max(1, _BATCH_TOKENS // len(prompt.ids))
            for start in range(0, len(token_ids), n):
                chosen = np.array(token_ids[start : start + n], dtype=np.int64)
                batch = np.where(prompt.holes, chosen[:, None], prompt.ids)
                found = _probabilities(model, batch, chosen)
                highest[start : start + n] = np.maximum(highest[start : start + n], found)
                texts = [encoder.decode(row) for row in batch]
                for place, text in enumerate(texts, start):
                    is_encoded[place] |= token_ids[place] in encoder.encode(text)
                done += len(chosen)
                if progress is not None:
                    progress("prompts", done, len(prompts) * len(token_ids))
        texts_of = texts_of_tokens(tokenizer)
        words = [_letters(texts_of.get(token_id, ""), encoder) for token_id in token_ids]
        left = room - max(map(len, words), default=0)
        asked = _fitting(encoder, _SPELL, placeholder, texts_of[placeholder], left)
        spelled: list[float | None] = [None] * len(token_ids)
        if asked is not None and len(asked.ids):
            spelled = _spelled(model, asked, token_ids, words)
    finally:
        model.train(was_training)
    return Verification(
        tuple(
            Verified(int(i), float(p), verdict_of(float(p), is_encoded=bool(ok)), share)
            for i, p, ok, share in zip(token_ids, highest, is_encoded, spelled, strict=True)
        ),
        placeholder,
        {prompt.name: prompt.shots for prompt in prompts},
    )


def _letters(text: str, encoder: Encoder) -> list[int]:
    """What follows the prompt where the text is spelled; nothing where there are no letters."""
    letters = "".join(text.split())[:_MOST_LETTERS]
    return encoder.encode("".join(f" {letter}" for letter in letters)).tolist() if letters else []


def _spelled(
    model: Any, prompt: _Built, token_ids: Sequence[int], words: Sequence[list[int]]
) -> list[float | None]:
    """Of each word's ids the share that the model ranks first, given those before it."""
    import torch

    device = model.get_input_embeddings().weight.device
    found: list[float | None] = [None] * len(words)
    order = sorted((i for i, word in enumerate(words) if word), key=lambda i: len(words[i]))
    size = len(prompt.ids)
    n = max(1, _SPELLING_TOKENS // (size + max(map(len, words), default=0)))
    for start in range(0, len(order), n):
        places = order[start : start + n]
        longest = len(words[places[-1]])
        batch = np.zeros((len(places), size + longest), dtype=np.int64)
        for row, place in zip(batch, places, strict=True):  # a short one is filled at its end
            row[:size] = np.where(prompt.holes, token_ids[place], prompt.ids)
            row[size : size + len(words[place])] = words[place]
        with torch.inference_mode():
            ids = torch.from_numpy(batch).to(device)
            top = model(ids).logits[:, size - 1 : -1].argmax(-1).cpu().numpy()
        for best, place in zip(top, places, strict=True):
            word = np.array(words[place])
            found[place] = float((best[: len(word)] == word).mean())
    return found


def _build(encoder: Encoder, room: int) -> tuple[int, list[_Built]]:
    """A placeholder, and the prompts that fit into `room` ids with it."""
    texts = texts_of_tokens(encoder.tokenizer)
    added = {token.id for token in encoder.tokenizer.added_tokens}
    candidates = sorted(
        (i for i, text in texts.items() if text.strip().isalpha() and i not in added),
        key=lambda i: (-len(set(texts[i])), -len(texts[i]), i),
    )
    seen_one = False
    for placeholder in candidates[:_MOST_PLACEHOLDERS]:
        built: list[_Built] = []
        for prompt in _PROMPTS:
            found = _fitting(encoder, prompt, placeholder, texts[placeholder], room)
            if found is None:
                break
            seen_one = True
            built += [found] if len(found.ids) else []
        else:
            if built:
                return placeholder, built
    if seen_one:
        raise ValueError(
            f"no prompt of the verification fits the model's {room + STEPS} positions; leave "
            "--verify out"
        )
    raise ValueError(
        f"{encoder.tokenizer.name} has no word that stays one token in the prompts of the "
        "verification; leave --verify out"
    )


def _fitting(
    encoder: Encoder, prompt: _Prompt, placeholder: int, text: str, room: int
) -> _Built | None:
    """The prompt with as many shots as fit (no ids, where none do); None for a placeholder that
    does not stay one token."""
    shots = prompt.shots
    while True:
        ids = encoder.encode(prompt.text(shots, text), add_special_tokens=True).astype(np.int64)
        holes = ids == placeholder
        expected = prompt.text(shots, _HOLE).count(_HOLE)
        if int(holes.sum()) != expected:
            return None
        if len(ids) <= room:
            return _Built(prompt.name, shots, ids, holes)
        if shots <= 1:
            return _Built(prompt.name, 0, ids[:0], holes[:0])
        shots //= 2


def _probabilities(
    model: Any, batch: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """(n,) the highest probability of wanted[i] over the greedy steps after batch[i]."""
    import torch
    from transformers import GenerationConfig

    settings = model.config.get_text_config()
    ends = settings.eos_token_id
    ends = [ends] if isinstance(ends, int) else list(ends or [])
    device = model.get_input_embeddings().weight.device
    ids = torch.from_numpy(batch).to(device)
    make: Any = GenerationConfig  # untyped
    config = make(
        max_new_tokens=STEPS,
        do_sample=False,
        eos_token_id=ends or None,
        pad_token_id=ends[0] if ends else 0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    advice = f"no memory for a batch of {ids.numel()} tokens: choose a smaller --dtype"
    with lack_of_memory(advice), torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
    chosen = torch.from_numpy(wanted).to(device)[:, None]
    highest = torch.zeros(len(wanted), dtype=torch.float64, device=device)
    goes_on = torch.ones(len(wanted), dtype=torch.bool, device=device)
    for step, logits in enumerate(out.logits):
        found = logits.double().softmax(-1).gather(1, chosen)[:, 0]
        highest = torch.where(goes_on, torch.maximum(highest, found), highest)
        generated = out.sequences[:, batch.shape[1] + step]
        for end in ends:  # what follows an end is padding
            goes_on &= generated != end
    return np.asarray(highest.cpu().numpy())
