"""`vocabshift.json`: how a folder was made, in one format for every operation.

It does not depend on time, place or thread count, so equal runs write equal bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "vocabshift.json"


def config_hash(config: Mapping[str, Any]) -> str:
    """Sixteen hex digits that identify a configuration of plain JSON values."""
    text = json.dumps(config, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """The contents of a folder's `vocabshift.json`; None if there is none."""
    file = folder / FILE
    if not file.exists():
        return None
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


def write_provenance(
    folder: Path,
    operation: str,
    config: Mapping[str, Any],
    figures: Mapping[str, Any],
    *,
    corpus_fingerprint: str | None = None,
) -> None:
    """Write `vocabshift.json` into a folder."""
    from vocabshift import __version__

    document = {
        "version": __version__,
        "operation": operation,
        "config": config,
        "config_hash": config_hash(config),
        "corpus_fingerprint": corpus_fingerprint,
        "figures": figures,
    }
    text = json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
