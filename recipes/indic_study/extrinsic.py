"""A small encoder and a small decoder, from scratch, on the same text with several vocabularies.

    python recipes/indic_study/extrinsic.py joint cluster --corpus hi=hi.txt ta=ta.txt \
        --language-bytes 250KB --task hi=sib200/hi ta=sib200/ta --parallel hi=hi.txt ta=ta.txt \
        --seeds 3 -o runs/extrinsic

Of one seed, all models read the same documents in the same order, so that nothing but the
tokenizer differs. The tokenizers may be of any kind. The decoder is evaluated by the bits per byte
of the task's test sentences, which it never trains on; the encoder by retrieval of parallel
sentences (with the first seed also before training), then by topics: mean of the last hidden
states, one linear layer, all weights trained on train sentences of all languages together. A masked
model has no bits per byte, for it gives no probability to a text. The encoder is trained by the
study's settings where these are not of its size. One thread; a run that OUT holds stays.
OUT/sources.json has the SHA-256 of all texts and of the tokenizers.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from vocabshift.cli.inputs import add_choices, corpus_of
from vocabshift.cli.options import Parser, add_many, positive
from vocabshift.cpt.loop import LoopConfig, Phase, pretrain
from vocabshift.demo.walk import one_thread
from vocabshift.evaluation.scoring.score import score_documents
from vocabshift.tokenizer.formats.load import open_tokenizer

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "data")]
from retrieval import retrieved
from rows import by_label, sources_of

END, MASK = "<|end|>", "[MASK]"
KINDS = ("decoder", "encoder")
LEARNING_RATE = 1e-3  # of both trainings
MASKED: dict[str, Any] = {
    "objective": "masked",
    "max_masks": 20,
    "duplication": 2,
    "schedule": "polynomial",
    "final_rate": 0.0,
    "weight_decay": 0.01,
    "betas": (0.9, 0.999),
}
"""The study's section 4.2 and Table 11. Not its size: 512 positions, 200,000 steps of 32, 5e-5."""
FINE_TUNED_ROWS = 32  # sentences a step


@dataclass(frozen=True)
class Sentence:
    """One sentence of a classification task."""

    language: str
    number: str  # the same in every language
    topic: str
    text: str


def sentences(folder: Path, language: str, split: str) -> list[Sentence]:
    """Those of a SIB-200 folder."""
    with (folder / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Sentence(language, row["index_id"], row["category"], row["text"]) for row in rows]


def id_of(tokenizer: Any, text: str) -> int:
    """The id of a special token."""
    found: int = next(token.id for token in tokenizer.added_tokens if token.content == text)
    return found


