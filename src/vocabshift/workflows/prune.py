"""The public `prune`, and pruning into a folder: what `vocabshift prune` does.

Joins pruning with surgery and evaluation, whose bits per byte say where to stop. Owns the files of
the folder (the tokenizer's, `token_map.json`, `vocabshift.json`) and the keys of the result.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vocabshift.errors import InvalidTokenizerError
from vocabshift.models.folder import check_own_tokenizer, find_model
from vocabshift.models.load import load_causal_model
from vocabshift.models.tables import named_tensors
from vocabshift.progress import Progress
from vocabshift.pruning.counts import Source, languages_of
from vocabshift.pruning.effects import Pruning
from vocabshift.pruning.options import PruningOptions, check_kind, check_languages, parse_keep
from vocabshift.pruning.orders import NEED_COUNTS, ORDERS
from vocabshift.pruning.prune import prune_with_report
from vocabshift.pruning.stopping import MEASURES, Measure, bytes_per_token
from vocabshift.results import UNLABELLED
from vocabshift.storage.outcome import Outcome, check_output, outcome
from vocabshift.tokenizer import id_map
from vocabshift.tokenizer.any_tokenizer import AnyTokenizer
from vocabshift.tokenizer.formats.load import TokenizerLike, open_tokenizer
from vocabshift.tokenizer.id_map import TokenIdMap
from vocabshift.tokenizer.pretrained_folder import write_files

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from vocabshift.text.corpus import Corpus
    from vocabshift.tokenizer.tokenizer import Tokenizer
    from vocabshift.tokenizer.unigram_or_wordpiece import UnigramOrWordPieceTokenizer

__all__ = ["MEASURES", "NEED_COUNTS", "ORDERS", "prune", "prune_to_folder"]


def prune(
    tokenizer: TokenizerLike,
    corpus: Source | None = None,
    *,
    n_tokens: int | None = None,
    vocab_size: int | None = None,
    until: float | None = None,
    by: str = MEASURES[0],
    held_out: Corpus | None = None,
    model: PreTrainedModel | str | Path | None = None,
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    keep_ids: bool = False,
    unreachable_first: bool = False,
    drop_unseen_characters: bool = False,
    complete_bytes: bool = False,
    threads: int = 1,
) -> Tokenizer | UnigramOrWordPieceTokenizer:
    """Remove `n_tokens` tokens from a tokenizer, or all but `vocab_size`; return the smaller one.

    Special and added tokens, bytes, characters and "<0xNN>" are never removed, nor is a token that
    a remaining token is made of. The same text gives the same result.

    tokenizer: one of ours, a `tokenizers` or fast transformers tokenizer, or a path or Hub name;
        BPE, Unigram or WordPiece.
    corpus: a Corpus or, for byte-level BPE, a CountFolder; the orders "leaf-id" and "id" need no
        text.
    n_tokens, vocab_size, until: the number of tokens to remove, or to keep in the model, or how
        much worse `held_out` may become, as a share (0.005 is 0.5 %); one of them. With several
        labels the one that loses most decides.
    by: what `until` limits: the rise of "bits-per-byte" under `model`, which has this tokenizer
        (in memory, where it is not changed, a folder or a Hub name; nothing is trained), or the
        fall of "bytes-per-token". The search halves the range that is left, to within 1/256 of the
        tokens that can go, or to one token; it takes the value to grow with what is removed.
    held_out: text that tells how good the tokenizer is, other than `corpus`.
    order: "leaf-frequency" (tokens that nothing is made of, the rarest first), "leaf-id" (of these
        the highest id), "merge" (the rarest in any merge; BPE alone), "frequency" (the rarest in
        the end), "id" (the highest id, with what is made of it), "script" (scripts that the text
        uses least).
    keep: further tokens to keep: a token, "file:PATH" (one a line), "script:Deva",
        "language:LABEL" (the tokens that the text of that label uses).
    keep_ids: leave ids as they are, with holes; otherwise they are packed densely in the old order.
        Not for Unigram.
    unreachable_first: first the tokens that their own merges cannot make; BPE alone.
    drop_unseen_characters: of Unigram and WordPiece, also remove single characters that the
        corpus does not have; text with these then has unknown tokens. Not with `until`.
    complete_bytes: first add tokens for the bytes that the vocabulary lacks and that UTF-8 can
        hold; BPE alone. They count in `vocab_size`.
    threads: for encoding; the result does not depend on it.

    ValueError if more tokens are to be removed than can be, if text is needed and not given, or if
    no token can go within `until`;
    InvalidTokenizerError for a tokenizer that cannot be read or split into its parts; CorpusError
    for text that cannot be read or yields no token.

    Source: "Teaching Old Tokenizers New Words", section 4; `pruning.orders` says where we differ.
    Unigram and WordPiece are ours.
    """
    options = PruningOptions(
        order=order,
        n_tokens=n_tokens,
        vocab_size=vocab_size,
        keep=parse_keep(keep),
        keep_ids=keep_ids,
        unreachable_first=unreachable_first,
        drop_unseen_characters=drop_unseen_characters,
        complete_bytes=complete_bytes,
        until=until,
        by=by,
    )
    loaded = open_tokenizer(tokenizer)
    return prune_with_report(
        loaded,
        corpus,
        options,
        threads=threads,
        measure=False,
        held_out=_measure(options, loaded, held_out, model, threads=threads),
    ).tokenizer


def prune_to_folder(
    tokenizer: TokenizerLike,
    source: Source | None,
    out: str | Path | None,
    *,
    n_tokens: int | None = None,
    vocab_size: int | None = None,
    until: float | None = None,
    by: str = MEASURES[0],
    held_out: Corpus | None = None,
    model: str | Path | None = None,
    dtype: str = "float32",
    device: str = "auto",
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    keep_ids: bool = False,
    unreachable_first: bool = False,
    drop_unseen_characters: bool = False,
    complete_bytes: bool = False,
    base: str | Path | None = None,
    threads: int = 1,
    force: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Prune, measure, and write the folder.

    tokenizer, source, n_tokens, vocab_size, until, by, held_out, order, keep, keep_ids,
        unreachable_first, drop_unseen_characters, complete_bytes: as for `prune`.
    model: for bits per byte, a folder or Hub name; None: the tokenizer's own folder. dtype, device:
        of the loaded model, as for `score_models`.
    out: the folder, which appears whole or not at all; None: nothing is written.
    base: the path of the tokenizer, if it is passed loaded; a token map found there is extended
        by ours.
    threads: the result does not depend on it. progress: called with the phase, the bytes done and
        the total.

    Returns the keys of `vocabshift prune --json`. ValueError if more tokens are requested than can
    be removed; InvalidTokenizerError if text would not round-trip as before; FileExistsError if
    `out` exists, without `force`.
    """
    place = tokenizer if base is None else base
    if out is not None:
        check_output(out, source, place, held_out, model, force=force)
    options = PruningOptions(
        order=order,
        n_tokens=n_tokens,
        vocab_size=vocab_size,
        keep=parse_keep(keep),
        keep_ids=keep_ids,
        unreachable_first=unreachable_first,
        drop_unseen_characters=drop_unseen_characters,
        complete_bytes=complete_bytes,
        until=until,
        by=by,
    )
    if (until is None) != (held_out is None):
        raise ValueError("until is measured on held_out: give both, or none of them")
    if until is not None and by == MEASURES[0] and model is None:
        model = _own_model(place)
    check_languages(options.keep, [] if source is None else languages_of(source))
    loaded = open_tokenizer(tokenizer)
    before = id_map.find(place)
    if before is not None:
        before.require(before.old, loaded.fingerprint)
    check_kind(loaded, options)
    inputs = [source, place, held_out, model]
    with (
        nullcontext()
        if out is None
        else outcome("prune", out, inputs=inputs, force=force) as output
    ):
        run: dict[str, Any] = {"threads": threads, "dtype": dtype, "device": device}
        measured = _measure(options, loaded, held_out, model, **run)
        pruning = prune_with_report(
            loaded, source, options, threads=threads, held_out=measured, progress=progress
        )
        _check_round_trip(pruning, loaded.name)
        if output is not None:
            _write(pruning, loaded, options, before, output)
    return {"out": None if out is None else str(out), **asdict(pruning.report)}


