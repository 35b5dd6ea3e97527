"""What healing a prompt is worth: bits per byte of the text after prompts cut at random spaces.

Each line is cut at a random space: the prompt ends before it. A model prices what follows in three
ways: "as it is": the rest encoded apart, after the prompt's own tokens; "healed": the line's own
tokens from where `models.healing` takes the prompt back, each among those that it allows; "exact":
log P(line) - log P(prompt), the value of `harness --border heal`.

    python benchmarks/healing.py MODEL TEXT --lines 200

prints bits per byte of the next words (`--bytes 1`: of the next word alone) for all prompts, for
those that are healed, and for those where a token of the line spans the end of the prompt.
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path
from typing import Any

import torch

from vocabshift.models.healing import PromptHealer
from vocabshift.models.load import load_causal_model, load_tokenizer
from vocabshift.tokenizer.formats.load import open_tokenizer

GROUPS = ("prompts", "healed", "spanned")


class Prices:
    """Costs in bits of ids after others, by one pass of the model."""

    def __init__(self, model: Any, start: list[int]) -> None:
        self._model, self._start = model, start

    def rows(self, given: list[int], ids: list[int]) -> Any:
        """(len(ids), vocabulary) log probabilities, natural."""
        whole = torch.tensor([[*self._start, *given, *ids]])
        with torch.inference_mode():
            logits = self._model(whole).logits[0].double().log_softmax(-1)
        first = len(self._start) + len(given) - 1
        return logits[first : first + len(ids)]


def taken(rows: Any, ids: list[int]) -> list[float]:
    return [-float(rows[i, token]) / math.log(2) for i, token in enumerate(ids)]


def healed(rows: Any, ids: list[int], healer: PromptHealer, tail: bytes) -> list[float]:
    """Among the allowed tokens while the tail lasts; infinite where a token is not allowed."""
    bits = []
    for i, token in enumerate(ids):
        left = healer.left(tail, ids[:i])
        value = float(rows[i, token])
        if left:
            allowed = healer.allowed(left)
            value -= float(rows[i, allowed].logsumexp(-1))
            if token not in allowed:
                value = -math.inf
        bits.append(-value / math.log(2))
    return bits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=60, help="of the rest that are priced")
    args = parser.parse_args()
    hf = load_tokenizer(args.model)
    tokenizer = open_tokenizer(hf)
    healer = PromptHealer(tokenizer)
    model = load_causal_model(args.model)
    prices = Prices(model, [] if hf.bos_token_id is None else [hf.bos_token_id])
    draw = random.Random(7)
    sums: dict[tuple[str, str], list[float]] = {}
    counts = dict.fromkeys(GROUPS, 0)

    def encode(text: str) -> list[int]:
        return [int(i) for i in tokenizer.encode_batch([text])[0]]

    for line in args.text.read_text(encoding="utf-8").splitlines()[: args.lines]:
        places = [i for i, letter in enumerate(line) if letter == " " and 20 <= i < len(line) - 20]
        if not places:
            continue
        cut = draw.choice(places)
        end = line.find(" ", cut + args.bytes)
        prompt, rest = line[:cut], line[cut : end if end > 0 else len(line)]
        given, whole, apart = encode(prompt), encode(prompt + rest), encode(rest)
        n_back, tail = healer.tail(given)
        kept = given[: len(given) - n_back]
        if whole[: len(kept)] != kept:  # the tokens before it change too: no healer sees that
            kept, tail = None, b""
        found = {"as it is": taken(prices.rows(given, apart), apart)}
        own = whole if kept is None else whole[len(kept) :]
        if kept is None:
            found["healed"] = found["as it is"]
        else:
            found["healed"] = healed(prices.rows(kept, own), own, healer, tail)
        shared = next(
            (i for i, (a, b) in enumerate(zip(given, whole, strict=False)) if a != b), len(given)
        )
        exact = sum(taken(prices.rows(given[:shared], whole[shared:]), whole[shared:]))
        exact -= sum(taken(prices.rows(given[:shared], given[shared:]), given[shared:]))
        is_in = (True, bool(tail), whole[: len(given)] != given)
        groups = [name for name, belongs in zip(GROUPS, is_in, strict=True) if belongs]
        for group in groups:
            counts[group] += 1
        size = len(rest.encode())
        totals = {way: sum(bits) for way, bits in found.items()} | {"exact": exact}
        for way, bits in totals.items():
            for group in groups:
                place = sums.setdefault((way, group), [0.0, 0.0])
                place[0] += bits
                place[1] += size
    for group, n_prompts in counts.items():
        for way in ("as it is", "healed", "exact"):
            if n_prompts:
                bits, size = sums[way, group]
                print(f"{n_prompts:5} {group:8} {way:9} {bits / size:.4f} of {size:,.0f} bytes")


if __name__ == "__main__":
    main()
