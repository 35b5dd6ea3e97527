"""What healing a prompt is worth: bits per byte of the text after prompts cut at random spaces.

Each line is cut at a random space: the prompt ends before it. What follows is scored in three
ways: "as it is": the rest encoded apart, after the prompt's own tokens; "healed": the line's own
tokens from where `models.healing` takes the prompt back, each among those that it allows; "exact":
log P(line) - log P(prompt), the value of `harness --border heal`.

    python benchmarks/healing.py MODEL TEXT --lines 200

prints bits per byte of the next words (`--bytes 1`: of the next word alone) for all prompts, for
those that are healed, and for those where a token of the line spans the end of the prompt.
`--questions` asks for the next three words of a line instead, with three words of each of three
other lines as wrong answers, and prints the accuracy for each value of `harness --border`.
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vocabshift.models.healing import PromptHealer
from vocabshift.models.load import load_causal_model, load_tokenizer
from vocabshift.tokenizer.formats.load import open_tokenizer

GROUPS = ("prompts", "healed", "spanned")


class Costs:
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


def questions_of(lines: list[str]) -> list[tuple[str, list[str], int]]:
    """(context, four answers, the right one): the next three words, or those of other lines."""
    draw = random.Random(3)
    parts = []
    for line in lines:
        words = line.split(" ")
        for _ in range(2 if len(words) >= 14 else 0):
            cut = draw.randrange(6, len(words) - 3)
            parts.append((" ".join(words[max(0, cut - 12) : cut]), " ".join(words[cut : cut + 3])))
    questions = []
    for number, (context, right) in enumerate(parts):
        others = draw.sample([i for i in range(len(parts)) if i != number], 3)
        answers = [parts[i][1] for i in others]
        place = draw.randrange(4)
        questions.append((context, [*answers[:place], right, *answers[place:]], place))
    return questions


def choices(model: str, lines: list[str]) -> tuple[list[bool], dict[str, list[bool]]]:
    """Of each question, whether an answer is touched; by `--border`, whether the right one is
    chosen."""
    from lm_eval.api.instance import Instance

    from vocabshift.evaluation.harness.border import is_touched
    from vocabshift.evaluation.harness.known_tasks import BORDERS
    from vocabshift.evaluation.harness.run import _language_model

    questions = questions_of(lines)
    lm = _language_model(model, 16, "float32", "auto", BORDERS[0], trust_remote_code=False)
    pairs = [(context, f" {text}") for context, answers, _ in questions for text in answers]
    touched = [
        is_touched(lm.tok_encode(context), lm.tok_encode(context + a)) for context, a in pairs
    ]
    requests = [Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)]
    chosen = {}
    for border in BORDERS:
        lm.border = border
        values = [value for value, _ in lm.loglikelihood(requests, disable_tqdm=True)]
        groups = [values[i : i + 4] for i in range(0, len(values), 4)]
        chosen[border] = [
            own.index(max(own)) == right
            for own, (_, _, right) in zip(groups, questions, strict=True)
        ]
    return [any(touched[i : i + 4]) for i in range(0, len(pairs), 4)], chosen


def ask(model: str, lines: list[str]) -> None:
    """Print accuracy by `--border`, of all questions and of those with a touched answer."""
    touched, chosen = choices(model, lines)
    print(f"{len(touched)} questions, {sum(touched)} of them with a touched answer")
    for border, is_right in chosen.items():
        hit = [own for own, is_hit in zip(is_right, touched, strict=True) if is_hit]
        print(f"{border:8} {np.mean(is_right):.3f} of all, {np.mean(hit):.3f} of the touched")
        if border != "heal":
            low, high = interval_of_difference(chosen["heal"], is_right)
            print(f"{'':8} heal - {border}: 95 % interval {low:+.3f} to {high:+.3f}")


def interval_of_difference(a: list[bool], b: list[bool]) -> tuple[float, float]:
    """The 95 % interval of mean(a) - mean(b), by a paired bootstrap over questions."""
    difference = np.array(a, float) - np.array(b, float)
    draws = np.random.default_rng(0).choice(difference, (10_000, len(difference)))
    low, high = np.quantile(draws.mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--bytes", type=int, default=60, help="of the rest that are priced")
    parser.add_argument("--questions", action="store_true", help="accuracy by --border instead")
    args = parser.parse_args()
    lines = args.text.read_text(encoding="utf-8").splitlines()
    if args.questions:
        ask(args.model, lines)
        return
    hf = load_tokenizer(args.model)
    tokenizer = open_tokenizer(hf)
    healer = PromptHealer(tokenizer)
    model = load_causal_model(args.model)
    costs = Costs(model, [] if hf.bos_token_id is None else [hf.bos_token_id])
    draw = random.Random(7)
    sums: dict[tuple[str, str], list[float]] = {}
    counts = dict.fromkeys(GROUPS, 0)

    def encode(text: str) -> list[int]:
        return [int(i) for i in tokenizer.encode_batch([text])[0]]

    for line in lines[: args.lines]:
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
        found = {"as it is": taken(costs.rows(given, apart), apart)}
        own = whole if kept is None else whole[len(kept) :]
        if kept is None:
            found["healed"] = found["as it is"]
        else:
            found["healed"] = healed(costs.rows(kept, own), own, healer, tail)
        shared = next(
            (i for i, (a, b) in enumerate(zip(given, whole, strict=False)) if a != b), len(given)
        )
        exact = sum(taken(costs.rows(given[:shared], whole[shared:]), whole[shared:]))
        exact -= sum(taken(costs.rows(given[:shared], given[shared:]), given[shared:]))
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
