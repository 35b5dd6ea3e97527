"""`vocabshift cpt`: continue pre-training a model as configured in a TOML file.

Owns the verb's flags, the `phases` keys and the progress display. `cli.config` reads the file
and the `key=value` words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from vocabshift.cli.config import (
    add_config,
    fill,
    parse_key,
    read_toml,
    split_given,
    with_underscores,
)
from vocabshift.cli.console import stderr
from vocabshift.cli.options import (
    UsageError,
    add_threads,
    add_verb,
    check_inputs_stay,
    size,
    threads,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PARTS = (("first_", "matching"), ("", "matching"), ("first_", "next_token"), ("", "next_token"))
_SIZES = ("n_bytes", "evaluate_bytes")  # may be written "2GB"
_FLAGS = ("threads", "force", "no_resume")  # also allowed in the file
_LINE_SECONDS = 60.0

_DESCRIPTION = """\
Train a model folder on text, through phases, and write another model folder. CONFIG.toml holds
the keys of docs/cpt.md; key=value on the command line takes precedence over it. Budgets are bytes
of text, so that models with different tokenizers train on the same text. A run that was stopped by
Ctrl-C, SIGTERM or a crash resumes where it stopped when the same command is given again.
Several GPUs: accelerate launch -m vocabshift cpt CONFIG.toml. Needs the [hf] extra."""


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "cpt",
        "continue the pre-training of a model",
        _DESCRIPTION,
        "  vocabshift cpt cpt.toml\n"
        "  vocabshift cpt cpt.toml n_bytes=200MB learning_rate=1e-4 out=runs/short --control\n"
        "  vocabshift cpt --export runs/short.partial -o runs/so-far\n",
    )
    add_config(parser, keys="the keys of docs/cpt.md (of a phase: phases.0.key=value)")
    parser.add_argument(
        "--control",
        action="store_true",
        help="train the model of the key `control`, with its old tokenizer, on the same bytes of "
        "text, into OUT-control",
    )
    parser.add_argument(
        "--no-resume", action="store_true", help="start afresh, whatever an earlier run finished"
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the output where it exists already"
    )
    parser.add_argument(
        "--export",
        metavar="CHECKPOINT",
        help="train nothing: write the newest checkpoint in OUT.partial (or that of a folder "
        "step-…) as a model folder, named by -o",
    )
    parser.add_argument("-o", "--out", metavar="DIR", help="of --export: the folder to write")
    add_threads(parser)
    parser.set_defaults(run=run, show=show, status=lambda *_: 0, parser=parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Train and write the folder; processes other than the first print nothing."""
    from vocabshift.cli.console import progress_bar
    from vocabshift.workflows.continue_pretraining import (
        CptConfig,
        continue_pretraining,
        export_checkpoint,
    )

    path, keys = split_given(args)
    if args.export is not None:
        if path is not None or keys or args.control or args.out is None:
            raise UsageError("--export takes a checkpoint and -o DIR, and no CONFIG.toml or key")
        return export_checkpoint(args.export, args.out, force=args.force)
    if args.out is not None:
        raise UsageError("-o belongs to --export; the output of a run is its key out (out=DIR)")
    if path is None and not keys:
        raise UsageError(f"CONFIG.toml is required (see: {args.parser.prog} --help)")
    table = read_config(path, keys)
    flags = {name: table.pop(name) for name in _FLAGS if name in table}
    fill(args, flags, path or "key=value")
    config = CptConfig.from_mapping(table)
    out = config.as_control().out if args.control else config.out
    if args.force:
        check_inputs_stay(out, [path])
    work = f"{out}.partial/checkpoints"
    with progress_bar(in_bytes=True) as packing, _watched(config.phases, work) as on_record:
        result = continue_pretraining(
            config,
            control=args.control,
            force=args.force,
            resume=not args.no_resume,
            threads=threads(args),
            progress=packing,
            on_record=on_record,
        )
    if result is None:
        args.json = False
    return result or {}


def read_config(path: str | None, keys: list[str]) -> dict[str, Any]:
    """Read a TOML file and set `keys` ("name=value", "phases.0.name=value") in it.

    UsageError for invalid TOML, and for a key=value that does not fit the table.
    """
    table = read_toml(path) if path else {}
    if isinstance(table.get("phases"), list):
        table["phases"] = [
            with_underscores(each, f"{path}: phases") if isinstance(each, dict) else each
            for each in table["phases"]
        ]
    for text in keys:
        _set(table, text)
    for place in (table, *_phases(table)):
        for name in _SIZES:
            if isinstance(place.get(name), str):
                try:
                    place[name] = size(place[name])
                except argparse.ArgumentTypeError as error:
                    raise UsageError(f"{name}: {error}") from None
    return table


def _phases(table: dict[str, Any]) -> list[dict[str, Any]]:
    phases = table.get("phases", [])
    return [each for each in phases if isinstance(each, dict)] if isinstance(phases, list) else []


def _set(table: dict[str, Any], text: str) -> None:
    key, value = parse_key(text)
    phases = _phases(table)
    match key.split("."):
        case [name]:
            if any(name in each for each in phases):
                raise UsageError(f"{name} is set in a phase; write phases.0.{name}=VALUE")
            table[name] = value
        case ["phases", number, name] if number.isdecimal() and int(number) < len(phases):
            phases[int(number)][name] = value
        case _:
            raise UsageError(f"{key!r} names no place in the file, which has {len(phases)} phases")


