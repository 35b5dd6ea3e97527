"""`decide`: which way to give a model new languages? Short pilots, a table, and a recommendation.

Joins `plan`, `extend`, `train`, `transfer`, the training loop and the score. Owns the request and
the folder: `decision.json`, `decision.md`, the tokenizers of the trained pilots, and what the
recommendation is carried out with: `cpt.toml`, `text` and `held-out`.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from vocabshift.cpt.config import Phase
from vocabshift.errors import CorpusError, InvalidTokenizerError
from vocabshift.models.folder import load_own_tokenizer, require_model
from vocabshift.progress import Progress
from vocabshift.storage.checkpoints import Checkpoints
from vocabshift.storage.outcome import check_output, config_hash, outcome
from vocabshift.storage.output import CHECKPOINTS, write_whole
from vocabshift.surgery.methods import check_init, find_initializer
from vocabshift.surgery.options import TransferOptions
from vocabshift.text.corpus import Corpus
from vocabshift.text.held_out import drawn_excerpt, most_of_one
from vocabshift.text.readers import input_key
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.trainers.recipes import make_trainer
from vocabshift.workflows.adapt_request import split_corpus
from vocabshift.workflows.decide_options import (
    KEEP,
    Candidate,
    DecideOptions,
    candidates,
    warn_of_few,
)
from vocabshift.workflows.decide_pilots import ModelPilots, joined
from vocabshift.workflows.decide_report import commands_of, cpt_of, markdown, result_of, write_text
from vocabshift.workflows.decide_schedule import (
    SCREENING,
    Ledger,
    run_pilots,
    training_bytes,
    verdict,
)
from vocabshift.workflows.plan import plan

MOST_SWAPPED = 32_000
"""Tokens of another tokenizer by default, at most."""


def decide(
    model: str | Path,
    new: Corpus | Mapping[str, Iterable[str]],
    home: Corpus | Mapping[str, Iterable[str]],
    out: str | Path,
    options: DecideOptions,
    *,
    held_out: Corpus | Mapping[str, Iterable[str]] | None = None,
    donor: str | Path | None = None,
    device: str = "auto",
    force: bool = False,
    resume: bool = True,
    dry_run: bool = False,
    threads: int = 1,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, object]:
    """Run short pilots of one model, and recommend how to give it the new languages.

    Every candidate (an extension of some size, one with superwords, or another tokenizer, with rows
    by some initializer) is scored without training. The best of each way and the next best are
    trained, as is the model with its old tokenizer, on equal bytes of text or for equal time. What
    a candidate is worth is the bits per byte that it saves in the new languages, less `home_weight`
    times those that it loses at home; each side is the mean of its languages. Differences are
    paired by held-out document. Where the interval of the difference to the best includes zero, the
    two cannot be told apart. One seed is trained, so that the intervals hold how documents differ,
    and not how two runs would.

    model: a folder or Hub name with its tokenizer, a byte-level BPE; it is not changed.
    new, home: text of the new languages and of those to keep, labelled, no label in both.
    out: the folder to write. options: candidates, budget and pilots.
    held_out: text of all these languages to compare on; None holds out every twentieth document.
    donor: for the initializer "omp". device: "auto" (a GPU where there is one), "cpu", "cuda", …
    force, resume: replace `out`; continue a run that was stopped, whose time counts.
    dry_run: list the pilots with what they would take at most, and write nothing.
    threads: of learning tokenizers. progress: called with the pilot, the work done and all of it.
    clock: seconds, for the budget.

    Returns the contents of `decision.json`. ValueError (VocabMismatchError, CorpusError) or OSError
    for a request that cannot be met; FileExistsError without `force` if `out` exists.
    """
    texts = {"new": _labelled("new", new), "home": _labelled("home", home)}
    if not dry_run:
        check_output(out, model, donor, *texts.values(), held_out, force=force)
    folder, old = _opened(model, texts, options, donor)
    given = None if held_out is None else _labelled("held-out", held_out)
    learned, judged, judged_on = split_corpus(joined(texts), given, "--held-out")
    own = {side: learned.select(corpus.languages) for side, corpus in texts.items()}
    documents = drawn_excerpt(judged, learned.languages, options.score_bytes, seed=options.seed)
    began = clock()
    weights = _weights(texts, options)
    warn_of_few(documents, weights)
    own_judged = judged.select(texts["new"].languages)
    run: dict[str, Any] = {"threads": threads, "progress": progress}
    extensions, superwords, swaps, pre_tokenizer = _sizes(
        old, own["new"], own_judged, options, **run
    )
    listed = list(candidates(extensions, swaps, options.inits, superwords))
    key = _key(folder, texts, given, options, pre_tokenizer, donor=donor) or secrets.token_hex()

    def pilots(checkpoints: Checkpoints) -> ModelPilots:
        return ModelPilots(
            folder,
            old,
            own,
            documents,
            options,
            pre_tokenizer=pre_tokenizer,
            checkpoints=checkpoints,
            donor=donor,
            device=device,
            **run,
        )

    if dry_run:
        return _dry_run(pilots(Checkpoints(None, None)), listed, options)
    with outcome(
        "decide",
        out,
        inputs=[folder, donor, *texts.values(), given],
        force=force,
        keep_checkpoints=True,
        resume=resume,
    ) as output:
        work = output.folder / CHECKPOINTS
        checkpoints = Checkpoints(work / "pilots", key)
        spent = work / "spent.json"
        ledger = Ledger(
            options.minutes,
            clock,
            already=_spent(spent, key) + clock() - began,  # the curve of the sizes counts too
            keep=lambda seconds: _note(spent, key, seconds),
        )
        running = pilots(checkpoints)
        found = run_pilots(listed, running, options, weights, ledger)
        reached = verdict(found, weights)
        for pilot in found.trained.values():
            place = output.folder / "tokenizers" / pilot.candidate.tokenizer
            if pilot.candidate.way != KEEP and not place.exists():
                running.copy_tokenizer(pilot.candidate, place)
        result = result_of(str(model), texts, found, reached, options)
        size = options.score_bytes
        most = f"{size:,} bytes of each language, {most_of_one(size):,} of a document"
        result["compared_on"] = f"{judged_on}; at most {most}"
        result |= {"commands": [], "seconds": round(ledger.spent, 1)}
        if reached.recommended is not None:
            chosen = found.trained[reached.recommended]
            text = write_text(output.folder, Path(out), own, documents, options)
            result["commands"] = commands_of(result, Path(out), text, found, donor=donor)
            config, result["differs"] = cpt_of(str(model), Path(out), text, chosen, options)
            (output.folder / "cpt.toml").write_text(config, encoding="utf-8")
        plain = json.dumps(result, ensure_ascii=False, indent=2) + "\n"
        (output.folder / "decision.json").write_text(plain, encoding="utf-8")
        (output.folder / "decision.md").write_text(markdown(result), encoding="utf-8")
        asked = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(options).items()}
        figures = {"verdict": reached.kind, "recommended": reached.recommended}
        output.record({"model": str(model), **asked}, figures, corpus_fingerprint=key)
    return {"out": str(out), **result}


def _opened(
    model: str | Path,
    texts: Mapping[str, Corpus],
    options: DecideOptions,
    donor: str | Path | None,
) -> tuple[Path, Tokenizer]:
    """The model's folder and tokenizer; refuses what would fail after some pilots."""
    both = set(texts["new"].languages) & set(texts["home"].languages)
    if both:
        raise CorpusError(f"{', '.join(sorted(map(str, both)))}: named both as new and as home")
    folder = require_model(model, advice="plan takes a tokenizer alone")
    old = load_own_tokenizer(folder)
    if not isinstance(old, Tokenizer):
        raise InvalidTokenizerError(
            f"the tokenizer of {model} is {old.kind}; only BPE learns tokens from text"
        )
    for init in options.inits:
        find_initializer(init)
        check_init(TransferOptions(init=init, donor=donor, corpus=texts["new"]))
    Phase(trained=options.trained, n_bytes=1)  # refuses a phase that there is not
    make_trainer(options.swap_recipe, {"vocab_size": MOST_SWAPPED})  # refuses an unknown recipe
    return folder, old


