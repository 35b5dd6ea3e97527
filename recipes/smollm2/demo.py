"""SmolLM2 trimmed for English and, where Hindi text is given, extended to Hindi. No training.

    python recipes/smollm2/demo.py runs/smollm2/model [--english FILE] [--hindi FILE]

Without a file, English is learned from the sample texts of the package and its documentation. Each
model answers prompts, and a table compares size, speed, bytes per token and bits per byte on text
that no tokenizer was learned from. Its English part also decides where the trimming stops.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

import vocabshift as vs
from vocabshift.demo.story import write_split
from vocabshift.text.held_out import excerpt, hold_out
from vocabshift.workflows.prune import prune_to_folder
from vocabshift.workflows.transfer import transfer_to_folder

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = {"en": ("The capital of France is", "Water boils when"), "hi": ("भारत की राजधानी",)}
UNTIL = 0.01
NEW_TOKENS = 8000
TRAINING = 6_000_000  # bytes of each language at most
HELD_OUT = 12_000  # bytes of each
ANSWER = 20  # tokens


@dataclass(frozen=True)
class Texts:
    """What is learned from, and what is measured on."""

    train: dict[str, vs.Corpus]
    held_out: dict[str, list[str]]


def english() -> tuple[list[str], list[str]]:
    """Training and held-out lines: our sample sentences, and the documentation to train on."""
    with tempfile.TemporaryDirectory() as folder:
        train, held_out = write_split(Path(folder) / "texts")
        own, unseen = (
            part["eng"].read_text(encoding="utf-8").splitlines() for part in (train, held_out)
        )
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    return own + [line for line in lines if line.strip()], unseen


def texts_of(files: dict[str, Path]) -> Texts:
    """English, ours where there is no file of it, and Hindi where there is one."""
    corpora: dict[str, vs.Corpus] = {}
    held_out: dict[str, list[str]] = {}
    if "en" not in files:
        train, held_out["en"] = english()
        corpora["en"] = vs.Corpus.from_texts({"en": train})
    for label, file in files.items():
        own, others = hold_out(vs.Corpus.from_files({label: file}))
        corpora[label] = own.limit_bytes({label: TRAINING}, seed=0)
        # Files hold one source after another, so the first lines are not like the rest.
        held_out |= excerpt(others.limit_bytes({label: HELD_OUT}, seed=0), HELD_OUT)
    return Texts(corpora, held_out)


def measure(folder: Path, held_out: dict[str, list[str]]) -> dict[str, str]:
    """The column of one model."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = vs.load_tokenizer(folder)
    encoder = vs.Encoder(tokenizer)
    n_parameters = sum(own.numel() for own in model.parameters())
    found = {
        "tokens": f"{tokenizer.row_count:,}",
        "parameters": f"{n_parameters / 1e6:.1f} M",
        "on disk, 16 bits": f"{2 * n_parameters / 1e6:.0f} MB",
    }
    for label, texts in held_out.items():
        n_tokens = sum(len(encoder.encode(text)) for text in texts)
        n_bytes = sum(len(text.encode()) for text in texts)
        found[f"bytes per token, {label}"] = f"{n_bytes / n_tokens:.2f}"
    for row in vs.score(model, tokenizer, held_out):
        if row.metric == "bits_per_byte":
            found[f"bits per byte, {row.language}"] = f"{row.value:.3f}"
    return found


def tokens_per_second(folders: dict[str, Path]) -> dict[str, float]:
    """Greedy generation of one sequence; in turns, so that other work hinders all models alike."""
    models = {
        name: AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        for name, folder in folders.items()
    }
    options: dict[str, Any] = {"do_sample": False, "pad_token_id": 0}
    seconds = dict.fromkeys(models, float("inf"))
    for _, (name, model) in product(range(5), models.items()):
        ids = torch.tensor([[model.config.bos_token_id]])
        start = time.perf_counter()
        model.generate(ids, min_new_tokens=24, max_new_tokens=24, **options)
        seconds[name] = min(seconds[name], time.perf_counter() - start)
    return {name: 24 / least for name, least in seconds.items()}


