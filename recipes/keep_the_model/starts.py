"""What a document begins with, and what bits per byte make of it.

    python recipes/keep_the_model/starts.py runs/keep_the_model/hi \
        --model runs/keep_the_model/model --eval ../shared/data-unpacked/eval \
        --languages hi en code de -o results.jsonl

The same lines under the old model and under an arm that `study.py --keep` left in OUT/models, after
each of `STARTS`. What a line costs after a newline is what both lines cost less the newline's cost.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
from measure import spread
from record import Row, add
from results import KEY, rounded
from texts import scored

import vocabshift as vs
from vocabshift.evaluation.lines.subject import checksum_of
from vocabshift.evaluation.scoring.score import bits_of, bytes_of, score_documents
from vocabshift.models.load import load_causal_model
from vocabshift.results import sha256_of

CHAT, TEXT = "<|im_start|>", "<|endoftext|>"
STARTS = {CHAT: "", TEXT: "", f"{TEXT}, newline": "\n"}
"""By name, the text between the special token and the document."""


def bits_per_byte(model: Any, tokenizer: vs.Tokenizer, texts: Sequence[str], before: str) -> float:
    """Of the texts alone, `before` standing at the beginning of each."""
    found = score_documents(model, tokenizer, [before + text for text in texts])
    bits = bits_of(found).sum() - len(texts) * bits_after_start(model, tokenizer, before)
    return float(bits / (bytes_of(found).sum() - len(texts) * len(before.encode())))


def bits_after_start(model: Any, tokenizer: vs.Tokenizer, text: str) -> float:
    """What a text of one token or none costs after the model's BOS."""
    import torch

    ids = vs.Encoder(tokenizer).encode(text).tolist()
    if not ids:
        return 0.0
    [token] = ids
    with torch.inference_mode():
        logits = model(torch.tensor([[model.config.bos_token_id]])).logits[0, -1]
    return -float(logits.double().log_softmax(0)[token]) / math.log(2)


def rows_of(folder: Path, texts: dict[str, Sequence[str]]) -> Iterator[Row]:
    """One row for each start and language."""
    model, tokenizer = load_causal_model(folder), vs.load_tokenizer(folder)
    ids = {token.content: token.id for token in tokenizer.added_tokens}
    for start, before in STARTS.items():
        model.config.bos_token_id = ids[start.partition(",")[0]]
        for language, own in texts.items():
            yield {
                "language": language,
                "start": start,
                "documents": len(own),
                "value": bits_per_byte(model, tokenizer, own, before),
                "tokenizer_sha256": checksum_of(tokenizer),
                "text_sha256": sha256_of(own),
            }


def main() -> None:
    """Write a row for each model, start and language."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="of study.py")
    parser.add_argument("--model", type=Path, required=True, help="the old one")
    parser.add_argument("--arm", default="superwords-fvt-all-slow-matching-home")
    parser.add_argument("--bytes", type=int, default=1_000_000, help="that the arm has read")
    parser.add_argument("--eval", type=Path, required=True)
    parser.add_argument("--new", nargs="+", default=["hi"])
    parser.add_argument("--languages", nargs="+", required=True)
    parser.add_argument("--documents", type=int, default=80)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    texts = {
        name: spread(own, args.documents)
        for name, own in scored(args.eval, args.languages, args.documents).items()
    }
    arms = {
        ("base", 0): args.model,
        (args.arm, args.bytes): args.out / "models" / f"{args.arm}.{args.bytes}.0",
    }
    found = []
    for (arm, n_bytes), folder in arms.items():
        same = {"what": "start", "new": "+".join(args.new), "on": "some", "arm": arm}
        found += [rounded(same | {"n_bytes": n_bytes} | row) for row in rows_of(folder, texts)]
    add(args.output, found, key=KEY)


if __name__ == "__main__":
    main()