def _labelled(side: str, text: Corpus | Mapping[str, Iterable[str]]) -> Corpus:
    corpus = text if isinstance(text, Corpus) else Corpus.from_texts(text)
    if any(part.language is None for part in corpus.parts):
        raise CorpusError(f"every text needs a language: --{side} hi=FILE")
    return corpus


def _weights(texts: Mapping[str, Corpus], options: DecideOptions) -> dict[str, float]:
    """Of each language: the new ones sum to 1, those of home to `home_weight`."""
    sums = {"new": 1.0, "home": options.home_weight}
    return {
        str(name): sums[side] / len(corpus.languages)
        for side, corpus in texts.items()
        for name in corpus.languages
    }


def _sizes(
    old: Tokenizer,
    learned: Corpus,
    judged: Corpus,
    options: DecideOptions,
    **run: Any,
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...], tuple[int, ...], str]:
    """Sizes of extensions, extensions with superwords, swaps, and the extension's pre-tokenizer."""
    swaps = options.swap_tokens or (min(old.vocab_size, MOST_SWAPPED),)
    swaps = swaps if "swap" in options.ways else ()
    if set(options.ways) == {"swap"}:
        return (), (), swaps, "kept"
    largest = max(options.extend_tokens, default=MOST_SWAPPED)
    curve = plan(old, learned, text=judged, max_tokens=largest, **run).suggested
    knee = max(curve.n_tokens, 1)
    extensions = options.extend_tokens or (knee, 2 * knee)
    least = min(extensions)
    superwords = tuple((least, n) for n in options.superwords or (max(least // 2, 1),))
    return (
        extensions if "extend" in options.ways else (),
        superwords if "superwords" in options.ways else (),
        swaps,
        curve.pre_tokenizer,
    )


def _key(
    folder: Path,
    texts: Mapping[str, Corpus],
    held_out: Corpus | None,
    options: DecideOptions,
    pre_tokenizer: str,
    *,
    donor: str | Path | None,
) -> str | None:
    """By which a later process recognises the same pilots; None for text that it cannot."""
    from vocabshift import __version__
    from vocabshift.workflows.pretraining_inputs import model_key

    inputs = [input_key(each) for each in (*texts.values(), *([held_out] if held_out else []))]
    if None in inputs:
        return None
    free = {"minutes", "finalists", "home_weight"}  # do not change what one pilot finds
    asked = {name: v for name, v in vars(options).items() if name not in free}
    if donor is not None:
        asked["donor"] = model_key(require_model(donor))
    facts = {"version": __version__, "texts": inputs, "pre_tokenizer": pre_tokenizer}
    return config_hash(json.loads(json.dumps({**facts, **asked, **model_key(folder)})))


def _spent(file: Path, key: str) -> float:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0.0
    return float(found["seconds"]) if found.get("key") == key else 0.0


def _note(file: Path, key: str, seconds: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps({"key": key, "seconds": round(seconds, 1)}))


def _dry_run(
    work: ModelPilots, listed: list[Candidate], options: DecideOptions
) -> dict[str, object]:
    """Every pilot with its seconds, as if it read with as many tokens as the old tokenizer."""
    keep = work.screen(listed[0])
    n_ways = len({each.way for each in listed}) - 1  # the best of each is trained in any case
    n_trained = min(max(options.finalists, n_ways), len(listed) - 1) + 1
    n_bytes = options.n_bytes
    screening = [keep.seconds + work.row_seconds(each, keep) for each in listed]
    if n_bytes is None:  # as many as fit into what screening leaves
        assert options.minutes is not None
        already = min(sum(screening), SCREENING * 60 * options.minutes)
        ledger = Ledger(options.minutes, lambda: 0.0, already=already)
        n_bytes = training_bytes([keep] * n_trained, work, options, ledger)[KEEP]
    training = n_bytes / work.training_speed(keep)
    timed = zip(listed, screening, strict=True)
    rows = [{"pilot": each.name, "stage": "screen", "seconds": took} for each, took in timed]
    rows += [
        {"pilot": f"finalist {n}" if n else KEEP, "stage": "train", "seconds": training}
        for n in range(n_trained)
    ]
    total = sum(float(str(row["seconds"])) for row in rows)
    return {"dry_run": True, "pilots": rows, "seconds": total, "minutes": options.minutes}
