"""`extend` into a folder: what `vocabshift extend` does.

Owns the contents of the folder: the tokenizer's files,
`token_map.json`, `vocabshift.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from vocabshift.errors import CorpusError
from vocabshift.extension.extend import extend_with_report
from vocabshift.extension.options import ExtensionOptions
from vocabshift.progress import Progress
from vocabshift.storage.outcome import outcome
from vocabshift.text.corpus import Corpus
from vocabshift.text.count_folder import CountFolder
from vocabshift.text.regexes import WORTHWHILE_LIFT
from vocabshift.tokenizer.formats.load import TokenizerLike, as_tokenizer, load_tokenizer
from vocabshift.tokenizer.pretrained_folder import write_files
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.extend_with_superwords import extend_with_superwords

__all__ = ["WORTHWHILE_LIFT", "ExtensionOptions", "extend_to_folder"]


def extend_to_folder(
    tokenizer: TokenizerLike,
    source: Corpus | CountFolder,
    options: ExtensionOptions,
    out: str | Path,
    *,
    n_superwords: int | None = None,
    sentencepiece_model: str | Path | None = None,
    inputs: Iterable[str | Path] = (),
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Extend, write the folder, reopen it with `tokenizers` and compare.

    tokenizer, source, options: as for `extend`. n_superwords: also learn this many superwords
        inside sentences, from the text itself (a Corpus).
    sentencepiece_model: file whose rules new pieces obey; None: the one next to the tokenizer.
    out: the folder, which appears whole or not at all. inputs: further paths, besides the
        tokenizer and the source, that it may not replace.
    threads: the result does not depend on it. progress: called with the phase, the work done and
        the total work.

    Returns the keys of `vocabshift extend --json`. FileExistsError if `out` exists, without
    `force`; ValueError or CorpusError if nothing can be learned.
    """
    with outcome("extend", out, inputs=[tokenizer, source, *inputs], force=force) as output:
        if sentencepiece_model is not None:
            tokenizer = _with_rules(tokenizer, sentencepiece_model)
        config = json.loads(json.dumps(asdict(options)))
        if n_superwords is None:
            words = extend_with_report(
                tokenizer, source, options, threads=threads, progress=progress
            )
            result, id_map, figures = words.tokenizer, words.id_map, words.report.to_dict()
        else:
            if not isinstance(source, Corpus):
                raise CorpusError("--superwords needs the text itself; give --corpus")
            longer = extend_with_superwords(
                tokenizer,
                source,
                options,
                n_superwords=n_superwords,
                threads=threads,
                progress=progress,
            )
            words, result, id_map = longer.words, longer.tokenizer, longer.id_map
            figures = longer.to_dict()
            config["n_superwords"] = n_superwords
        write_files(result, output.folder)
        return output.record(
            {"old": id_map.old, **config},
            figures,
            corpus_fingerprint=words.report.corpus_fingerprint,
            id_map=id_map,
        )


def _with_rules(tokenizer: TokenizerLike, file: str | Path) -> Tokenizer:
    """The tokenizer with the rules of a SentencePiece model."""
    model = load_tokenizer(file)
    if model.piece_rules is None:
        raise ValueError(f"{file} is no SentencePiece model; give the tokenizer.model of the base")
    return replace(as_tokenizer(tokenizer), piece_rules=model.piece_rules)
