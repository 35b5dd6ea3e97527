"""The public `transfer`: a model in memory moved to another tokenizer.

Joins surgery, which makes rows, and evaluation, whose bits per byte select the initializer for
`init="auto"`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.progress import Progress
from vocabshift.storage.outcome import check_output, read_provenance
from vocabshift.surgery.methods import INITIALIZERS, init_names
from vocabshift.surgery.options import AUTO, DISTILL, DistillOptions, Score, TransferOptions

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from vocabshift.surgery.omp import Donor
    from vocabshift.surgery.report import TransferReport
    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.formats.load import TokenizerLike
    from vocabshift.tokenizer.id_map import TokenIdMap
    from vocabshift.tokenizer.tokenizer import Tokenizer

__all__ = [
    "AUTO",
    "DISTILL",
    "INITIALIZERS",
    "DistillOptions",
    "TransferOptions",
    "bits_per_byte",
    "init_names",
    "transfer",
    "transfer_back_to_folder",
    "transfer_to_folder",
]

Overrides = Mapping[str, str | int | Sequence[str]]
"""New token -> old token or id, or a list of pieces."""

_DEFAULTS = TransferOptions()
_KEYS = ("n_copied", "n_initialized", "n_removed", "tied", "vocab_size", "rows")


def transfer(
    model: PreTrainedModel,
    *,
    old: TokenizerLike,
    new: TokenizerLike,
    init: str = TransferOptions.init,
    text: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = None,
    seed: int = TransferOptions.seed,
    pad_to_multiple_of: int | None = TransferOptions.pad_to_multiple_of,
    id_map: TokenIdMap | str | Path | None = TransferOptions.id_map,
    donor: Donor | str | Path | None = TransferOptions.donor,
    corpus: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = TransferOptions.corpus,
    score: Score | None = TransferOptions.score,
    overrides: str
    | Path
    | Mapping[str, str | int | Sequence[str]]
    | None = TransferOptions.overrides,
    reserve_dummies: int = TransferOptions.reserve_dummies,
    complete_bytes: bool = TransferOptions.complete_bytes,
    distill: DistillOptions = TransferOptions.distill,
    progress: Progress | None = None,
) -> tuple[PreTrainedModel, Tokenizer]:
    """Move `model` from tokenizer `old` to `new`; `model` is changed in place (no copy is made).

    Tokens of the old vocabulary keep their rows bit for bit, in input embeddings and head. Any
    other token gets the row that `init` makes; the head's bias is made in the same way. The names
    are those of `vocabshift transfer --init`, and `docs/transfer.md` describes each one. `seed`
    fixes everything random. The ids in `model.config` and `model.generation_config` are updated.

    `old`, `new`: a Tokenizer, a transformers or `tokenizers` one, or a path. `text`: a Corpus or
    texts, a few hundred kilobytes of all languages that matter, on which `init="auto"` tries the
    initializers; it keeps the one with the fewest bits per byte. `score`: another function of model
    and tokenizer to choose by, lower is better. `donor`: for "omp", a model (folder or Hub name)
    that has the new tokens; `corpus`: for "focus" and "distill", text of the new tokenizer's
    languages. `distill`: how "distill" learns rows; it runs `model` where it is, and `progress` is
    called with the phase ("snippets", "distill"), the work done and the total.

    Rows are padded to a multiple of `pad_to_multiple_of`; None pads as the model was padded before.
    `id_map`: the new id of each old id, as `prune` and `extend` write it; None takes the
    `token_map.json` next to `new`, if there is one. Tokens that it does not name are matched by
    bytes. `overrides` takes precedence over both: {new token: old token, or list of old tokens}, or
    a JSON or TOML file of it. `reserve_dummies`: add this many special tokens to `new` that occur
    in no text, with rows by `init` like other new tokens. They are the reference by which
    `vocabshift glitch` finds tokens that training never reached. `complete_bytes`: add to `new` a
    token for each byte that it lacks and that UTF-8 can hold (BPE alone). A new token of which the
    old tokenizer knows no byte gets the mean of the old rows, if `init` makes rows of old tokens.

    Returns the model and the tokenizer to use with it: `new` with its own ids, followed by the
    special tokens of `old` that it lacked. ValueError (often VocabMismatchError) before anything
    is changed.
    """
    from vocabshift.surgery.transfer import transfer_model

    options = TransferOptions(
        init=init,
        seed=seed,
        pad_to_multiple_of=pad_to_multiple_of,
        id_map=id_map,
        donor=donor,
        corpus=corpus,
        score=score if text is None else bits_per_byte(text),
        overrides=overrides,
        reserve_dummies=reserve_dummies,
        complete_bytes=complete_bytes,
        distill=distill,
    )
    tokenizer, _ = transfer_model(model, old=old, new=new, options=options, progress=progress)
    return model, tokenizer


def bits_per_byte(text: Corpus | Mapping[str, Iterable[str]] | Iterable[str]) -> Score:
    """A function of model and tokenizer: bits per byte of all of `text`, over all languages."""
    from vocabshift.evaluation.scoring.score import score_documents
    from vocabshift.text.corpus import Corpus

    corpus = text if isinstance(text, Corpus) else Corpus.from_texts(text)
    corpus.require_text()

    def score(model: Any, tokenizer: Any) -> float:
        documents = score_documents(model, tokenizer, corpus)
        nats = sum(document.nats for document in documents)
        return nats / math.log(2) / sum(document.n_bytes for document in documents)

    return score


def transfer_to_folder(
    model: str | Path,
    tokenizer: TokenizerLike,
    out: str | Path,
    options: TransferOptions = _DEFAULTS,
    *,
    text: Corpus | None = None,
    tokenizer_source: str | Path | None = None,
    force: bool = False,
    hard_links: bool = False,
    resume: bool = True,
    dry_run: bool = False,
    with_details: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Transfer a saved model; write model and tokenizer as one folder.

    model: folder or Hub name; it is not changed. tokenizer: the new one. options: as for
        `transfer`. text: the text on which "auto" tries the initializers.
    tokenizer_source: the path of the tokenizer, if it is passed loaded; a token map there is used.
    out: the folder, which appears whole or not at all. hard_links: link unchanged shards.
    resume: reuse the finished work of a run that was killed. dry_run: check and plan, write
        nothing. with_details: list every token that is kept, added, removed or ambiguous.
    progress: of "distill": called with the phase, the work done and the total.

    Returns the keys of `vocabshift transfer --json`. ValueError (often VocabMismatchError) before
    anything is written; FileExistsError if `out` exists, without `force`; OSError if the disk is
    full.
    """
    from vocabshift.surgery.transfer import token_lists, transfer_folder
    from vocabshift.tokenizer import id_map
    from vocabshift.tokenizer.formats.load import open_tokenizer

    place = tokenizer if tokenizer_source is None else tokenizer_source
    check_output(out, model, place, options.donor, options.overrides, text, force=force)
    loaded = open_tokenizer(tokenizer)  # an invalid one is refused before the model is read
    if options.id_map is None:
        options = replace(options, id_map=id_map.find(place))
    if text is not None:
        options = replace(options, score=bits_per_byte(text))
    details = {}
    if with_details:
        details = {"details": token_lists(model, loaded, options).to_dict()}
    report = transfer_folder(
        model,
        loaded,
        Path(out),
        options,
        force=force,
        hard_links=hard_links,
        resume=resume,
        dry_run=dry_run,
        progress=progress,
    )
    if details and report.distilled:
        lacking = set(report.distilled["without_snippets"])
        rows = [row for row in details["details"]["added"] if row["id"] in lacking]
        details["details"]["without_snippets"] = rows
    return _result(Path(out), report, dry_run=dry_run) | details


