"""Publish results: tables, pictures, a model card, a folder on the Hugging Face Hub.

Owns the files that each of them reads and writes. `report` draws and renders; `storage.hub` talks
to the Hub.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vocabshift.report.plots import check_picture, draw_plan
from vocabshift.report.shapes import SHAPES
from vocabshift.report.table_formats import FORMATS
from vocabshift.results import read_results
from vocabshift.storage.output import check_free_file, write_whole

__all__ = [
    "FORMATS",
    "SHAPES",
    "check_picture",
    "draw_plan",
    "publish_folder",
    "write_card",
    "write_tables",
]


def write_tables(
    results: Sequence[str | Path],
    out: str | Path | None = None,
    *,
    shape: str = "languages",
    format: str = "markdown",
    subjects: Sequence[str] = (),
    intervals: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write results as tables of a shape of `SHAPES` in a format of `FORMATS`.

    `results`: files that `evaluate_to_files` or `Results.save` wrote. `subjects`: only these, in
    this order. `intervals`: show half the 95 % interval after each value. `out`, if given, is
    written whole or not at all: FileExistsError if it exists, unless `force`. ValueError for files
    that hold no rows, an unknown shape or format, or an output that is an input.

    Returns plain JSON values: `out`, `shape`, `tables` (how many) and `text`.
    """
    from vocabshift.report.paper_tables import paper_tables
    from vocabshift.text.languages import family, find_language

    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; known are: {', '.join(FORMATS)}")
    path = None if out is None else check_free_file(out, force=force, inputs=results)
    rows = read_results(results)
    labels = rows.distinct("language")
    known = {label: find_language(label) for label in labels}
    sheets = paper_tables(
        rows,
        shape,
        subjects=subjects,
        names={label: language.name for label, language in known.items() if language},
        families={label: found for label in labels if (found := family(label))},
    )
    text = FORMATS[format](sheets, intervals)
    if path is not None:
        write_whole(path, text)
    return {
        "out": None if out is None else str(out),
        "shape": shape,
        "tables": len(sheets),
        "text": text,
    }


def write_card(
    folder: str | Path,
    results: Sequence[str | Path],
    out: str | Path,
    *,
    subject: str | None = None,
    name: str | None = None,
    base: str | None = None,
    sources: Sequence[str | Path] = (),
    evaluated_on: str = "",
    license: str | None = None,
    rebuild: str = "",
    limits: Sequence[str] = (),
    force: bool = False,
) -> dict[str, Any]:
    """Write the model card of a tokenizer or a model that vocabshift wrote.

    `results`: files of `evaluate_to_files`, and for a model of `score` and `harness`; `subject`:
    its name in them, and `name` its name on the card (both by default the folder's). `base`: Hub
    name of the model that it was made of, where the records name none. `sources`: tables of its
    training text (tab-separated; columns source, bytes, class, licence). `evaluated_on`: the text
    that the results were measured on. `license`: as the Hub spells it. `rebuild`: the command that
    makes it again. `limits`: further sentences.

    `out` is written whole or not at all: FileExistsError if it exists, unless `force`.
    InvalidTokenizerError for a folder that vocabshift did not write; ValueError for files without
    results or without a table of sources, and for `base` with a tokenizer. Returns the data of the
    card as plain JSON values.
    """
    from vocabshift.models.folder import find_model
    from vocabshift.report.card import render_card
    from vocabshift.report.card_facts import read_facts, read_sources
    from vocabshift.report.model_card import read_model_facts, render_model_card
    from vocabshift.storage.hub import check_repo
    from vocabshift.text.languages import find_language

    path = check_free_file(out, force=force, inputs=[*results, *sources])
    is_model = Path(folder).is_dir() and find_model(Path(folder)) is not None
    if base is not None and not is_model:
        raise ValueError(f"{folder} holds no weights, and only a model has a base model")
    rows = read_results(results)
    facts: Any = read_model_facts(folder) if is_model else read_facts(folder)
    subject = subject or facts.name
    facts = replace(facts, name=name or facts.name)
    tables = [source for file in sources for source in read_sources(file)]
    labels = [source.language for source in tables] or rows.distinct("language")
    known = filter(None, map(find_language, labels))
    languages = sorted({language.short_code or language.code for language in known})
    said: dict[str, Any] = {
        "subject": subject,
        "languages": languages,
        "license": license,
        "evaluated_on": evaluated_on,
        "rebuild": rebuild,
        "limits": list(limits),
    }
    if is_model:
        said["base"] = None if base is None else check_repo(base)
        card = render_model_card(rows, facts, sources=tables, **said)
    else:
        card = render_card(rows, facts, sources=tables, **said)
    write_whole(path, card)
    sized = [asdict(source) for source in tables]
    return {"out": str(path), "facts": facts.to_dict(), "sources": sized, **said}


def publish_folder(
    folder: str | Path,
    repo: str,
    *,
    upload: bool = False,
    public: bool = False,
    message: str = "Upload with vocabshift",
) -> dict[str, Any]:
    """Check a folder that vocabshift wrote, and with `upload` send it to the Hugging Face Hub.

    The tokenizer is opened with the libraries that others use. A card (README.md) of this
    tokenizer must be there, and nothing may be unfinished; ValueError (InvalidTokenizerError) says
    what is wrong. `repo`: OWNER/NAME; a new one is private unless `public`, and an existing one
    keeps its visibility. `message`: the commit message. Needs the [hf] extra.

    Returns plain JSON values: the files with their sizes, the card's metadata, which libraries
    opened the tokenizer, and the address of the upload.
    """
    from vocabshift.report.card_facts import TOKENIZER_FILE, sha256_of
    from vocabshift.storage import hub

    repo = hub.check_repo(repo)
    path = Path(folder)
    files = hub.files_of(path)
    if TOKENIZER_FILE not in {file.name for file in files}:
        raise ValueError(f"{path} holds no {TOKENIZER_FILE}; publish what vocabshift wrote")
    sha256 = sha256_of(path / TOKENIZER_FILE)
    card = hub.read_card(path, sha256)
    opened_by = _open_again(path)
    url = None
    if upload:
        url = hub.upload(path, repo, files, is_private=not public, message=message)
    return {
        "folder": str(path),
        "repo": repo,
        "private": not public,
        "uploaded": url is not None,
        "url": url,
        "files": [{"name": file.name, "bytes": file.n_bytes} for file in files],
        "total_bytes": sum(file.n_bytes for file in files),
        "sha256": sha256,
        "opened_by": opened_by,
        "card": {key: card.get(key) for key in ("license", "language", "library_name", "tags")},
    }


def _open_again(folder: Path) -> list[str]:
    """Open the tokenizer with other libraries and compare its ids; return their names, or raise."""
    from vocabshift.report.card_facts import TOKENIZER_FILE
    from vocabshift.tokenizer.formats.load import load_folder
    from vocabshift.tokenizer.pretrained_folder import check_auto, verify

    # Our tokenizer was read from this very file, so only the result of `tokenizers` is in doubt.
    text = (folder / TOKENIZER_FILE).read_text(encoding="utf-8").rstrip("\n")
    verify(load_folder(folder), folder, text=text)
    if find_spec("transformers") is None:
        return ["tokenizers"]
    check_auto(folder)
    return ["tokenizers", "transformers"]
