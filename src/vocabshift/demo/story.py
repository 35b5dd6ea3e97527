"""What the demo reads and says: our own sentences in many scripts, some code, and its messages.

Owns the list of languages, their groups and which lines are held out. A `.txt` has one document per
line; code is in `.jsonl` files. And the wording and the tables: every figure comes from `Results`,
and those that got worse are reported too. Everything goes to stderr. Knows nothing of tokenizers or
models.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import vocabshift as vs

INDIAN = "Indian languages"
FAMILIAR = "English, German"
OTHER = "other languages"
CODE = "code"

GROUPS: dict[str, tuple[str, ...]] = {
    INDIAN: (
        *("asm", "ben", "guj", "hin", "kan", "mal", "mar", "mni_Mtei", "npi", "ory", "pan"),
        *("sat", "tam", "tel", "urd"),
    ),
    FAMILIAR: ("eng", "deu"),
    OTHER: ("est", "rus"),
    CODE: ("code",),
}
"""Languages (ISO 639-3, with a script where a language has several) by the group they stand in."""

HELD_OUT_EVERY = 8
HELD_OUT_FIRST = 4
"""Documents 4, 12, 20, … are never trained on. The demo's settings were chosen on another split
(8, 16, …), so its figures are not those that chose them."""


def group_of(language: str) -> str:
    """The group of a language; KeyError if it has none."""
    return next(group for group, languages in GROUPS.items() if language in languages)


def familiar() -> tuple[str, ...]:
    """The languages that the base tokenizer and the base model know best."""
    return GROUPS[FAMILIAR] + GROUPS[CODE]


def languages() -> list[str]:
    """The languages that come with the package, in order of their groups."""
    known = [language for of_group in GROUPS.values() for language in of_group]
    return sorted((Path(file.name).stem for file in _files()), key=known.index)


def beginnings(n_documents: int) -> dict[str, list[str]]:
    """The first documents of every language, in order of their groups."""
    by_language = {Path(file.name).stem: file for file in _files()}
    found = {}
    for language in languages():
        text = by_language[language].read_text(encoding="utf-8").removesuffix("\n")
        lines = text.split("\n")[:n_documents]
        is_json = by_language[language].name.endswith(".jsonl")
        found[language] = [str(json.loads(line)["text"]) if is_json else line for line in lines]
    return found


def write_split(folder: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Copy the texts to `folder`/train and `folder`/held-out; each as {language: file}."""
    split: tuple[dict[str, Path], dict[str, Path]] = ({}, {})
    for directory in ("train", "held-out"):
        (folder / directory).mkdir(parents=True)
    by_language = {Path(file.name).stem: file for file in _files()}
    for language in languages():
        file = by_language[language]
        lines = [line for line in file.read_text(encoding="utf-8").split("\n") if line]
        held_out = lines[HELD_OUT_FIRST - 1 :: HELD_OUT_EVERY]
        kept = [line for i, line in enumerate(lines, 1) if i % HELD_OUT_EVERY != HELD_OUT_FIRST]
        for part, directory, own in ((0, "train", kept), (1, "held-out", held_out)):
            path = folder / directory / file.name
            path.write_text("".join(line + "\n" for line in own), encoding="utf-8", newline="")
            split[part][language] = path
    return split


def _files() -> list[resources.abc.Traversable]:
    folder = resources.files("vocabshift.demo") / "texts"
    return [file for file in folder.iterdir() if file.name.endswith((".txt", ".jsonl"))]


_WIDTH = 100  # columns, also where there is no terminal


