"""Measure trimmed models beside the model that they come from, into OUT/results.jsonl.

    python recipes/trim/measure.py MODEL OUT --sizes 32768 16384 --text en=FILE… --corpus en=FILE

Rows (`what`): "step", one trimmed model; "bits", its bits per byte of one text, for English also
under other orders of removal (`order`), two of them naive; "equal", whether texts whose tokens do
not change get the same hidden states; "task", its accuracy on a task of `vocabshift harness`;
"until", where `prune --until` stops; "made", SHA-256 of all texts and of all tokenizers.
"""

from __future__ import annotations

import argparse
import copy
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import vocabshift as vs
from vocabshift.evaluation.harness.known_tasks import requests_of
from vocabshift.models.load import load_causal_model
from vocabshift.pruning.counts import SourceCounts
from vocabshift.pruning.orders import ORDERS
from vocabshift.tokenizer.id_map import find
from vocabshift.tokenizer.splits import unreachable_tokens
from vocabshift.workflows.prune import prune_to_folder

sys.path.append(str(Path(__file__).parents[1] / "data"))
import naive
import record
from rows import sources_of

KEY = ("what", "variant", "size", "text", "order", "by", "task")
VARIANTS = ("en", "en+code", "en+de")
DOCUMENTS = {"en": 200, "de": 100, "code": 40}
LINES_OF_CODE = 12  # a document
STEPS = "leaf-frequency"  # the order of the steps
MOST_COMPARED = 10  # texts whose hidden states are compared
QUESTIONS = 100  # of a task
SHOTS = 0  # examples before a question of a task: a model of this size hardly uses them
UNTIL = {"bits-per-byte": 0.005, "bytes-per-token": 0.01}


def held_out(specs: Iterable[str], share: float) -> dict[str, list[str]]:
    """The first documents of each text; plain code is cut into documents of several lines."""
    found = {}
    for label, path in (spec.split("=", 1) for spec in specs):
        texts = [text for _, text in vs.Corpus.from_specs([f"{label}={path}"]).texts()]
        if label == "code" and path.endswith(".txt"):
            at_once = range(0, len(texts), LINES_OF_CODE)
            texts = ["\n".join(texts[at : at + LINES_OF_CODE]) for at in at_once]
        n = max(2, round(DOCUMENTS[label] * share))
        found[label] = [text for text in texts if text.strip()][:n]
    return found


def bits(model: Any, tokenizer: Any, texts: dict[str, list[str]], **facts: Any) -> list[record.Row]:
    """One row a text."""
    rows = vs.score(model, tokenizer, texts)
    return [
        {
            "what": "bits",
            **facts,
            "text": row.language,
            "value": round(row.value, 5),
            "low": None if row.ci_low is None else round(row.ci_low, 5),
            "high": None if row.ci_high is None else round(row.ci_high, 5),
            "documents": row.n,
        }
        for row in rows
        if row.metric == "bits_per_byte"
    ]


def unchanged(
    base: Any, tokenizer: Any, id_map: Any, texts: list[str]
) -> list[tuple[list[int], list[int]]]:
    """(old ids, new ids) of the texts whose tokens do not change."""
    pairs = []
    for text in texts:
        old, new = (vs.Encoder(each).encode(text).tolist() for each in (base, tokenizer))
        if new == id_map.old_to_new[old].tolist():
            pairs.append((old, new))
    return pairs


def compare(
    base: Any, model: Any, id_map: Any, pairs: list[tuple[list[int], list[int]]]
) -> dict[str, Any]:
    """Hidden states and kept logits of texts whose tokens do not change."""
    kept = np.flatnonzero(id_map.old_to_new >= 0)
    places = torch.from_numpy(id_map.old_to_new[kept])
    same, furthest = 0, 0.0
    bos = [base.config.bos_token_id], [model.config.bos_token_id]
    for old, new in pairs:
        with torch.inference_mode():
            a, b = (
                each(torch.tensor([start + ids]), output_hidden_states=True)
                for each, start, ids in ((base, bos[0], old), (model, bos[1], new))
            )
        same += torch.equal(a.hidden_states[-1], b.hidden_states[-1])
        difference = (a.logits[0][:, torch.from_numpy(kept)] - b.logits[0][:, places]).abs().max()
        furthest = max(furthest, float(difference))
    return {"texts": len(pairs), "equal_states": same, "logit_difference": furthest}