def _check_round_trip(pruning: Pruning, name: str) -> None:
    if pruning.report.round_trip_failures:
        raise InvalidTokenizerError(
            f"{pruning.report.round_trip_failures} documents of the corpus would not come back as "
            f"{name} gives them back; nothing is written: keep the tokens that they need "
            "(see --keep), or prune fewer"
        )


def _write(
    pruning: Pruning,
    tokenizer: AnyTokenizer,
    options: PruningOptions,
    before: id_map.TokenIdMap | None,
    output: Outcome,
) -> None:
    write_files(pruning.tokenizer, output.folder)
    step = pruning.id_map
    figures = asdict(pruning.report)
    fingerprint = figures.pop("corpus_fingerprint")
    output.record(
        {
            "base": tokenizer.name,
            "base_fingerprint": tokenizer.fingerprint,
            **asdict(options),
        },
        figures,
        corpus_fingerprint=fingerprint,
        id_map=step if before is None else before.then(step),
    )


def _own_model(place: Any) -> str:
    """The model that lies with the tokenizer; ValueError where there is none."""
    if not isinstance(place, str | Path):
        place = "memory"
    elif find_model(place) is not None:
        return str(place)
    raise ValueError(
        f"bits per byte need the model, and there is none in {place}: name it (model), or limit "
        "bytes-per-token, which need none"
    )