def new_model(kind: str, tokenizer: Any, args: Any, seed: int) -> Any:
    """A Llama or a BERT with random weights; the head is the matrix of the embeddings."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

    end = id_of(tokenizer, END)
    shape = {
        "vocab_size": tokenizer.row_count,
        "hidden_size": args.hidden,
        "num_hidden_layers": args.layers,
        "num_attention_heads": args.hidden // 32,
        "max_position_embeddings": args.context,
        "tie_word_embeddings": True,
        "pad_token_id": None,
        "bos_token_id": end,
        "eos_token_id": end,
    }
    torch.manual_seed(seed)
    if kind == "decoder":
        config = LlamaConfig(**shape, intermediate_size=8 * args.hidden // 3)
        return LlamaForCausalLM(config)
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # one round of text
    return BertForMaskedLM(BertConfig(**shape, **dropout, intermediate_size=4 * args.hidden))


def run(folder: str, kind: str, seed: int, texts: list[str], args: Any) -> dict[str, Any]:
    """Train and evaluate one model; what is known of every test sentence."""
    tokenizer = open_tokenizer(folder)
    model = new_model(kind, tokenizer, args, seed)
    end = id_of(tokenizer, END)
    parallel = {
        language: rows_of(file.read_text("utf-8").splitlines(), tokenizer, end, args.context)
        for language, file in (args.pairs if kind == "encoder" else ())
    }
    begun = time.process_time()
    untrained = {} if seed else _retrieved(model, parallel, args)
    start = time.process_time()
    config = LoopConfig(
        sequence_length=args.context, seed=seed, **(MASKED if kind == "encoder" else {})
    )
    n_bytes = config.duplication * sum(len(text.encode()) for text in texts)
    phases = [Phase(n_bytes=n_bytes, learning_rate=LEARNING_RATE)]
    steps = pretrain(model, tokenizer, texts, phases=phases, config=config)
    trained = time.process_time()
    found = _retrieved(model, parallel, args)
    searched = time.process_time()
    test = [s for each in args.tasks for s in sentences(each[1], each[0], "test")]
    nats: list[float | None] = [None] * len(test)
    if kind == "decoder":
        by_language: dict[str, list[str]] = {}
        for s in test:
            by_language.setdefault(s.language, []).append(s.text)
        nats = [document.nats for document in score_documents(model, tokenizer, by_language)]
    scored = time.process_time()
    correct: list[bool | None] = [None] * len(test)
    if kind == "encoder":
        correct = classified(model, tokenizer, test, args, seed)
    return {
        "vocabulary": Path(folder).name,
        "kind": kind,
        "seed": seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "tokens": steps[-1].n_tokens,
        "bytes": steps[-1].n_bytes,
        "seconds": {
            "retrieve": searched - trained + start - begun,
            "pretrain": trained - start,
            "score": scored - searched,
            "classify": time.process_time() - scored,
        },
        "sentences": [
            [s.language, s.number, len(s.text.encode()), price, right]
            for s, price, right in zip(test, nats, correct, strict=True)
        ],
        "retrieved": found,
        "retrieved untrained": untrained,
    }


def _retrieved(model: Any, parallel: Any, args: Any) -> dict[str, list[bool]]:
    return retrieved(partial(pooled, model.eval()), parallel, args.reference) if parallel else {}


def classified(
    model: Any, tokenizer: Any, test: Sequence[Sentence], args: Any, seed: int
) -> list[bool | None]:
    """Train the model on the topics of the train sentences; whether those of `test` are right."""
    import torch

    n = args.task_sentences
    train = [s for each in args.tasks for s in sentences(each[1], each[0], "train")[:n]]
    topics = sorted({s.topic for s in train})
    end = id_of(tokenizer, END)
    torch.manual_seed(seed)
    head = torch.nn.Linear(args.hidden, len(topics))
    weights = [*model.base_model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE)
    generator = np.random.default_rng(seed)
    rows = rows_of([s.text for s in train], tokenizer, end, args.context)
    n_steps = args.epochs * -(-len(rows) // FINE_TUNED_ROWS)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, n_steps)
    model.train()
    for _ in range(args.epochs):
        for batch in batches([len(row) for row in rows], generator):
            goal = torch.tensor([topics.index(train[i].topic) for i in batch])
            found = head(pooled(model, [rows[i] for i in batch]))
            torch.nn.functional.cross_entropy(found, goal).backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
    model.eval()
    rows = rows_of([s.text for s in test], tokenizer, end, args.context)
    right: list[bool | None] = [False] * len(test)
    with torch.inference_mode():
        for batch in batches([len(row) for row in rows], generator):
            found = head(pooled(model, [rows[i] for i in batch])).argmax(dim=1)
            for i, topic in zip(batch, found.tolist(), strict=True):
                right[i] = topics[topic] == test[i].topic
    return right


def rows_of(texts: Sequence[str], tokenizer: Any, end: int, context: int) -> list[list[int]]:
    """Ids, after the token that begins documents in training; cut where the model ends."""
    ids, offsets = tokenizer.encode_batch(texts)
    return [[end, *ids[begin:stop].tolist()][:context] for begin, stop in pairwise(offsets)]


def batches(lengths: Sequence[int], generator: np.random.Generator) -> Iterator[list[int]]:
    """Places in random order, those of like length together."""
    order = np.lexsort((generator.random(len(lengths)), lengths))
    starts = np.arange(0, len(order), FINE_TUNED_ROWS)
    for start in generator.permutation(starts):
        yield order[start : start + FINE_TUNED_ROWS].tolist()


def pooled(model: Any, rows: Sequence[Sequence[int]]) -> Any:
    """(n, hidden): the mean of the last hidden states of each row."""
    import torch

    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
    return (hidden * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def pair(text: str) -> tuple[str, Path]:
    """LANG=FOLDER or LANG=FILE."""
    label, _, folder = text.partition("=")
    return label, Path(folder)


def main() -> None:
    """All runs that OUT does not hold."""
    parser = Parser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizers", metavar="FOLDER", nargs="+")
    add_many(parser, "--corpus", metavar="SPEC", required=True, help="text to train on")
    add_choices(parser)
    add_many(parser, "--task", metavar="LANG=FOLDER", required=True, help="of SIB-200")
    add_many(parser, "--parallel", metavar="LANG=FILE", help="the same lines in all")
    parser.add_argument("--reference", default="hi", help="label of the lines to find")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seeds", type=positive, default=3)
    parser.add_argument("--hidden", type=positive, default=64)
    parser.add_argument("--layers", type=positive, default=2)
    parser.add_argument("--context", type=positive, default=128)
    parser.add_argument("--task-sentences", type=positive, help="of each language; default: all")
    parser.add_argument("--epochs", type=positive, default=1, help="over the train sentences")
    parser.add_argument("-o", "--out", type=Path, required=True)
    args = parser.parse_args()
    args.tasks = [pair(text) for text in args.task]
    args.pairs = [pair(text) for text in args.parallel or ()]
    documents = list(corpus_of(args.corpus, args).texts())
    texts = [text for _, text in documents]
    args.out.mkdir(parents=True, exist_ok=True)
    read = {f"corpus {name}": own for name, own in by_label(documents).items()}
    read |= {f"parallel {name}": file.read_text("utf-8").splitlines() for name, file in args.pairs}
    read |= {
        f"{split} {name}": [s.text for s in sentences(folder, name, split)]
        for name, folder in args.tasks
        for split in (("train", "test") if "encoder" in args.kinds else ("test",))
    }
    known = sources_of(read, {Path(f).name: open_tokenizer(f) for f in args.tokenizers})
    (args.out / "sources.json").write_text(json.dumps(known) + "\n", encoding="utf-8")
    for seed in range(args.seeds):
        for kind in args.kinds:
            for folder in args.tokenizers:
                path = args.out / f"{Path(folder).name}-{kind}-{seed}.json"
                if path.exists():
                    continue
                with one_thread():
                    record = run(folder, kind, seed, texts, args)
                path.write_text(json.dumps(record) + "\n", encoding="utf-8")
                took = {name: round(value) for name, value in record["seconds"].items()}
                print(path.stem, f"{record['tokens']:,} tokens, CPU seconds {took}", flush=True)


if __name__ == "__main__":
    main()