def speed_and_memory(folder: Path, texts: list[str]) -> dict[str, Any]:
    """In a process of its own: peak memory, and the speed of reading and of writing text."""
    command = [sys.executable, __file__, "--one", str(folder)]
    done = subprocess.run(
        command, input=json.dumps(texts), text=True, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def peak_memory() -> int:
    """Bytes of this process at its largest; `getrusage` would count the parent's before exec."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(
        int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")
    )


def one(folder: str) -> None:
    """What `speed_and_memory` runs: a model alone in a process."""
    texts = json.load(sys.stdin)
    model, tokenizer = load_causal_model(folder), vs.load_tokenizer(folder)
    ids = [vs.Encoder(tokenizer).encode(text) for text in texts]
    n_tokens, n_bytes = sum(map(len, ids)), sum(len(text.encode()) for text in texts)
    bos = model.config.bos_token_id
    inputs = [torch.tensor([[bos, *own.tolist()]]) for own in ids]
    with torch.inference_mode():
        model(inputs[0])
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            for own in inputs:
                model(own)
            seconds.append(time.perf_counter() - start)
        new = 48
        start = time.perf_counter()
        for own in inputs[:2]:
            model.generate(
                own[:, :16], min_new_tokens=new, max_new_tokens=new, do_sample=False, pad_token_id=0
            )
        writing = time.perf_counter() - start
    print(
        json.dumps(
            {
                "reads_tokens_per_second": round(n_tokens / min(seconds), 1),
                "reads_bytes_per_second": round(n_bytes / min(seconds), 1),
                "writes_tokens_per_second": round(2 * new / writing, 2),
                "writes_bytes_per_second": round(2 * new / writing * n_bytes / n_tokens, 2),
                "peak_memory": peak_memory(),
            }
        )
    )


class Measurements:
    """The base model, the texts and the file of results; what the file has is not done again."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.model, self.out, self.sizes = args.model, args.out, args.sizes
        self.file = args.out / "results.jsonl"
        self.texts = held_out(args.text, 0.02 if args.smoke else 1.0)
        self.corpus = vs.Corpus.from_specs(args.corpus)
        self.timed = self.texts["en"][: 2 if args.smoke else 20]
        self.tokenizer, self.base = vs.load_tokenizer(args.model), load_causal_model(args.model)
        self.unreachable = set(unreachable_tokens(self.tokenizer))
        self.done = {record.key_of(row, KEY) for row in record.read(self.file)}

    def lacks(self, **facts: Any) -> bool:
        """Whether a row is still to be measured."""
        return record.key_of(facts, KEY) not in self.done

    def put(self, *rows: record.Row) -> None:
        """Keep rows, and print them."""
        record.add(self.file, rows, key=KEY)
        print(*(json.dumps(row) for row in rows), sep="\n", flush=True)

    def step(self, folder: Path, **facts: Any) -> None:
        """Everything about one model."""
        tokenizer, model = vs.load_tokenizer(folder), load_causal_model(folder)
        self.put(*bits(model, tokenizer, self.texts, **facts))
        id_map = find(folder.with_name(f"tokenizer-{folder.name}"))  # what `prune` wrote
        for label, documents in self.texts.items() if id_map is not None else ():
            pairs = unchanged(self.tokenizer, tokenizer, id_map, documents)
            row = {"what": "equal", **facts, "text": label, "of": len(documents)}
            row |= {"unchanged": len(pairs)} | compare(
                self.base, model, id_map, pairs[:MOST_COMPARED]
            )
            self.put(row)
        encoder = vs.Encoder(tokenizer)
        n_tokens = sum(len(encoder.encode(text)) for text in self.texts["en"])
        n_bytes = sum(len(text.encode()) for text in self.texts["en"])
        row = {
            "what": "step",
            **facts,
            "parameters": sum(own.numel() for own in model.parameters()),
            "bytes_on_disk": sum(path.stat().st_size for path in folder.glob("*.safetensors")),
            "bytes_per_token": round(n_bytes / n_tokens, 4),
        }
        del model
        self.put(row | speed_and_memory(folder, self.timed))

    def task(self, folder: Path, name: str, data: Path, **facts: Any) -> None:
        """Accuracy on the first questions of a task, without training."""
        [request] = requests_of([name], SHOTS)
        report = vs.run_harness([folder], [request], limit=QUESTIONS, data=data, batch_size=8)
        if report.failures:
            raise ValueError(f"{name}: {report.failures[0].reason}")
        [row] = [row for row in report.results if row.metric.endswith("/acc")]
        self.put(
            {
                "what": "task",
                **facts,
                "task": name,
                "shots": SHOTS,
                "value": round(row.value, 4),
                "low": None if row.ci_low is None else round(row.ci_low, 4),
                "high": None if row.ci_high is None else round(row.ci_high, 4),
                "questions": row.n,
            }
        )

    def order(self, name: str, size: int) -> None:
        """English under another order of removal."""
        if name in naive.ORDERS:
            n_tokens = self.tokenizer.row_count - size
            removed, _ = naive.removed(self.tokenizer, name, n_tokens, SourceCounts(self.corpus))
            pruned = self.tokenizer.without(removed)
        else:
            pruned = vs.prune(self.tokenizer, self.corpus, vocab_size=size, order=name)
        model, tokenizer = vs.transfer(copy.deepcopy(self.base), old=self.tokenizer, new=pruned)
        facts = {"variant": "en", "size": size, "order": name}
        facts["unreachable"] = len(set(unreachable_tokens(pruned)) - self.unreachable)
        self.put(*bits(model, tokenizer, {"en": self.texts["en"]}, **facts))

    def until(self, by: str, limit: float) -> None:
        """Where `prune --until` stops on the English text."""
        start = time.perf_counter()
        held_out_text = vs.Corpus.from_texts({"en": self.texts["en"]})
        found = prune_to_folder(
            str(self.model), self.corpus, None, until=limit, by=by, held_out=held_out_text
        )
        self.put(
            {
                "what": "until",
                "variant": "en",
                "by": by,
                "until": limit,
                "vocab_size": found["vocab_size"],
                "seconds": round(time.perf_counter() - start, 1),
                "steps": [
                    {"vocab_size": step["vocab_size"], "change": round(step["change"], 5)}
                    for step in found["steps"]
                ],
            }
        )


def main() -> None:
    """Measure what the file of results lacks."""
    if sys.argv[1] == "--one":
        one(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--text", nargs="+", required=True, help="en=FILE de=FILE code=FILE")
    parser.add_argument("--corpus", nargs="+", required=True, help="for the orders: en=FILE")
    parser.add_argument("--tasks", nargs="*", default=[], help="as `vocabshift harness` takes them")
    parser.add_argument("--data", type=Path, help="the folder with the tasks' files")
    parser.add_argument("--smoke", action="store_true", help="hardly any text")
    args = parser.parse_args()
    measured = Measurements(args)
    folders = {("all", measured.tokenizer.vocab_size): args.model}
    for variant, size in product(VARIANTS, args.sizes):
        folders[variant, size] = args.out / f"{variant}-{size}"
    for (variant, size), folder in folders.items():
        if measured.lacks(what="step", variant=variant, size=size):
            measured.step(folder, variant=variant, size=size)
        for task in args.tasks:
            if measured.lacks(what="task", variant=variant, size=size, task=task):
                measured.task(folder, task, args.data, variant=variant, size=size)
    orders = [name for name in (*ORDERS, *naive.ORDERS) if name != STEPS]
    for name, size in product(orders, args.sizes):
        if measured.lacks(what="bits", text="en", variant="en", size=size, order=name):
            measured.order(name, size)
    for by, limit in UNTIL.items():
        if measured.lacks(what="until", variant="en", by=by):
            measured.until(by, limit)
    tokenizers = {folder.name: vs.load_tokenizer(folder) for folder in folders.values()}
    measured.put({"what": "made", **sources_of(measured.texts, tokenizers)})


if __name__ == "__main__":
    main()
