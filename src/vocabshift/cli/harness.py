"""`vocabshift harness`: lm-eval on several checkpoints, with the papers' tasks."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from vocabshift.cli.inputs import add_models, defaults_of, loading
from vocabshift.cli.options import UsageError, add_many, add_verb, natural, positive
from vocabshift.workflows.harness import BORDERS, KEPT, harness_to_file, known_tasks

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
standard errors. Superword tokenizers have tokens that span the border between a question and its
answer, of which lm-eval scores only a part, or nothing: --border says what is done instead, and a
row TASK/touched has the share of such requests. A model or task that fails is reported, and the
others run; with --output finished rows are kept, and the same command resumes. Needs
the [eval] extra."""


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
        type=natural,
        help="examples before a question (default: as many as the papers)",
    )
    parser.add_argument(
        "--batch-size",
        metavar="N",
        type=_batch_size,
        default=defaults_of(harness_to_file)["batch_size"],
        help='questions run at once, shorter ones in the room of the longest; or "auto" '
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--border",
        choices=BORDERS,
        default=defaults_of(harness_to_file)["border"],
        help="how an answer is scored if a token spans the border to its context: heal: from the "
        "last token boundary before it; split: context and answer are encoded apart; lm-eval: as "
        "lm-eval does, which loses text (default: %(default)s)",
    )
    parser.add_argument("--output", metavar="FILE", help="also write the rows as JSON lines")
    parser.add_argument("--force", action="store_true", help="replace FILE where it exists already")
    parser.set_defaults(run=run, show=show, status=status)


def _batch_size(text: str) -> int | str:
    return text if text == "auto" else positive(text)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the tasks; write the rows if requested and nothing failed."""
    from vocabshift.cli.console import print_line, progress_bar

    if args.list:
        return known_tasks()
    if not args.models or not args.tasks:
        raise UsageError(
            "MODEL and --tasks are required, or --list (see: vocabshift harness --help)"
        )
    with progress_bar() as progress:
        args.found = harness_to_file(
            args.models,
            args.tasks,
            shots=args.shots,
            limit=args.limit,
            batch_size=args.batch_size,
            border=args.border,
            data=args.data,
            output=args.output,
            force=args.force,
            progress=progress,
            **loading(args),
        )
    result: dict[str, Any] = args.found.to_dict()
    for note in result["notes"]:
        print_line(f"note: {note}")
    for failure in result["failures"]:
        print_line("failed: {task} on {subject}: {reason}".format_map(failure))
    if args.found.kept is not None:
        print_line(KEPT.format(args.found.kept))
    return result


def status(_args: argparse.Namespace, result: dict[str, Any]) -> int:
    """2 if a model or task yielded no result, else 0."""
    return 2 if result.get("failures") else 0


def show(args: argparse.Namespace, result: dict[str, Any], console: Console) -> None:
    """Print the list of tasks, or one table with the papers' numbers next to ours."""
    from vocabshift.workflows.harness import harness_table

    if args.list:
        console.print(_list_table(result))
        for name, tasks in result["suites"].items():
            console.print(f"{name}: {' '.join(tasks)}", markup=False)
        return
    if result["results"]:
        console.print(harness_table(args.found))
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
