"""`vocabshift harness`: lm-eval on several checkpoints, with the papers' tasks."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.cli.options import UsageError, add_many, add_verb, positive
from vocabshift.cli.subjects import add_models, loading

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_DESCRIPTION = """\
Run lm-eval on causal language models: the tasks, examples and prompts of the IST and continued-BPE
papers, or any other task of lm-eval. A task is a name (all its languages), a name with languages
(sib200:hi,ta), a paper's table (ist-8, ist-11, continued-bpe-5), or a task of lm-eval; --list
shows them. Data comes from the Hub, or from files below --data where they are there: the data
sets' own release files (SIB-200, XCOPA, GSM8K, MGSM, Indic MMLU, FLORES-200), or
TASK/SPLIT.jsonl for any task of lm-eval. Code of data sets is never run. Intervals are 1.96
standard errors. A model or task that fails is told and the others go on; with --output what is done
is kept meanwhile, and the same command goes on from there. Needs the [eval] extra."""

_KEPT = "what is done is kept in {}; the same command goes on from there"


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = add_verb(
        subparsers,
        "harness",
        "lm-eval's tasks on language models, the papers' among them",
        _DESCRIPTION,
        "  vocabshift harness base adapted --tasks sib200:hi,ta xcopa:ta --data tasks\n"
        "  vocabshift harness adapted --tasks ist-11 --batch-size auto --dtype bfloat16 "
        "--output ist-11.jsonl\n",
    )
    add_models(parser, nargs="*")
    add_many(parser, "--tasks", metavar="T", help="tasks to run (see --list)")
    parser.add_argument("--list", action="store_true", help="show the tasks and end")
    parser.add_argument("--data", metavar="DIR", help="folder with the tasks' files")
    parser.add_argument(
        "--limit", metavar="N", type=positive, help="only the first N questions of each task"
    )
    parser.add_argument(
        "--shots",
        metavar="N",
        type=_shots,
        help="examples before a question (default: as many as the papers)",
    )
    parser.add_argument(
        "--batch-size",
        metavar="N",
        type=_batch_size,
        default=1,
        help='questions run at once, or "auto" (default: 1)',
    )
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run, show=show, status=status)


def _shots(text: str) -> int:
    return 0 if text == "0" else positive(text)


def _batch_size(text: str) -> int | str:
    return text if text == "auto" else positive(text)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the tasks, and write the rows where that is asked for and nothing failed."""
    from vocabshift.evaluation.harness.known_tasks import requests_of

    if args.list:
        return _listed()
    if not args.models or not args.tasks:
        raise UsageError(
            "MODEL and --tasks are required, or --list (see: vocabshift harness --help)"
        )
    requests = requests_of(args.tasks, args.shots)
    out, progress = _output(args)

    from vocabshift.cli.console import print_line, progress_bar
    from vocabshift.evaluation.harness.run import run_harness
    from vocabshift.report.task_table import beside
    from vocabshift.storage.output import write_whole

    keep = progress and (lambda s, request, rows: progress.keep(s, request.label, rows))
    try:
        with progress_bar() as bar:
            report = run_harness(
                args.models,
                requests,
                limit=args.limit,
                batch_size=args.batch_size,
                data=args.data,
                done=progress.done if progress else None,
                keep=keep,
                progress=bar,
                **loading(args),
            )
    except KeyboardInterrupt as error:
        if progress is not None and progress.done:
            error.add_note(_KEPT.format(progress.file))
        raise
    for note in report.notes:
        print_line(f"note: {note}")
    for failure in report.failures:
        print_line(f"failed: {failure.task} on {failure.subject}: {failure.reason}")
    if out is not None and progress is not None and not report.failures:
        write_whole(out, report.results.to_jsonl())
        progress.remove()
    elif progress is not None and progress.done:
        print_line(_KEPT.format(progress.file))
    return {
        "results": report.results.to_dicts(),
        "failures": [
            {"subject": f.subject, "task": f.task, "reason": f.reason} for f in report.failures
        ],
        "notes": list(report.notes),
        "published": [score.to_dict() for score in beside(report.results)],
    }


def _output(args: argparse.Namespace) -> tuple[Path | None, Any]:
    """The file to write, and what an earlier run has left beside it."""
    if args.output is None:
        return None, None
    from vocabshift.evaluation.harness.rows import HarnessProgress, settings_of
    from vocabshift.storage.output import check_free_file

    out = check_free_file(args.output, force=args.force, inputs=args.models)
    names = ("limit", "shots", "batch_size", "data", "dtype", "device")
    settings = settings_of(args.models, **{name: getattr(args, name) for name in names})
    return out, HarnessProgress(out.with_name(out.name + ".progress"), settings, force=args.force)


def status(_args: argparse.Namespace, result: dict[str, Any]) -> int:
    """2 where a model or task gave no figure."""
    return 2 if result.get("failures") else 0


def _listed() -> dict[str, Any]:
    from vocabshift.evaluation.harness.known_tasks import FAMILIES, SUITES

    return {
        "tasks": [
            {
                "task": family.name,
                "about": family.about,
                "languages": list(family.tasks),
                "shots": family.shots,
                "metric": family.metric,
                "papers": list(family.papers),
                "local_files": family.local is not None,
            }
            for family in FAMILIES.values()
        ],
        "suites": {name: list(tasks) for name, tasks in SUITES.items()},
    }


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """The list of tasks, or one table with the papers' numbers beside ours."""
    from vocabshift.report.task_table import PublishedScore, task_table
    from vocabshift.results import Result, Results

    if args.list:
        console.print(_list_table(result))
        for name, tasks in result["suites"].items():
            console.print(f"{name}: {' '.join(tasks)}", markup=False)
        return
    results = Results(Result(**row) for row in result["results"])
    if results:
        published = [PublishedScore(**row) for row in result["published"]]
        console.print(task_table(results, published))
    if args.output and not result["failures"]:
        console.print(f"written: {args.output}", markup=False, soft_wrap=True)


def _list_table(result: dict[str, Any]) -> Table:
    from rich.table import Table

    table = Table("task", "what is asked", "languages", "examples", "metric", "paper", "files")
    for row in result["tasks"]:
        table.add_row(
            *(row["task"], row["about"], " ".join(row["languages"]), str(row["shots"])),
            *(row["metric"], ", ".join(row["papers"]), "yes" if row["local_files"] else ""),
        )
    return table