@contextmanager
def _watched(phases: Any, work: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A progress bar in bytes on a terminal; otherwise an occasional line on stderr."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = stderr()
    columns = (
        *(TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()),
        TextColumn("{task.fields[facts]}"),
    )
    bars = Progress(*columns, console=console, disable=not console.is_terminal)
    tasks: dict[int, Any] = {}
    last_line = -_LINE_SECONDS

    def on_record(record: dict[str, Any]) -> None:
        nonlocal last_line
        number = record["phase"]
        if record["kind"] == "evaluation":
            console.print(
                f"after {record['run_bytes']:,} bytes{_evaluated(record, work)}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
            return
        facts = _facts(record)
        title = f"phase {number + 1}/{len(phases)} {record['trained']}"
        if console.is_terminal:
            if number not in tasks:
                tasks[number] = bars.add_task(title, total=phases[number].n_bytes, facts="")
            bars.update(tasks[number], completed=record["n_bytes"], facts=facts)
        elif time.monotonic() - last_line >= _LINE_SECONDS:
            last_line = time.monotonic()
            steps = f"step {record['step']:,}/{record['n_steps']:,}"
            line = f"{title}, {steps}: {facts}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    with bars:
        yield on_record


def _evaluated(record: dict[str, Any], work: str) -> str:
    """What an evaluation found, and where its model is while the run goes on."""
    parts = []
    if record["bits_per_byte"]:
        bits = ", ".join(f"{k} {v:.4f}" for k, v in record["bits_per_byte"].items())
        parts.append(f", bits per byte: {bits}")
    parts += [
        f"; {row['metric']} {row['language']} {row['value']:.4f}" for row in record.get("tasks", ())
    ]
    parts += [
        "; {task} failed: {reason}".format_map(row) for row in record.get("task_failures", ())
    ]
    parts += [f"; saved: {work}/{record['model']}"] if "model" in record else []
    return "".join(parts)


def _facts(record: dict[str, Any]) -> str:
    parts = [
        f"loss {record['loss']:.4f}",
        *([f"matching {record['matching_loss']:.4f}"] if "matching_loss" in record else []),
        f"lr {record['learning_rate']:.2e}",
        f"{record['tokens_per_second']:,.0f} tokens/s",
        f"{record['bytes_per_second']:,.0f} bytes/s",
    ]
    if "mfu" in record:
        parts.append(f"MFU {record['mfu']:.1%}")
    return ", ".join(parts)


def _before_and_after(title: str, key: str, rows: list[dict[str, Any]]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for name in (key, "before", "after", "change"):
        table.add_column(name, justify="left" if name == key else "right")
    for row in rows:
        before, after = row["before"], row["after"]
        change = None if after is None else after - before
        numbers = ("" if each is None else f"{each:.4f}" for each in (before, after, change))
        table.add_row(row[key], *numbers)
    return table


def show(_args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print a summary."""
    if not result:
        return
    from vocabshift.cli.summary import shell_line, show_summary

    then = shell_line("vocabshift", "score", result["out"], "--text", "SPEC")
    if "n_steps" not in result:  # of --export
        facts = {"written to": result["out"], "after steps": result["run_steps"]}
        facts["after bytes of text"] = result["run_bytes"]
        show_summary(console, "checkpoint", facts, then)
        return
    if result["bits_per_byte"]:
        rows = result["bits_per_byte"]
        console.print(_before_and_after("bits per byte, held out", "language", rows))
    if result.get("tasks"):
        console.print(_before_and_after("tasks", "task", result["tasks"]))
    facts = {
        "written to": result["out"],
        "steps": result["n_steps"],
        "bytes of text": result["n_bytes"],
        "tokens": result["n_tokens"],
        "loss, first and last step": f"{result['first_loss']:.4f}, {result['loss']:.4f}",
        "seconds of training": f"{result['seconds']:.1f}",
        "bytes a second": int(result["bytes_per_second"]),
    }
    if "matching_loss" in result:
        parts = [f"{result[f'{when}{kind}_loss']:.4f}" for when, kind in _PARTS]
        facts["of it matching, first and last"] = ", ".join(parts[:2])
        facts["and next-token loss"] = ", ".join(parts[2:])
        facts["tokens matched"] = f"{result['matched_share']:.1%}"
        if result["unmatched_documents"]:
            facts["documents that could not be aligned"] = result["unmatched_documents"]
    if result["left_out"]:
        facts["left out, for its class has none"] = ", ".join(result["left_out"])
    for number, phase in enumerate(result["phases"], 1):
        what = f"{phase['n_steps']:,} steps, {phase['n_bytes']:,} bytes, loss {phase['loss']:.4f}"
        facts[f"phase {number}, {phase['trained']}"] = what
    if "adapter" in result:
        facts["adapter"] = f"{result['out']}/{result['adapter']}".removesuffix("/.")
        if result["adapter"] == ".":
            then = shell_line("vocabshift", "merge", result["out"], "-o", "DIR")
    show_summary(console, "cpt", facts, then)