def _measure(
    options: PruningOptions,
    tokenizer: AnyTokenizer,
    held_out: Corpus | None,
    model: Any,
    *,
    threads: int,
    dtype: str = "float32",
    device: str = "auto",
) -> Measure | None:
    """What `until` limits, ready to be asked; None without `until`."""
    if options.until is None:
        return None
    if held_out is None:
        raise ValueError("until is measured on held-out text: give it as held_out")
    if options.by != MEASURES[0]:
        return bytes_per_token(held_out, threads=threads)
    if model is None:
        raise ValueError("bits per byte need the model of the tokenizer; bytes-per-token need none")
    if isinstance(model, str | Path):
        check_own_tokenizer(model, tokenizer)
        model = load_causal_model(model, dtype=dtype, device=device)
    return _bits_per_byte(model, tokenizer, held_out)


def _bits_per_byte(model: Any, old: AnyTokenizer, held_out: Corpus) -> Measure:
    """Bits per byte of the held-out text by label, after the rows of what is gone are taken out."""
    from vocabshift.evaluation.scoring.score import METRIC, score_documents, score_rows
    from vocabshift.surgery.options import TransferOptions
    from vocabshift.surgery.transfer import transfer_model

    texts: dict[str, list[str]] = {}  # read once
    for label, text in held_out.texts():
        texts.setdefault(UNLABELLED if label is None else label, []).append(text)

    def measure(tokenizer: AnyTokenizer, id_map: TokenIdMap | None) -> Mapping[str, float]:
        moved: Any = model
        if id_map is not None:
            # Parameters are shared: a transfer replaces tables, and changes no tensor in place.
            moved = copy.deepcopy(model, {id(own): own for own in named_tensors(model).values()})
            options = TransferOptions(id_map=id_map)
            tokenizer, _ = transfer_model(moved, old=old, new=tokenizer, options=options)
        rows = score_rows("model", score_documents(moved, tokenizer, texts))
        return {row.language: row.value for row in rows if row.metric == METRIC}

    return measure