class Story:
    """The messages of one demo run."""

    def __init__(self, *, quiet: bool = False) -> None:
        """`quiet`: print headings and progress only, because the caller shows the figures."""
        from rich.console import Console

        console = Console(file=sys.stderr, highlight=False)
        width = min(console.width, _WIDTH) if console.is_terminal else _WIDTH
        self._console = Console(file=sys.stderr, highlight=False, width=width)
        self._quiet = quiet
        self._part = 0

    def texts(self, n_languages: int, n_bytes: int) -> None:
        """Report the training text."""
        self._heading("Text")
        self._say(
            f"{n_languages} languages (code is one), {n_bytes:,} bytes to train on, written for "
            f"this demo. Every {HELD_OUT_EVERY}th line is held out; all figures "
            "below are on held-out lines."
        )

    def tokenizers(self, results: vs.Results, checked: vs.CheckReport) -> None:
        """Report both tokenizers on the held-out text; `checked` is the report on the new one."""
        self._heading("Two tokenizers")
        self._say(
            "The base tokenizer is a plain BPE trained on English, German and code, as those of "
            "many models mostly were. The IST tokenizer is trained on all languages, first inside "
            f"words, then across them: {checked.vocab_size:,} tokens, {len(checked.superwords):,} "
            f"of them superwords, {len(checked.unreachable)} unreachable."
        )
        for metric, title in (
            ("fertility", "tokens per word (fewer is better)"),
            ("bytes_per_token", "bytes of text per token (more is better)"),
        ):
            self._table(results, metric, title, decimals=2)

    def model(
        self, model: Any, first: vs.Phase, further: vs.Phase, *, unfamiliar_every: int
    ) -> None:
        """Announce the model and the amount of training."""
        self._heading("A model")
        n_parameters = sum(parameter.numel() for parameter in model.parameters())
        self._say(
            f"A Llama of {n_parameters / 1e6:.1f} million parameters, pre-trained with the base "
            f"tokenizer on {first.n_bytes:,} bytes: all English, German and code, and one line in "
            f"{unfamiliar_every} of the rest, round after round. Then two ways on, each with the "
            f"same {further.n_bytes:,} bytes of all languages, training embeddings and head only: "
            "the control keeps the base tokenizer, the other is moved to the IST "
            "tokenizer first (FVT: a new token starts as the mean of its old pieces)."
        )

    @contextmanager
    def training(self, title: str) -> Iterator[Callable[[vs.Step], None]]:
        """Show a progress bar for one run; yield the function to call after each step."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("  {task.description:<38}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[bits]:.2f} bits per byte"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(title, total=None, bits=8.0)

            def on_step(step: vs.Step) -> None:
                progress.update(
                    task, total=step.n_steps, completed=step.step, bits=step.bits_per_byte
                )

            yield on_step

    def models(self, results: vs.Results, *, control: str, adapted: str) -> None:
        """Report all models on the held-out text, and a verdict for each group."""
        self._heading("What changed in the model")
        self._table(results, "bits_per_byte", "bits per byte (fewer is better)", decimals=3)
        better: list[str] = []
        worse: list[str] = []
        for group in self._groups(results):
            gain = results.value(control, group, "bits_per_byte") - results.value(
                adapted, group, "bits_per_byte"
            )
            (better if gain > 0 else worse).append(f"{group} ({-gain:+.3f})")
        self._say("Against the control, which saw the same further text:")
        self._say(f"  better on  {', '.join(better) or 'nothing'}")
        self._say(f"  worse on   {', '.join(worse) or 'nothing'}")
        self._say(
            "One seed and little text. The settings were chosen among about fourteen, on other "
            "lines of these texts, and half of those lost to the control: this shows that the "
            "parts fit together, not how much a swap wins."
        )

    def end(self, out: Path, *, seconds: float) -> None:
        """Report the output files and the next command."""
        self._heading(f"Done in {seconds / 60:.1f} minutes")
        self._say(f"Written to {out}:")
        for name, what in (
            ("corpus", "the text, split into train and held-out"),
            ("base-tokenizer, ist-tokenizer", "load with tokenizers or AutoTokenizer"),
            ("base-model, control-model, adapted-model", "load with AutoModelForCausalLM"),
            ("results.jsonl", "every figure above, by group and by language"),
        ):
            self._say(f"  {name:<42}{what}")
        self._say("\nType next:")
        place = quote(str(out))
        for line in (
            f"vocabshift check {place}/ist-tokenizer",
            f"vocabshift evaluate {place}/base-tokenizer {place}/ist-tokenizer "
            f"--text hin={place}/corpus/held-out/hin.txt",
            f"vocabshift transfer {place}/base-model {place}/ist-tokenizer -o moved",
            "vocabshift train --recipe ist --corpus YOUR.txt --vocab-size 32000 -o your-tokenizer",
        ):
            self._say(f"  {line}")

    def _heading(self, title: str) -> None:
        from rich.text import Text

        self._part += 1
        self._console.print()
        self._console.print(Text(f"{self._part}. {title}", style="bold"))

    def _say(self, words: str) -> None:
        from rich.text import Text

        if self._quiet:
            return
        self._console.print(Text(words), soft_wrap=words.startswith(" "))

    def _groups(self, results: vs.Results) -> list[str]:
        present = results.distinct("language")
        return [group for group in GROUPS if group in present]

    def _table(self, results: vs.Results, metric: str, title: str, *, decimals: int) -> None:
        """Groups as rows, subjects as columns; half the 95 % interval after each value."""
        from rich.table import Table

        if self._quiet:
            return
        rows = results.where(metric=metric)
        table = Table(title=title, title_justify="left", title_style="italic")
        table.add_column("held-out text")
        for subject in rows.distinct("subject"):
            table.add_column(subject, justify="right")
        for group in self._groups(rows):
            cells = []
            for row in rows.where(language=group):
                cell = f"{row.value:.{decimals}f}"
                if row.ci_low is not None and row.ci_high is not None:
                    cell += f" ±{(row.ci_high - row.ci_low) / 2:.{decimals}f}"
                cells.append(cell)
            table.add_row(group, *cells)
        self._console.print(table)