def answers(folder: Path, prompts: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """(prompt, what follows it), greedily."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    found = []
    for prompt in (prompt for own in prompts.values() for prompt in own):
        inputs = tokenizer(prompt, return_tensors="pt")
        made = model.generate(
            **inputs, max_new_tokens=ANSWER, do_sample=False, repetition_penalty=1.2
        )
        [text] = tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :])
        found.append((prompt, " ".join(text.split())))
    return found


def trimmed(model: Path, texts: Texts, out: Path, console: Console) -> Path:
    """Prune for English as far as bits per byte allow, and move the model."""
    held_out = vs.Corpus.from_texts({"en": texts.held_out["en"]})
    tokenizer, target = out / "tokenizer-english", out / "trimmed"
    found = prune_to_folder(
        str(model), texts.train["en"], tokenizer, until=UNTIL, held_out=held_out, force=True
    )
    console.print(
        f"prune --until {UNTIL:.0%}: {found['n_removed']:,} of {found['n_removable']:,} tokens go; "
        f"{len(found['steps']) - 1} vocabularies were tried"
    )
    for warning in found["warnings"]:
        console.print(f"warning: {warning}", style="yellow")
    transfer_to_folder(model, tokenizer, target, force=True)
    return target


def extended(model: Path, texts: Texts, out: Path, console: Console) -> Path:
    """Add Hindi tokens to the whole model; their rows are means of old ones (FVT)."""
    base = vs.load_tokenizer(model)
    longer = vs.extend(base, texts.train["hi"], n_tokens=NEW_TOKENS, pre_tokenizer="repaired")
    longer.save_pretrained(out / "tokenizer-hindi", force=True)
    console.print(f"extend: {longer.vocab_size - base.vocab_size:,} Hindi tokens are new")
    target = out / "extended"
    transfer_to_folder(model, out / "tokenizer-hindi", target, force=True)
    return target


def main() -> None:
    """Trim, extend, measure, answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="what recipes/smollm2/get.sh wrote")
    parser.add_argument("-o", "--out", type=Path, default=Path("runs/demo-real"))
    parser.add_argument("--english", type=Path, metavar="FILE", help="text, one document a line")
    parser.add_argument("--hindi", type=Path, metavar="FILE", help="text, one document a line")
    args = parser.parse_args()
    logging.disable_progress_bar()
    start = time.perf_counter()
    console = Console(width=100)
    args.out.mkdir(parents=True, exist_ok=True)
    given = {"en": args.english, "hi": args.hindi}
    texts = texts_of({label: file for label, file in given.items() if file is not None})
    models = {"SmolLM2": args.model}
    models["trimmed for English"] = trimmed(args.model, texts, args.out, console)
    if args.hindi is not None:
        models["extended to Hindi"] = extended(args.model, texts, args.out, console)
    else:
        console.print("left out: the extension to Hindi (give HINDI=FILE, one document a line)")

    columns = {name: measure(folder, texts.held_out) for name, folder in models.items()}
    for name, speed in tokens_per_second(models).items():
        columns[name]["writes tokens/s"] = f"{speed:.1f}"
        for label in texts.held_out:
            per_token = float(columns[name][f"bytes per token, {label}"])
            columns[name][f"writes bytes/s, {label}"] = f"{speed * per_token:.0f}"
    table = Table(title="SmolLM2-135M-Instruct; nothing is trained", title_justify="left")
    table.add_column("")
    for name in columns:
        table.add_column(name, justify="right")
    for row in columns["SmolLM2"]:
        table.add_row(row, *(column[row] for column in columns.values()))
    console.print(table)

    prompts = dict(islice(PROMPTS.items(), len(texts.held_out)))
    for name, folder in models.items():
        for prompt, answer in answers(folder, prompts):
            console.print(Text.assemble((f"{name}: ", "bold"), prompt, " ", (answer, "cyan")))
    console.print(f"{time.perf_counter() - start:.0f} seconds; the models are in {args.out}")


if __name__ == "__main__":
    main()