def transfer_back_to_folder(
    model: str | Path, initial: str | Path, out: str | Path, *, force: bool = False
) -> dict[str, Any]:
    """Undo a transfer: move `model` back to the tokenizer of `initial`, the original model.

    Tokens shared with that tokenizer keep the rows of `model`; the others take those of `initial`.
    Returns the keys of `vocabshift transfer --json`; errors as for `transfer_to_folder`.
    """
    from vocabshift.surgery.back import transfer_back_folder

    check_output(out, model, initial, force=force)
    report = transfer_back_folder(model, initial, Path(out), force=force)
    return _result(Path(out), report, dry_run=False)


def _result(out: Path, report: TransferReport, *, dry_run: bool) -> dict[str, Any]:
    """The keys of the result, with notes and details."""
    result = {"out": str(out), **{key: getattr(report, key) for key in _KEYS}}
    result |= {"init": report.init, "n_overridden": report.n_overridden}
    result |= {"n_ambiguous": len(report.ambiguous)}
    result["ambiguous"] = [
        {"id": new_id, "old_ids": old_ids} for new_id, old_ids in report.ambiguous.items()
    ]
    result |= {"dry_run": dry_run, "notes": [] if dry_run else notes_of(out)}
    keys = ("n_moved", "n_by_mean", "n_described", "bytes_before", "bytes_after", "files")
    for key in (*keys, "left_out"):
        result[key] = getattr(report, key)
    result |= distilled_of(report)
    if report.lost_characters is not None:
        result["lost_characters"] = asdict(report.lost_characters)
    if report.tried:
        result["tried"] = [
            {"init": init, "bits_per_byte": bits} for init, bits in report.tried.items()
        ]
    if (out / "tokenization_vs.py").exists():
        result["tokenizer_code"] = str(out / "tokenization_vs.py")
    return result


def distilled_of(report: TransferReport) -> dict[str, Any]:
    """The key `distilled` of a result, if "distill" made rows; tokens without snippets counted."""
    if not report.distilled:
        return {}
    n_without = len(report.distilled["without_snippets"])
    return {"distilled": report.distilled | {"without_snippets": n_without}}


def notes_of(folder: Path) -> list[str]:
    """The notes about other programs in a folder that `transfer` wrote."""
    written = read_provenance(folder)
    return [] if written is None else list(written["figures"]["notes"])
