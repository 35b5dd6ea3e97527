"""`extend` into a folder: what `vocabshift extend` does.

Owns what stands in the folder: the tokenizer's files, `token_map.json`, `vocabshift.json`.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vocabshift.extension.extend import Extension, extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.progress import Progress
from vocabshift.storage.output import atomic_folder, check_free
from vocabshift.storage.provenance import write_provenance
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.tokenizer.pretrained_folder import write_files


def extend_to_folder(
    tokenizer: Any,
    source: Corpus | CountFolder,
    options: ExtensionOptions,
    out: str | Path,
    *,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Extend, write the folder, reopen it with `tokenizers` and compare; the contract's keys.

    The folder appears whole or not at all. FileExistsError where it exists, without `force`.
    """
    inputs = source.paths if isinstance(source, Corpus) else [source.path]
    if isinstance(tokenizer, str | Path):
        inputs = [*inputs, Path(tokenizer)]
    check_free(out, force=force, inputs=inputs)
    extension = extend_with_report(tokenizer, source, options, threads=threads, progress=progress)
    with atomic_folder(out, force=force) as partial:
        write_extension(extension, options, partial)
    return {"out": str(out), **extension.report.to_dict()}


def write_extension(extension: Extension, options: ExtensionOptions, folder: Path) -> None:
    """Write all files of an extension into an existing folder, and compare what is read back."""
    write_files(extension.tokenizer, folder)
    extension.id_map.save(folder)
    figures = extension.report.to_dict()
    config = {"old": extension.id_map.old, **json.loads(json.dumps(asdict(options)))}
    write_provenance(
        folder,
        "extend",
        config,
        figures,
        corpus_fingerprint=extension.report.corpus_fingerprint,
    )
