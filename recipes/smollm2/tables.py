"""The tables of this recipe's README, made of its results (`recipes/data/record.py`)."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "data"))
from record import Row, markdown

CHANCE = {"sib200": 1 / 7, "xcopa": 1 / 2, "mmlu_indic": 1 / 4}
TEXTS = {"en": "English", "de": "German", "hi": "Hindi", "code": "Python code"}


def tables(rows: list[Row]) -> dict[str, str]:
    """Markdown by name."""
    peers = [row for row in rows if row["what"] == "llama.cpp"]
    written = {
        what: [row for row in rows if row["what"] == what] for what in ("ids", "greedy", "answers")
    }
    bits = {row["row"]: row for row in rows if row["what"] == "bits"}
    return {
        "llama.cpp": markdown(
            ("the file in llama.cpp", "equal ids", "equal top token", "largest logit difference"),
            [
                (
                    row["row"],
                    f"{row['equal_ids']} of {row['texts']} texts",
                    f"{row['equal_top']:,} of {row['positions']:,} "
                    f"({row['equal_top'] / row['positions']:.2%})",
                    f"{row['largest_logit_difference']:.3f}",
                )
                for row in peers
            ],
        ),
        "written": markdown(
            ("the file in llama.cpp", "what is compared", "equal"),
            [
                *(
                    (
                        row["row"],
                        f"ids of {row['tokens']:,} tokens with the folder's",
                        f"{row['equal_ids']:,} of {row['texts']:,} texts",
                    )
                    for row in written["ids"]
                ),
                *(
                    (
                        row["row"],
                        f"{row['tokens'] // row['texts']} tokens after a prompt with transformers'",
                        f"{row['equal']} of {row['texts']} prompts",
                    )
                    for row in written["greedy"]
                ),
                *(
                    (
                        row["row"],
                        "the text after each prompt whose tokens stay, with the whole file",
                        f"{row['equal']} of {row['texts_whose_tokens_stay']} prompts",
                    )
                    for row in written["answers"]
                ),
            ],
            left=2,
        ),
        "bits": markdown(
            ("text", "documents", "bits per byte", "95 % interval"),
            [
                (
                    name,
                    f"{bits[label]['documents']:,}",
                    f"{bits[label]['value']:.3f}",
                    f"{bits[label]['low']:.3f} to {bits[label]['high']:.3f}",
                )
                for label, name in TEXTS.items()
                if label in bits
            ],
        ),
        "patterns": markdown(
            ("pattern", "changes", "bytes per pre-token, Hindi", "English"),
            [
                (
                    *(f"`{row['row']}`", row["changes"]),
                    *(f"{row['ceilings'][label]:.2f}" for label in ("hi", "en")),
                )
                for row in rows
                if row["what"] == "pattern"
            ],
            left=2,
        ),
        "served": markdown(
            ("text", "model", "tokens of a prompt", "first token, s", "tokens/s", "bytes/s"),
            [
                (
                    *(TEXTS[row["text"]], row["model"], f"{row['input_tokens']:.1f}"),
                    *(f"{row['ttft_seconds']:.2f}", f"{row['output_tokens_per_second']:.1f}"),
                    f"{row['output_bytes_per_second']:.0f}",
                )
                for row in sorted(
                    (row for row in rows if row["what"] == "latency"),
                    key=lambda row: (row["text"], row["row"][0] != "S"),
                )
            ],
            left=2,
        ),
        "trained": markdown(
            ("steps", "bytes of text", "bits per byte of held-out English"),
            [
                (f"{row['row']}", f"{row['bytes']:,}", f"{row['bits_per_byte']['en']:.3f}")
                for row in sorted(
                    (row for row in rows if row["what"] == "trained"), key=lambda row: row["row"]
                )
            ],
            left=0,
        ),
        "borders": _borders([row for row in rows if row["what"] == "border"]),
        "tasks": _tasks(
            [row for row in rows if row["what"] == "task"],
            [row for row in rows if row["what"] == "cost"],
        ),
    }


def _tasks(tasks: list[Row], costs: list[Row]) -> str:
    """A line for each task that a model was asked, or two have counted, then what was not run."""
    models = sorted({row["model"] for row in tasks}, key=lambda name: (name != "before", name))
    touching = {row["model"] for row in tasks if row["touched"]}
    found = {(row["model"], row["task"]): row for row in tasks}
    tokens = {(row["model"], row["task"]): row["tokens"] for row in costs}
    counted = Counter(row["task"] for row in costs)
    asked = {row["task"] for row in tasks} | {task for task, n in counted.items() if n > 1}
    head = ["task", "questions", "by chance"]
    for model in models:
        head += [f"{model}: right", "tokens read", *["touched"] * (model in touching)]
    cells = []
    questions = {row["task"]: row["questions"] for row in costs}
    for task in sorted(asked, key=lambda task: _order(task, tokens)):
        chance = CHANCE.get(_benchmark(task))
        line = [f"`{task}`", f"{questions[task]}", f"{chance:.3f}" if chance else "–"]
        for model in models:
            row = found.get((model, task))
            line.append("–" if row is None else f"{row['value']:.3f} ±{row['half']:.3f}")
            line.append(f"{tokens[model, task]:,}" if (model, task) in tokens else "–")
            if model in touching:
                line.append("–" if row is None else f"{row['touched']:.1%}")
        cells.append(line)
    return "\n\n".join(
        [markdown(head, cells), *(_what_they_took(model, found, tokens) for model in models)]
    )


def _benchmark(task: str) -> str:
    return task.partition(":")[0]


def _order(task: str, tokens: dict[tuple[str, str], int]) -> tuple[str, int]:
    """By benchmark, then by what it costs."""
    return _benchmark(task), min(n for (_, own), n in tokens.items() if own == task)


def _what_they_took(
    model: str, found: dict[tuple[str, str], Row], tokens: dict[tuple[str, str], int]
) -> str:
    """What a model's tasks took, which ran in bfloat16, and what those without a row would take."""
    own = [row for (name, _), row in found.items() if name == model]
    left = [task for name, task in tokens if name == model and (name, task) not in found]
    n_left = sum(tokens[model, task] for task in left)
    seconds = 0.0
    for task in left:  # at the speed of its benchmark, where some of it was run
        like = [row for row in own if _benchmark(row["task"]) == _benchmark(task)] or own
        n_read = sum(tokens[model, row["task"]] for row in like)
        seconds += tokens[model, task] / n_read * sum(row["cpu_seconds"] for row in like)
    minutes = sum(row["cpu_seconds"] for row in own) / 60
    said = f"*{model}*: {len(own)} tasks in {minutes:.0f} CPU minutes"
    if half := [row["task"] for row in own if row["dtype"] == "bfloat16"]:
        said += f", {len(half)} of them in bfloat16 ({_listed(half)})"
    if not left:
        return f"{said}."
    return (
        f"{said}. Counted and not run: {len(left)} of {len(left) + len(own)}, {n_left:,} tokens, "
        f"reckoned {seconds / 60:,.0f} minutes of CPU ({_listed(left)})."
    )


