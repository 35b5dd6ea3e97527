"""`adapt` for a model: exchange tokens at constant vocabulary size and move the model to them.

Joins planning, adaptation and transfer, and measures before and after on held-out text. Invalid
requests are refused before anything is learned, and the output appears whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vocabshift.extension.named_tokens import NOTHING, AnyKind, NamedTokens
from vocabshift.extension.options import ExtensionOptions
from vocabshift.models.facts import number_of_parameters, size_of_weights
from vocabshift.models.folder import find_model
from vocabshift.progress import Progress
from vocabshift.results import Results
from vocabshift.storage.outcome import Outcome, outcome, read_provenance
from vocabshift.storage.output import CHECKPOINTS
from vocabshift.surgery.options import AUTO, DistillOptions, TransferOptions
from vocabshift.surgery.report import TransferReport
from vocabshift.surgery.transfer import transfer_folder
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import excerpt
from vocabshift.tokenizer.formats.load import open_tokenizer
from vocabshift.workflows.adapt_card import (
    AFTER,
    BEFORE,
    FILE,
    AdaptationCard,
    Side,
    measure_bits,
    measure_tokens,
    sample_texts,
)
from vocabshift.workflows.adapt_request import check_options, open_model, split_corpus
from vocabshift.workflows.adapt_steps import First
from vocabshift.workflows.adapt_tokenizer import Adaptation, adapt_tokenizer
from vocabshift.workflows.plan import CorpusCounts, plan
from vocabshift.workflows.transfer import bits_per_byte, distilled_of, notes_of

SCORE_BYTES = 20_000
"""Of each language: what the models read for the bits per byte, by default."""

_FROM_TRANSFER = ("n_copied", "n_initialized", "n_removed", "tied", "vocab_size", "rows")
_ALSO = ("init", "n_moved", "bytes_before", "bytes_after", "files", "left_out")


@dataclass(frozen=True)
class ModelAdaptation:
    """A model folder that was written, and how it was made."""

    out: Path
    adaptation: Adaptation
    transfer: TransferReport
    card: AdaptationCard
    n_tokens: int  # requested, or found by `plan`
    is_planned: bool
    notes: tuple[str, ...]  # what other programs require of it

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        moved = asdict(self.transfer)
        tried = [
            {"init": init, "bits_per_byte": price} for init, price in self.transfer.tried.items()
        ]
        return {
            "out": str(self.out),
            **self.adaptation.to_dict(),
            **{key: moved[key] for key in (*_FROM_TRANSFER, *_ALSO)},
            **({"tried": tried} if tried else {}),
            **distilled_of(self.transfer),
            "n_tokens": self.n_tokens,
            "n_tokens_is_planned": self.is_planned,
            "card": self.card.to_dict(),
            "notes": list(self.notes),
        }


def adapt_model(
    model: str | Path,
    corpus: Corpus,
    out: str | Path,
    *,
    n_tokens: int | None = None,
    named: NamedTokens = NOTHING,
    text: Corpus | Mapping[str, Iterable[str]] | Iterable[str] | None = None,
    init: str = TransferOptions.init,
    donor: str | Path | None = None,
    distill: DistillOptions = TransferOptions.distill,
    seed: int = TransferOptions.seed,
    with_score: bool = True,
    score_bytes: int = SCORE_BYTES,
    device: str | None = None,
    force: bool = False,
    hard_links: bool = False,
    resume: bool = True,
    first: First = "prune",
    order: str = "leaf-frequency",
    keep: Iterable[str] = (),
    pre_tokenizer: str = ExtensionOptions.pre_tokenizer,
    tie_break: str = ExtensionOptions.tie_break,
    min_frequency: int = ExtensionOptions.min_frequency,
    max_token_bytes: int | None = ExtensionOptions.max_token_bytes,
    character_coverage: float | None = ExtensionOptions.character_coverage,
    complete_bytes: bool = ExtensionOptions.complete_bytes,
    fill_holes: bool = ExtensionOptions.fill_holes,
    normalizer: str | None = ExtensionOptions.normalizer,
    sampling_alpha: float | None = ExtensionOptions.sampling_alpha,
    threads: int = 1,
    progress: Progress | None = None,
) -> ModelAdaptation:
    """Exchange `n_tokens` tokens of a saved model for new ones of `corpus`; write a model folder.

    model: a folder (or Hub name) with its tokenizer. It is streamed and loaded whole only for the
        score; it is not changed. The number of rows and every kept token's id and row stay.
    corpus: text of every language whose quality must be kept.
    out: the folder, which appears whole or not at all, with `adapt.md`, the card, in it.
    n_tokens: None takes `Plan.exchange_of`: the knee of the curve for this `pre_tokenizer`, or
        fewer if removing that many costs a language too much; 0 where something is `named`.
    named: words and special tokens to add, for which as many tokens are removed.
    text: the held-out text to measure on; None holds out every twentieth document of `corpus`,
        and nothing is learned from these.
    init, donor, distill, seed: the new rows, as for `transfer` ("focus", "distill" and "auto" read
        the text that is learned from; "auto" tries initializers on `score_bytes` of each language).
    with_score: run the model, before and after, on the first `score_bytes` bytes of UTF-8 of each
        language of the held-out text, on `device` (a torch device; None: the CPU).
    force, hard_links, resume: replace `out`, link unchanged shards, reuse the finished work of a
        run that was killed.
    first, order, keep, pre_tokenizer, tie_break, min_frequency, max_token_bytes,
        character_coverage, complete_bytes, fill_holes, normalizer, sampling_alpha: as for
        `adapt_tokenizer`.
    threads: the result does not depend on it. progress: called with the phase, the work done and
        the total work.

    ValueError (often VocabMismatchError, CorpusError) or OSError, where possible before anything
    is learned; FileExistsError without `force` if `out` exists.
    """
    folder, old = open_model(model, only_named=bool(named) and not n_tokens)
    learned, judged, judged_on = split_corpus(corpus, text)
    options: dict[str, Any] = {
        "first": first,
        "order": order,
        "keep": tuple(keep),
        "min_frequency": min_frequency,
        "sampling_alpha": sampling_alpha,
    }
    # Recorded in `vocabshift.json` only if they differ from their defaults.
    rare = {
        "tie_break": tie_break,
        "max_token_bytes": max_token_bytes,
        "character_coverage": character_coverage,
        "complete_bytes": complete_bytes,
        "fill_holes": fill_holes,
        "normalizer": normalizer,
    }
    options |= {k: v for k, v in rare.items() if v != getattr(ExtensionOptions, k)}
    run: dict[str, Any] = {"threads": threads, "progress": progress}
    with outcome(
        "adapt",
        out,
        inputs=[folder, donor, learned, judged],
        force=force,
        keep_checkpoints=True,
        resume=resume,
    ) as output:
        distill = replace(distill, device=distill.device or device)
        moving = TransferOptions(init=init, seed=seed, donor=donor, corpus=learned, distill=distill)
        check_options(old, n_tokens, pre_tokenizer, options, folder=folder, moving=moving)
        now = transfer_folder(folder, old, out, force=force, dry_run=True)  # refuses early
        scorer = _Scorer(excerpt(judged, score_bytes) if with_score else None, device, progress)
        scorer.read(folder, old, BEFORE)
        counts = CorpusCounts.of(learned)  # the plan and the adaptation count the same words
        chosen = n_tokens
        if chosen is None and named:
            chosen = 0
        elif chosen is None:
            curve = plan(old, counts, text=judged, sampling_alpha=sampling_alpha, **run)
            chosen = curve.exchange_of(pre_tokenizer)
        adaptation = adapt_tokenizer(
            old,
            counts,
            n_tokens=chosen,
            named=named,
            pre_tokenizer=pre_tokenizer,
            **options,
            **run,
        )
        moving = replace(
            moving,
            pad_to_multiple_of=now.old_rows,  # keep the number of rows, padding included
            id_map=adaptation.id_map,
            score=bits_per_byte(excerpt(learned, score_bytes)) if init == AUTO else None,
        )
        _tell(progress, "transfer")
        report = _transfer(
            folder,
            adaptation.tokenizer,
            output.folder,
            moving,
            hard_links=hard_links,
            resume=resume,
            progress=progress,
        )
        new = open_tokenizer(output.folder)
        scorer.read(output.folder, new, AFTER)
        card = AdaptationCard(
            model=folder.resolve().name if Path(model).exists() else str(model),
            before=_side(folder, now.old_rows),
            after=_side(output.folder, report.rows),
            n_kept=report.n_copied,
            n_moved=report.n_moved,
            n_added=report.n_initialized,
            n_removed=report.n_removed,
            n_relearned=adaptation.n_relearned,
            added_sample=sample_texts(new, adaptation.added, evenly=False),
            removed_sample=sample_texts(old, adaptation.removed, evenly=True),
            init=report.init,
            left_out=report.left_out,
            judged_on=judged_on,
            scored_on=scorer.why_not or f"the first {score_bytes:,} bytes of each language of it",
            results=measure_tokens(old, new, judged, threads=threads) + scorer.results,
        )
        notes = tuple(notes_of(output.folder))
        done = ModelAdaptation(
            Path(out), adaptation, report, card, chosen, n_tokens is None and not named, notes
        )
        asked = {**options, **named.to_dict(), "pre_tokenizer": pre_tokenizer, "n_tokens": n_tokens}
        asked |= {"with_score": with_score, "score_bytes": score_bytes, "text": text is not None}
        _write_about(done, output, {"model": str(model), **asked})
    return done


def is_model(source: str | Path) -> bool:
    """Whether a folder or Hub name holds a model, not just a tokenizer."""
    return find_model(source) is not None


class _Scorer:
    """Scores the models on the same text; does nothing if there is no text."""

    def __init__(
        self, texts: dict[str, list[str]] | None, device: str | None, progress: Progress | None
    ) -> None:
        self.results = Results()
        self.why_not = "left out" if texts is None else ""
        self._texts, self._device, self._progress = texts, device, progress

    def read(self, folder: Path, tokenizer: AnyKind, subject: str) -> None:
        """Add the bits per byte of the model in a folder, if it can be scored."""
        if self._texts is None or self.why_not:
            return
        _tell(self._progress, f"score {subject}")
        found, self.why_not = measure_bits(
            folder, tokenizer, self._texts, subject, device=self._device
        )
        self.results += found


def _transfer(
    folder: Path,
    tokenizer: AnyKind,
    partial: Path,
    options: TransferOptions,
    **run: Any,
) -> TransferReport:
    """Transfer into `partial`; if the run is killed, the next one reuses its finished shards."""
    work = partial / CHECKPOINTS / "model"
    work.parent.mkdir(exist_ok=True)
    report = transfer_folder(folder, tokenizer, work, options, force=True, **run)
    for entry in work.iterdir():
        entry.rename(partial / entry.name)
    work.rmdir()
    return report


def _side(folder: Path, rows: int) -> Side:
    return Side(rows, number_of_parameters(folder), size_of_weights(folder))


def _write_about(done: ModelAdaptation, output: Outcome, asked: Mapping[str, Any]) -> None:
    """Write the card, and `vocabshift.json` for the whole run rather than just the transfer."""
    (output.folder / FILE).write_text(done.card.to_markdown(), encoding="utf-8")
    plain = {key: list(v) if isinstance(v, tuple) else v for key, v in asked.items()}
    transferred = read_provenance(output.folder)
    assert transferred is not None
    figures = {key: value for key, value in done.to_dict().items() if key != "out"}
    if done.transfer.distilled:  # with the ids of tokens without snippets
        figures["distilled"] = done.transfer.distilled
    fingerprint = done.adaptation.corpus_fingerprint
    output.record({**transferred["config"], **plain}, figures, corpus_fingerprint=fingerprint)


def _tell(progress: Progress | None, phase: str) -> None:
    if progress is not None:
        progress(phase, 0, None)
