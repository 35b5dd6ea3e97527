"""Find glitch tokens and write files: what `vocabshift glitch` does.

Owns the files (JSON lines, Markdown, HTML, the list for `prune`) and the command that prunes the
tokens found. `evaluation.glitch` evaluates the tokens. It is imported on use, so that the command
line can show choices and defaults at once.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.evaluation.glitch import INDICATORS
from vocabshift.models.load import DTYPES
from vocabshift.progress import Progress
from vocabshift.storage.output import check_free_file, write_whole

if TYPE_CHECKING:
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.tokenizer import Tokenizer

__all__ = ["DTYPES", "INDICATORS", "GlitchTokens", "glitch_to_files", "write_prune_list"]


@dataclass(frozen=True)
class GlitchTokens:
    """The findings of `glitch_to_files` and the files it wrote, as plain JSON values."""

    tokens: list[dict[str, Any]]  # every token that has a row, most suspect first
    summary: dict[str, Any]  # "prune_with": the command that prunes, if a list was written
    written: tuple[str, ...]


def glitch_to_files(
    model: str | Path,
    *,
    initial: str | Path | None = None,
    reference: Sequence[str] = (),
    indicator: str = "auto",
    corpus: Corpus | None = None,
    n_verify: int = 0,
    dtype: str = "float32",
    output: str | Path | None = None,
    markdown: str | Path | None = None,
    html: str | Path | None = None,
    prune_list: str | Path | None = None,
    force: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
) -> GlitchTokens:
    """Look for under-trained tokens as `vocabshift.find_glitch_tokens` does, and write reports.

    Written, each whole or not at all: `output` (a JSON line for each token), `markdown` and `html`
    (reports), `prune_list` (the tokens to keep, for `vocabshift prune --keep file:FILE`).
    `vocabshift.find_glitch_tokens` documents the other arguments and the errors. Before anything
    is read: FileExistsError for existing outputs, unless `force`; ValueError for a file that is an
    input or another output.
    """
    from vocabshift.evaluation.glitch.find import find_glitch_tokens
    from vocabshift.evaluation.glitch.summary import summary, token_rows

    texts = [] if corpus is None else corpus.paths
    given = [file for file in (output, markdown, html, prune_list) if file is not None]
    files = [check_free_file(file, force=force, inputs=[model, *texts]) for file in given]
    if len({file.resolve() for file in files}) < len(files):
        raise ValueError("two of the outputs name one file; give each its own")
    report = find_glitch_tokens(
        model,
        initial=initial,
        reference=reference,
        indicator=indicator,
        corpus=corpus,
        n_verify=n_verify,
        dtype=dtype,
        threads=threads,
        progress=progress,
    )
    tokens = token_rows(report)
    facts = summary(report, tokens)
    if output is not None:
        lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in tokens)
        write_whole(Path(output), "".join(lines))
    if markdown is not None:
        from vocabshift.report.model_tables import glitch_markdown

        write_whole(Path(markdown), glitch_markdown(facts, tokens))
    if html is not None:
        from vocabshift.report.html.glitch import glitch_html

        write_whole(Path(html), glitch_html(facts, tokens))
    if prune_list is not None:
        facts["prune_with"] = write_prune_list(prune_list, model, report.tokenizer, tokens)
    return GlitchTokens(tokens, facts, tuple(map(str, given)))


def write_prune_list(
    file: str | Path,
    model: str | Path,
    tokenizer: Tokenizer,
    tokens: Sequence[Mapping[str, Any]],
) -> str | None:
    """Write the tokens to keep; return the command that prunes the others, None if there are none.

    `prune` takes a list of tokens to keep, not a list of tokens to remove. `tokens`: rows of
    `GlitchTokens`.
    """
    from vocabshift.evaluation.glitch.classes import prunable

    going = set(prunable(tokenizer, tokens))
    vocab = sorted(tokenizer.model.vocab.items(), key=lambda entry: entry[1])
    staying = [token for token, _ in vocab if token not in going]
    broken = [token for token in staying if "\n" in token or "\r" in token]
    lines = [token for token in staying if "\n" not in token and "\r" not in token]
    write_whole(Path(file), "".join(f"{token}\n" for token in lines))
    if not going:
        return None
    # A list cannot hold tokens with a line break, which some SentencePiece vocabularies have.
    kept = [f"file:{file}", *broken]
    order = ("--order", "leaf-id", "--n-tokens", str(len(going)))
    return shlex.join(["vocabshift", "prune", str(model), *order, "--keep", *kept, "-o", "DIR"])
