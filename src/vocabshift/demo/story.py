"""The demo's messages: progress, tables of what changed, and the next command.

Owns the wording and the tables; every figure comes from `Results`. Everything goes to stderr. The
figures that got worse are reported too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.demo import sample_texts

if TYPE_CHECKING:
    import vocabshift as vs

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
            f"this demo. Every {sample_texts.HELD_OUT_EVERY}th line is held out; all figures "
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
        for line in (
            f"vocabshift check {out}/ist-tokenizer",
            f"vocabshift evaluate {out}/base-tokenizer {out}/ist-tokenizer "
            f"--text hin={out}/corpus/held-out/hin.txt",
            f"vocabshift transfer {out}/base-model {out}/ist-tokenizer -o moved",
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
        return [group for group in sample_texts.GROUPS if group in present]

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
