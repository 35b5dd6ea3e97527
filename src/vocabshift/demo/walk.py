"""The walk through the corridor: text in, a better tokenizer in a working model out.

Owns the order of things and how much of each. Everything it does goes through the public face;
what it says stands in `story`. All numbers are on held-out lines, and beside the moved model
stands the control that is owed: the old model with the old tokenizer, trained on the same further
bytes of text in the same phase.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vocabshift.demo import sample_texts, story

END_TOKEN = "<|end|>"

BASE, IST = "base tokenizer", "IST tokenizer"
BEFORE, CONTROL = "base model", "control: base + same bytes"
MOVED, ADAPTED = "moved, untrained", "moved + same bytes"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything; the defaults take about three minutes on two cores."""

    base_vocab_size: int = 1024
    ist_vocab_size: int = 4096
    hidden_size: int = 128
    n_layers: int = 3
    pretraining_rounds: float = 6.0  # times the training text
    pretraining_rate: float = 4e-3
    further_rounds: float = 3.0
    further_rate: float = 4e-3
    sequence_length: int = 128  # tokens
    batch_size: int = 16


def run_demo(out: str | Path, *, json: bool = False, plan: Plan | None = None) -> dict[str, Any]:
    """Walk the corridor, write everything to the folder `out`, and return the figures.

    A folder at `out` is replaced, once the new one is complete. The story goes to stderr, also
    with `json`; it takes about three minutes on two cores and no network.
    """
    from vocabshift.output_folder import atomic_folder

    began = time.monotonic()
    tell = story.Story(quiet=json)
    with atomic_folder(out, force=True) as folder:
        figures = _walk(folder, plan or Plan(), tell)
    tell.end(Path(out), seconds=time.monotonic() - began)
    return {"out": str(out), "seconds": round(time.monotonic() - began, 1), **figures}


def _walk(folder: Path, plan: Plan, tell: story.Story) -> dict[str, Any]:
    import vocabshift as vs
    from vocabshift.demo import small_llama

    train_files, held_out_files = sample_texts.write_split(folder / "corpus")
    train = vs.Corpus.from_files(train_files)
    held_out = _with_groups(vs.Corpus.from_files(held_out_files))
    n_bytes = sum(len(text.encode("utf-8")) for _, text in train.texts())
    tell.texts(len(train_files), n_bytes)

    familiar = [*sample_texts.GROUPS[sample_texts.FAMILIAR], "code"]
    base = vs.BpeTrainer(
        vocab_size=plan.base_vocab_size, pre_tokenizer="o200k", special_tokens=(END_TOKEN,)
    ).train(train.select(familiar))
    base.save_pretrained(folder / "base-tokenizer")
    ist = vs.SuperwordTrainer(
        vocab_size=plan.ist_vocab_size, transition=0.9, pre_tokenizer="o200k"
    ).train(train)
    ist.save_pretrained(folder / "ist-tokenizer")
    results = vs.evaluate({BASE: base, IST: ist}, held_out, ("fertility", "bytes_per_token"))
    tell.tokenizers(results, ist, n_unreachable=len(vs.check(ist).unreachable))

    def train_model(model: Any, tokenizer: Any, title: str, phase: vs.Phase) -> None:
        config = vs.LoopConfig(
            sequence_length=plan.sequence_length, batch_size=plan.batch_size
        )
        with tell.training(title) as on_step:
            vs.pretrain(model, tokenizer, train, phases=[phase], config=config, on_step=on_step)

    def measure(model: Any, tokenizer: Any, subject: str) -> None:
        nonlocal results
        results += vs.score(
            model, tokenizer, held_out, subject=subject, context=plan.sequence_length
        )

    first = vs.Phase(
        n_bytes=int(plan.pretraining_rounds * n_bytes), learning_rate=plan.pretraining_rate
    )
    further = vs.Phase(
        trained="embeddings",
        n_bytes=int(plan.further_rounds * n_bytes),
        learning_rate=plan.further_rate,
    )
    model = small_llama.make(
        base, END_TOKEN, hidden_size=plan.hidden_size, n_layers=plan.n_layers
    )
    tell.model(model, first, further)
    train_model(model, base, "pre-training the base model", first)
    small_llama.save(model, base, folder / "base-model")
    measure(model, base, BEFORE)

    control = copy.deepcopy(model)
    train_model(control, base, "control: more for the base model", further)
    small_llama.save(control, base, folder / "control-model")
    measure(control, base, CONTROL)

    moved, tokenizer = vs.transfer(model, old=base, new=ist, init="fvt")
    measure(moved, tokenizer, MOVED)
    train_model(moved, tokenizer, "the same for the moved model", further)
    small_llama.save(moved, tokenizer, folder / "adapted-model")
    measure(moved, tokenizer, ADAPTED)

    results.save(folder / "results.jsonl")
    tell.models(results)
    return {"further_bytes": further.n_bytes, "results": results.to_dicts()}


def _with_groups(corpus: Any) -> dict[str, list[str]]:
    """Texts by group, then by language: both become rows of the results."""
    texts: dict[str, list[str]] = {group: [] for group in sample_texts.GROUPS}
    for language, text in corpus.texts():
        texts[sample_texts.group_of(language)].append(text)
        texts.setdefault(language, []).append(text)
    return {label: of_label for label, of_label in texts.items() if of_label}