def _listed(tasks: list[str]) -> str:
    """Their languages, by benchmark."""
    languages: dict[str, list[str]] = {}
    for task in sorted(tasks):
        languages.setdefault(_benchmark(task), []).append(task.partition(":")[2])
    return "; ".join(f"`{name}`: {', '.join(some)}" for name, some in languages.items())


def _borders(rows: list[Row]) -> str:
    """By task, in the order of the flag's values; what lm-eval scores of touched answers is cut."""
    order = ("heal", "split", "lm-eval")
    cells = []
    for row in sorted(rows, key=lambda row: (row["task"], order.index(row["border"]))):
        task = f"`{row['task']}`" if ":" in row["task"] else row["task"]
        if "failure" in row:
            cells.append((task, row["border"], "ends in an error", "–", "–", "–"))
            continue
        cut = row["touched"] if row["border"] == "lm-eval" else 0
        better = "–"
        if "heal_better_low" in row:
            better = f"{row['heal_better_low']:+.3f} to {row['heal_better_high']:+.3f}"
        cells.append(
            (
                *(task, row["border"], f"{row['accuracy']:.3f}", better),
                *(f"{row['touched']:.1%}", f"{cut:.1%}"),
            )
        )
    header = ("task", "`--border`", "accuracy", "heal is better by", "touched", "scored in part")
    return markdown(header, cells, left=2)
