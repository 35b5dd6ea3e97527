"""The pilots of `decide`: tokenizers, rows, short training, and scores of real models.

Each finished piece of work is a checkpoint, so that a killed run repeats one pilot at most. Of a
model only rows that the model itself had to be run for ("distill") are kept; others are made again
before it is trained.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from vocabshift.cpt.config import LoopConfig, Phase
from vocabshift.cpt.loop import check_model, pretrain
from vocabshift.cpt.steps import Step
from vocabshift.evaluation.scoring.score import DocumentScore, score_documents
from vocabshift.extension.options import ExtensionOptions
from vocabshift.models.load import load_causal_model
from vocabshift.models.tables import find_table_names, named_tensors
from vocabshift.progress import Progress, renamed
from vocabshift.storage.checkpoints import Checkpoints, Saved
from vocabshift.surgery.options import DISTILL
from vocabshift.text.corpus import Corpus
from vocabshift.tokenizer.formats.encoder import Encoder
from vocabshift.tokenizer.tokenizer import Tokenizer
from vocabshift.workflows.decide_options import KEEP, Candidate, DecideOptions, size_of
from vocabshift.workflows.decide_schedule import Pilot, TimeIsOverError, stopped_by
from vocabshift.workflows.extend import extend_to_folder
from vocabshift.workflows.train import train_to_folder
from vocabshift.workflows.transfer import transfer

INIT_BYTES = 1_000_000
"""Text that initializers read, at most."""

_TRAINING = 3.0  # times the work of scoring: forward, and backward twice that


class ModelPilots:
    """Pilots of one model."""

    def __init__(
        self,
        folder: Path,
        tokenizer: Tokenizer,
        learned: Mapping[str, Corpus],
        held_out: Mapping[str, list[str]],
        options: DecideOptions,
        *,
        pre_tokenizer: str,
        checkpoints: Checkpoints,
        donor: str | Path | None,
        device: str,
        threads: int,
        progress: Progress | None,
    ) -> None:
        """`learned`: the text of "new" and "home"; `held_out`: documents by language."""
        self._folder, self._old, self._learned = folder, tokenizer, learned
        self._held_out, self._options, self._pre_tokenizer = held_out, options, pre_tokenizer
        self._checkpoints, self._donor, self._device = checkpoints, donor, device
        self._threads, self._progress = threads, progress
        self._shares = options.shares({side: text.languages for side, text in learned.items()})

    def screen(self, candidate: Candidate, is_over: Callable[[], bool] = lambda: False) -> Pilot:
        """Make tokenizer and rows, and score without training."""
        kept = self._kept("screen", candidate)
        if kept is not None:
            return kept
        began, cpu = time.perf_counter(), time.process_time()
        moved = self._moved(candidate, is_over)
        made = time.process_time() - cpu + moved.cpu_before
        pilot = self._scored(moved, candidate, "screen", began=began, cpu_seconds=made)
        return self._keep("screen", pilot)

    def is_screened(self, candidate: Candidate) -> bool:
        """Whether an earlier attempt has scored it without training."""
        return self._kept("screen", candidate) is not None

    def train(self, candidate: Candidate, n_bytes: int, is_over: Callable[[], bool]) -> Pilot:
        """Train on so many bytes, and score."""
        kept = self._kept("train", candidate, asked=n_bytes)
        if kept is not None:
            return kept
        options = self._options
        began, cpu = time.perf_counter(), time.process_time()
        moved = self._moved(candidate, is_over)
        texts = [text for _, text in self._drawn(n_bytes).texts()]
        size = size_of(texts)
        _, offsets = Encoder(moved.tokenizer).encode_batch(texts)
        sequence_bytes = size / max(int(offsets[-1]), 1) * options.sequence_length

        def after(step: Step) -> None:
            if self._progress is not None:
                self._progress(f"train {candidate.name}", step.n_bytes, size)
            if is_over():
                raise TimeIsOverError(f"{step.n_bytes:,} of {size:,} bytes were read")

        batch_size = max(1, round(options.step_bytes / sequence_bytes))
        settings = self._settings(size, batch_size)
        steps = pretrain(moved.model, moved.tokenizer, texts, **settings, on_step=after)
        pilot = self._scored(
            moved,
            candidate,
            "score",
            began=began,
            cpu_seconds=time.process_time() - cpu + moved.cpu_before,
            n_bytes=steps[-1].n_bytes,
            n_tokens=steps[-1].n_tokens,
            batch_size=batch_size,
        )
        return self._keep("train", pilot, asked=n_bytes)

    def fixed(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Keep the bytes that finalists are given: a resumed run has less time to share out."""
        saved = self._checkpoints.load("sizes")
        if saved is not None and saved.info.keys() == sizes.keys() and any(saved.info.values()):
            return {name: int(size) for name, size in saved.info.items()}
        self._checkpoints.save("sizes", lambda path: path.write_text(""), dict(sizes))
        return sizes

    def training_speed(self, pilot: Pilot) -> float:
        """Bytes of text per second that training is expected to read."""
        tokens = sum(  # for one byte of the mixture
            share / pilot.bytes_per_token[name] for name, share in self._shares.items()
        )
        return pilot.scored_per_second / _TRAINING / tokens

    def row_seconds(self, candidate: Candidate, pilot: Pilot) -> float:
        """What rows that the model is run for take at most: it reads all text, and learns it."""
        if candidate.init != DISTILL:
            return 0.0
        size = size_of(text for _, text in self._drawn(INIT_BYTES).texts())
        return size / self.training_speed(pilot) * (1 + 1 / _TRAINING)

    def copy_tokenizer(self, candidate: Candidate, folder: Path) -> None:
        """Copy a candidate's tokenizer."""
        shutil.copytree(self._tokenizer(candidate), folder)

    # Models.

    def _moved(self, candidate: Candidate, is_over: Callable[[], bool]) -> _Moved:
        if candidate.way != KEEP:
            self._tokenizer(candidate)  # may not be possible: known before a model is loaded
        model = load_causal_model(self._folder, dtype="float32", device=self._device)
        if candidate.way == KEEP:  # the first: what no pilot can be trained with ends the run
            check_model(model, self._old.row_count, **self._settings())
            return _Moved(model, self._old)
        assert candidate.init is not None
        phase = f"rows {candidate.name}"
        kept = self._checkpoints.load(phase) if candidate.init == DISTILL else None
        began, cpu = time.perf_counter(), time.process_time()
        model, tokenizer = transfer(
            model,
            old=self._old,
            new=self._tokenizer(candidate),
            init=candidate.init if kept is None else "zeros",
            seed=self._options.seed,
            corpus=self._drawn(INIT_BYTES),
            donor=self._donor,
            progress=stopped_by(is_over, renamed(self._progress, phase)),
        )
        if kept is not None:
            _put_tables(model, kept)
            return _Moved(model, tokenizer, cpu_before=kept.info["cpu_seconds"])
        if candidate.init != DISTILL:
            return _Moved(model, tokenizer)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        self._checkpoints.save(phase, lambda path: _save_tables(model, path), {"cpu_seconds": cpu})
        return _Moved(model, tokenizer, seconds_kept=seconds)

    def _settings(self, n_bytes: int = 1, batch_size: int = 1) -> dict[str, Any]:
        """How pilots are trained, as arguments of `pretrain`."""
        options, length = self._options, self._options.sequence_length
        phase = Phase(trained=options.trained, n_bytes=n_bytes, learning_rate=options.learning_rate)
        config = LoopConfig(  # rows that were just made have high losses at first
            sequence_length=length, batch_size=batch_size, seed=options.seed, spike_factor=0
        )
        return {"phases": [phase], "config": config}

    def _scored(
        self,
        moved: _Moved,
        candidate: Candidate,
        what: str,
        *,
        began: float,
        cpu_seconds: float,
        n_bytes: int = 0,
        n_tokens: int = 0,
        batch_size: int = 0,
    ) -> Pilot:
        start = time.perf_counter()
        documents = score_documents(
            moved.model,
            moved.tokenizer,
            self._held_out,
            progress=renamed(self._progress, f"{what} {candidate.name}"),
        )
        now = time.perf_counter()
        encoder = Encoder(moved.tokenizer)
        counts = {name: encoder.encode_batch(each)[1][-1] for name, each in self._held_out.items()}
        tokens = {name: max(int(count), 1) for name, count in counts.items()}
        return Pilot(
            candidate,
            documents,
            n_bytes=n_bytes,
            n_tokens=n_tokens,
            batch_size=batch_size,
            seconds=now - began,
            seconds_kept=moved.seconds_kept,
            cpu_seconds=cpu_seconds,
            bytes_per_token={name: size_of(self._held_out[name]) / n for name, n in tokens.items()},
            scored_per_second=sum(tokens.values()) / max(now - start, 1e-9),
        )

    def _drawn(self, n_bytes: int) -> Corpus:
        """Text of all languages, at most so many bytes, the same for all candidates."""
        sizes = {name: max(1, round(n_bytes * share)) for name, share in self._shares.items()}
        return joined(self._learned).limit_bytes(sizes, seed=self._options.seed)

    # Tokenizers.

    def _tokenizer(self, candidate: Candidate) -> Path:
        """The folder of a candidate's tokenizer, which is made once."""
        phase = f"tokenizer {candidate.tokenizer}"
        saved = self._checkpoints.load(phase)
        if saved is None:
            saved = self._checkpoints.save(phase, lambda path: self._learn(candidate, path))
        assert saved is not None
        return saved.path

    def _learn(self, candidate: Candidate, path: Path) -> None:
        progress = renamed(self._progress, f"tokenizer {candidate.tokenizer}")
        run: dict[str, Any] = {"threads": self._threads, "progress": progress}
        both, size = joined(self._learned), candidate.n_tokens
        if candidate.way == "swap":
            train_to_folder(self._options.swap_recipe, both, {"vocab_size": size}, path, **run)
            return
        options = ExtensionOptions(n_tokens=size, pre_tokenizer=self._pre_tokenizer)
        n_superwords = candidate.n_superwords or None  # of home too, which has most to lose
        text = both if n_superwords else self._learned["new"]
        extend_to_folder(self._old, text, options, path, n_superwords=n_superwords, **run)

    # Checkpoints.

    def _kept(self, what: str, candidate: Candidate, asked: int = 0) -> Pilot | None:
        saved = self._checkpoints.load(f"{what} {candidate.name}")
        if saved is None or saved.info["asked"] != asked:
            return None
        plain = json.loads(saved.path.read_text(encoding="utf-8"))
        documents = [DocumentScore(*each) for each in plain.pop("documents")]
        return Pilot(candidate, documents, **plain)

    def _keep(self, what: str, pilot: Pilot, asked: int = 0) -> Pilot:
        plain = asdict(pilot)
        del plain["candidate"]
        plain["documents"] = [(d.language, d.n_bytes, d.nats, d.is_lost) for d in pilot.documents]
        text = json.dumps(plain, ensure_ascii=False)
        self._checkpoints.save(
            f"{what} {pilot.candidate.name}",
            lambda path: path.write_text(text, encoding="utf-8"),
            {"asked": asked},
        )
        return pilot


class _Moved(NamedTuple):
    """A model with its tokenizer."""

    model: Any
    tokenizer: Tokenizer
    cpu_before: float = 0.0  # seconds that its rows took, if they were made before
    seconds_kept: float = 0.0  # that its rows took just now, if they are kept


def _save_tables(model: Any, path: Path) -> None:
    """Write all that has a row for each token."""
    from safetensors.torch import save_file

    names = [table.names[0] for table in find_table_names(type(model), model.config)]
    tensors = named_tensors(model)
    save_file({name: tensors[name].detach().cpu().contiguous() for name in names}, path)


def _put_tables(model: Any, saved: Saved) -> None:
    from safetensors.torch import load_file

    tensors = named_tensors(model)
    for name, rows in load_file(saved.path).items():
        tensors[name].data.copy_(rows)


def joined(learned: Mapping[str, Corpus]) -> Corpus:
    """New and home text as one corpus."""
    return Corpus(part for corpus in learned.values() for part in corpus.parts)
