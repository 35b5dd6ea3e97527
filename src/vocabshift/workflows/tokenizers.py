"""Several tokenizers by name: loaded, and checked one after the other.

Owns which of them a pattern applies to (those that need one) and how a check is reported as plain
values. Heavy rooms are imported on use, so that the command line can show its choices at once.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.checks.portability import about_engine, about_limits
from vocabshift.checks.runtimes import RUNTIMES, TIME_LIMIT
from vocabshift.errors import InvalidTokenizerError

if TYPE_CHECKING:
    from vocabshift.checks.check import CheckReport
    from vocabshift.checks.runtime_reports import RuntimeReport
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.tokenizer import Tokenizer
    from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

PATTERN_FLAG = "--pattern"

_SHOWN = 8  # lost characters that are named

CHECKED = {
    "vocab_size": "tokens of the model",
    "unreachable": "merges do not rebuild them",
    "only_by_merge_skipping": "of these, whole pieces of text reach them",
    "unreachable_by_pipeline": "no usual text yields them",
    "only_in_rare_contexts": "of these, some text yields them",
    "byte_pieces": "stand for one byte",
    "missing_byte_pieces": "bytes that the vocabulary lacks",
    "lost_characters": "assigned characters that are lost",
    "partial_utf8": "begin or end inside a character",
    "superwords": "text on both sides of a space",
    "terminal_spanning": "a sentence ends inside them",
    "merge_residue": "text makes them, and uses them up (--text)",
    "duplicates": "another token has the same bytes",
    "shadowed": "an added token is cut out of their text",
    "special_tokens": "added, special",
    "other_added_tokens": "added, not special",
    "id_holes": "ids that no token has",
    "rows": "embedding rows needed",
    "padding": "rows to the next multiple of 64",
    "round_trip_failures": "lines that do not come back",
}
"""Every count of a check, with what it is for people."""

RUNTIME_NAMES = tuple(RUNTIMES)
"""The runtimes that `check_tokenizers` knows."""

FAULTS = ("unreachable", "unreachable_by_pipeline", "lost_characters", "round_trip_failures")
"""Those of them that should be 0."""


def load_tokenizers(
    sources: Sequence[str | Path], *, pattern: str | None = None
) -> list[Tokenizer | UnigramOrWordPieceTokenizer]:
    """Load the tokenizers of folders, files or Hub names, in order: BPE, Unigram or WordPiece.

    `pattern`: name or regular expression of the pre-tokenizer, for rank files and GGUF
    vocabularies that lack theirs; it applies to those alone. InvalidTokenizerError for a source
    that is not a tokenizer; ValueError for a pattern that none of them needs.
    """
    from vocabshift.tokenizer.formats.load import open_tokenizer

    return _load(sources, pattern, open_tokenizer)


def load_bpe_tokenizers(
    sources: Sequence[str | Path], *, pattern: str | None = None
) -> list[Tokenizer]:
    """Load tokenizers that must be BPE; InvalidTokenizerError for others."""
    return _load(sources, pattern, None)


def load_named(
    sources: Sequence[str | Path], *, pattern: str | None = None
) -> dict[str, Tokenizer | UnigramOrWordPieceTokenizer]:
    """Load tokenizers as `load_tokenizers` does, by the unique names used in results.

    A name is the last part of the path or Hub name. If two would be equal, the folder is put in
    front or a number after it.
    """
    from vocabshift.evaluation.lines.subject import subject_names

    loaded = load_tokenizers(sources, pattern=pattern)
    return dict(zip(subject_names(sources), loaded, strict=True))


def _load(sources: Sequence[str | Path], pattern: str | None, open_other: Any) -> list[Any]:
    from vocabshift.tokenizer.formats.load import load_tokenizer

    loaded = []
    is_used = False
    for source in sources:
        try:
            loaded.append(load_tokenizer(source))
        except InvalidTokenizerError as error:
            if pattern is not None and PATTERN_FLAG in str(error):
                loaded.append(load_tokenizer(source, pattern=pattern))
                is_used = True
            elif open_other is not None:
                loaded.append(open_other(source))  # same error if no other kind fits
            else:
                raise
    if pattern is not None and not is_used:
        raise ValueError(
            f"{PATTERN_FLAG} is not needed: the tokenizers bring their own; leave it out"
        )
    return loaded


def check_tokenizers(
    tokenizers: Sequence[str | Path],
    corpus: Corpus | None = None,
    *,
    pattern: str | None = None,
    details: bool = False,
    runtimes: str | None = None,
    time_limit: float = TIME_LIMIT,
    threads: int = 1,
) -> list[dict[str, Any]]:
    """Check tokenizers as `vocabshift.check` does; return plain JSON values for each.

    Keys: `tokenizer` (the source), every count of `CHECKED` (None if it cannot be determined),
    `languages` with the figures of the corpus, `ok`, and `model_rows` and `missing_rows` if a
    `config.json` in the tokenizer's folder states the rows of its model. `details` adds the tokens
    themselves and the first lines that do not round-trip. `missing_bytes`, where bytes are missing,
    has them by what they lose ("losing", "unassigned", "never", as in `CheckReport`), and the first
    lost characters. `engine`, for BPE, has what runs it here (`EngineParts.to_dict`), and
    `pattern_limits`, where there are any, the runtimes that cannot run the regexes (`runtime`,
    `effect`, `reason`). `pattern`: see `load_tokenizers`, which also documents the errors.
    CorpusError for text that cannot be read.

    `runtimes`: "all", or names with commas between them. `runtimes` in the result then has a
    verdict for each, as `vocabshift.check_runtimes` reports it, with `label` and `is_fault`. A
    refusal is a fault of a runtime that was named, other faults are always. `ok` counts them.
    `time_limit`: seconds for each runtime. ImportError for a named runtime that is not installed.
    """
    from vocabshift.checks.check import check
    from vocabshift.checks.runtime_reports import choose, compare_runtimes

    entries = []
    chosen = () if runtimes is None else choose(runtimes)
    loaded = load_tokenizers(tokenizers, pattern=pattern)
    for source, tokenizer in zip(tokenizers, loaded, strict=True):
        rows = model_rows(source)
        report = check(tokenizer, corpus, threads=threads, model_rows=rows)
        entry = {"tokenizer": str(source), **_counts(report)}
        if rows is not None:
            entry |= {"model_rows": rows, "missing_rows": report.missing_rows}
        entry["languages"] = [
            row.to_dict() | {"is_bound": row.is_bound} for row in report.languages
        ]
        entry["ok"] = bool(report.ok)
        if runtimes is not None:
            entry["runtimes"] = [
                _verdict(found, is_named=runtimes != "all")
                for found in compare_runtimes(
                    tokenizer, source, chosen, corpus=corpus, time_limit=time_limit
                )
            ]
            entry["ok"] &= not any(verdict["is_fault"] for verdict in entry["runtimes"])
        if report.missing_byte_pieces:
            entry["missing_bytes"] = {
                "losing": list(report.losing_bytes),
                "unassigned": list(report.unassigned_bytes),
                "never": list(report.never_bytes),
                "lost_characters": list((report.lost_characters or ())[:_SHOWN]),
            }
        if report.engine is not None:
            entry["engine"] = report.engine.to_dict()
        if report.pattern_limits:
            entry["pattern_limits"] = list(map(asdict, report.pattern_limits))
        if details:
            entry["details"] = _details(report)
        entries.append(entry)
    return entries


def _verdict(report: RuntimeReport, *, is_named: bool) -> dict[str, Any]:
    is_fault = not report.ok or (is_named and report.status != "ok")
    label = RUNTIMES[report.runtime].label
    return {**report.to_dict(), "label": label, "is_fault": is_fault}


def _counts(report: CheckReport) -> dict[str, Any]:
    values = {key: getattr(report, key) for key in CHECKED}
    return {
        key: value if value is None or isinstance(value, int) else len(value)
        for key, value in values.items()
    }


def _details(report: CheckReport) -> dict[str, Any]:
    """The tokens of each count that lists them, and the lines that are lost."""
    tokens = {
        key: list(value) for key in CHECKED if isinstance(value := getattr(report, key), tuple)
    }
    lost = {row.language: row.lost_lines for row in report.languages if row.lost_lines}
    return {**tokens, "lost_lines": lost}


def advice(entry: dict[str, Any]) -> list[str]:
    """What was found in a checked tokenizer, in sentences.

    `entry`: one result of `check_tokenizers`; empty if there is nothing to say.
    """
    parts = (about_engine, _about_bytes, _about_ceilings, _about_residue, about_limits)
    return [line for about in parts for line in about(entry)]


def _about_residue(entry: dict[str, Any]) -> list[str]:
    n_residue, n_tokens = entry["merge_residue"], sum(row["tokens"] for row in entry["languages"])
    about = (
        f"{n_residue or 0:,} tokens of {entry['tokenizer']} are merge residue in {n_tokens:,} (10 "
        "for each token of the vocabulary say enough): longer tokens use them up, models hardly "
        "learn them (glitch). prune removes them after the longer ones."
    )
    return [about] if n_residue else []


def _about_bytes(entry: dict[str, Any]) -> list[str]:
    missing, name = entry.get("missing_bytes"), entry["tokenizer"]
    lines: list[str] = []
    if entry["lost_characters"] is None:
        lines.append(
            f"{name} has no bytes to fall back on: characters that it does not know become its "
            "unknown token. Text (--text) tells how many lines do not round-trip."
        )
    if missing is None:
        return lines
    harmless = [
        f"{len(missing[key])} {what} ({' '.join(missing[key])})"
        for key, what in (
            ("never", "that no UTF-8 text holds"),
            ("unassigned", "that only unassigned characters are spelt with"),
        )
        if missing[key]
    ]
    if harmless:
        lines.append(f"Of the 256 bytes {name} lacks {' and '.join(harmless)}: no text needs them.")
    if missing["losing"]:
        n_lost = entry["lost_characters"]
        more = ", …" if n_lost > len(missing["lost_characters"]) else ""
        lines.append(
            f"Of the 256 bytes {name} lacks {len(missing['losing'])} that text may hold "
            f"({' '.join(missing['losing'])}): of the assigned characters it loses {n_lost:,} "
            f"({', '.join(missing['lost_characters'])}{more}). The flag --complete-bytes of extend"
            ", prune, adapt and transfer adds tokens for them."
        )
    return lines


def _about_ceilings(entry: dict[str, Any]) -> list[str]:
    from vocabshift.checks.text import NEAR

    bound = [row for row in entry["languages"] if row["is_bound"]]
    if not bound:
        return []
    lifts = ", ".join(
        f"{row['language']} {row['ceiling_bytes_per_token']:.2f} -> "
        f"{row['repaired_ceiling_bytes_per_token']:.2f}"
        for row in bound
    )
    lines = [
        "The pre-tokenizer cuts words at combining marks, and no new token reaches across. "
        f"vocabshift extend {shlex.quote(entry['tokenizer'])} --pre-tokenizer repaired lifts the "
        f"ceiling, in bytes per token: {lifts}."
    ]
    near = [
        f"{row['language']} {row['ceiling_bytes_per_token'] / row['bytes_per_token'] - 1:.1%}"
        for row in bound
        if row["bytes_per_token"] > NEAR * row["ceiling_bytes_per_token"]
    ]
    if near:
        lines.append(f"Without it, any number of new tokens gains at most: {', '.join(near)}.")
    return lines


def model_rows(source: str | Path) -> int | None:
    """Embedding rows stated in the `config.json` of a tokenizer's folder, or None."""
    path = Path(source)
    file = (path if path.is_dir() else path.parent) / "config.json"
    try:
        config = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    found = None
    if isinstance(config, dict):
        text = config.get("text_config")
        found = config.get("vocab_size", text.get("vocab_size") if isinstance(text, dict) else None)
    return found if type(found) is int and 0 < found < 1 << 31 else None
