"""Run the arms of the study: make the rows, train, measure; what is there is not made again.

    python recipes/keep_the_model/study.py --list -o runs/keep_the_model/hi …
    python recipes/keep_the_model/study.py --stage before screened --hours 3 …
    python recipes/keep_the_model/study.py --arm swap-distill-all --bytes 1000000 --seed 1 …

Stages: `before` (no training), `screened` (100 kB each), `final` (1 MB, three seeds), `seconds`
(finalists for the CPU seconds of the cheapest of them; rows and training together). Writes
OUT/start/TOKENIZER-INIT (models with new rows), OUT/models/KEY (trained ones; those that are only
screened are removed once they are measured) and OUT/arms/KEY.json, KEY = ARM.BYTES.SEED. A run that
was killed in the middle of an arm resumes that arm at its last checkpoint.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import token_adapt  # registers its initializer
from measure import machine, measure, multiplied_in
from names import BASE, Arm, arm_of, plan
from results import seconds
from texts import SHARE_OF_NEW, scored, training

import vocabshift as vs
from vocabshift.evaluation.harness.known_tasks import requests_of
from vocabshift.surgery.methods import INITIALIZERS, TransferOptions
from vocabshift.workflows.transfer import transfer_to_folder

assert token_adapt

MATCHING: Any = "likelihood-matching"
STAGES = ("before", "screened", "final", "seconds")
PULSE = 5.0  # seconds between two notes of what an arm has cost


class NotPossibleError(Exception):
    """An arm that cannot be run here, and why."""


def check_possible(arm: Arm) -> None:
    """Refuse an arm that this vocabshift cannot train."""
    try:
        vs.Phase(trained=arm.phase, n_bytes=1)
        if arm.is_matching:
            vs.LoopConfig(objective=MATCHING)
    except ValueError as error:
        raise NotPossibleError(f"this vocabshift cannot: {error}") from None
    known = {each.name for each in dataclasses.fields(vs.CptConfig)}
    if arm.is_matching and "teacher_logprobs" not in known:
        raise NotPossibleError("this vocabshift trains with no stored teacher")


@contextmanager
def metered(file: Path) -> Iterator[None]:
    """Note CPU and wall seconds of the block in a file, also those of an attempt that is killed."""
    tries = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    cpu, wall, done = time.process_time(), time.perf_counter(), threading.Event()

    def note() -> None:
        now = {
            "cpu_seconds": round(time.process_time() - cpu, 1),
            "wall_seconds": round(time.perf_counter() - wall, 1),
        }
        write(file, [*tries, now])

    def pulse() -> None:
        while not done.wait(PULSE):
            note()

    thread = threading.Thread(target=pulse, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        note()


def spent(file: Path) -> dict[str, float]:
    """All attempts together."""
    tries = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return {
        key: round(sum(each[key] for each in tries), 1) for key in ("cpu_seconds", "wall_seconds")
    }


class Study:
    """The settings, and the folders."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.out, self.plan = args, args.out, plan()

    def key(self, arm: Arm, n_bytes: int, seed: int) -> str:
        """Of files."""
        return f"{arm.name}.{0 if arm.trained == 'none' else n_bytes}.{seed}"

    def result(self, arm: Arm, n_bytes: int, seed: int, stage: str) -> Path:
        """Finalists are measured on all lines, so that their results are others."""
        folder = "arms" if stage != "final" else "finals"
        return Path(self.out / folder / f"{self.key(arm, n_bytes, seed)}.json")

    def texts(self, n_bytes: int, seed: int) -> list[str]:
        """Training text."""
        args = self.args
        return training(args.train, self.out, args.new, args.home, n_bytes=n_bytes, seed=seed)

    # The model before training.

    def start(self, arm: Arm) -> tuple[Path, dict[str, Any]]:
        """The folder of an arm's model before training, and what making it cost."""
        if arm.init is None:
            return self.args.model, {"cpu_seconds": 0.0, "wall_seconds": 0.0, "command": ""}
        folder = self.out / "start" / f"{arm.tokenizer}-{arm.init}"
        cost = folder.with_name(folder.name + ".cost.json")
        options, words = self._init(arm)
        tokenizer = self.out / "tokenizers" / arm.tokenizer
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with metered(cost), multiplied_in(self.args.mixed_precision):
                transfer_to_folder(
                    self.args.model, tokenizer, folder, options, progress=told(folder.name)
                )
        command = ["vocabshift", "transfer", self.args.model, tokenizer, *words, "-o", folder]
        return folder, spent(cost) | {"command": shlex.join(map(str, command))}

    def _init(self, arm: Arm) -> tuple[TransferOptions, list[Any]]:
        name = str(arm.init)
        if name not in INITIALIZERS:
            raise NotPossibleError(f"this vocabshift has no --init {name}")
        needs = INITIALIZERS[name].needs
        words: list[Any] = ["--init", name]
        if needs == "donor":
            if self.args.donor is None:
                raise NotPossibleError(
                    f"--init {name} needs --donor, a model that knows the new tokens; no package "
                    "index has a small one for these languages"
                )
            return TransferOptions(init=name, donor=self.args.donor), [
                *words,
                "--donor",
                self.args.donor,
            ]
        if needs == "corpus":
            specs = self.texts(self.args.final_bytes, 0)
            corpus = vs.Corpus.from_specs(specs)
            return TransferOptions(init=name, corpus=corpus), [*words, "--corpus", *specs]
        return TransferOptions(init=name), words

    # Training.

    def train(
        self, arm: Arm, source: Path, n_bytes: int, seed: int, *, curve: bool
    ) -> tuple[Path, dict[str, Any]]:
        """The folder of the trained model, and what training cost."""
        key = self.key(arm, n_bytes, seed)
        folder = self.out / "models" / key
        if arm.is_matching:
            self.teach(arm, n_bytes, seed)
        config, cost = self.out / "configs" / f"{key}.toml", self.out / "costs" / f"{key}.json"
        settings = self.settings(arm, source, folder, n_bytes, seed, curve=curve)
        facts = self.out / "costs" / f"{key}.facts.json"
        if not (folder.exists() and facts.exists()):
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(toml(settings), encoding="utf-8")
            with metered(cost):
                found = vs.continue_pretraining(settings, force=folder.exists())
            assert found is not None
            records = map(json.loads, (folder / "log.jsonl").read_text("utf-8").splitlines())
            points = [
                {"n_bytes": each["run_bytes"], "bits_per_byte": each["bits_per_byte"]}
                for each in records
                if each["kind"] == "evaluation"
            ]
            write(
                facts,
                {**{k: found[k] for k in ("n_steps", "n_bytes", "n_tokens")}, "curve": points},
            )
        own = json.loads(facts.read_text(encoding="utf-8"))
        own |= spent(cost) | {"command": f"vocabshift cpt {config}"}
        if arm.is_matching:
            own["teaching"] = spent(self.taught(arm, n_bytes, seed).with_suffix(".cost.json"))
        return folder, own

    def taught(self, arm: Arm, n_bytes: int, seed: int) -> Path:
        """The folder with what the old model reads of a text; all arms of an objective share it."""
        return self.out / "taught" / f"{n_bytes}-{seed}{arm.objective.removeprefix('matching')}"

    def teach(self, arm: Arm, n_bytes: int, seed: int) -> None:
        """Let the old model read the text, once."""
        from vocabshift.workflows.teach import teach_to_folder

        folder = self.taught(arm, n_bytes, seed)
        known = self.args.home if arm.objective == "matching-home" else ()
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            corpus = vs.Corpus.from_specs(self.texts(n_bytes, seed))
            with (
                metered(folder.with_suffix(".cost.json")),
                multiplied_in(self.args.mixed_precision),
            ):
                teach_to_folder(
                    self.args.model, corpus, folder, known=known, progress=told("teach")
                )

    def settings(
        self, arm: Arm, source: Path, folder: Path, n_bytes: int, seed: int, *, curve: bool
    ) -> dict[str, Any]:
        """The keys of `vocabshift cpt`."""
        args, specs = self.args, self.texts(n_bytes, seed)
        texts = [text for _, text in vs.Corpus.from_specs(specs).texts()]
        size = sum(len(text.encode()) for text in texts)
        _, offsets = vs.Encoder(vs.load_tokenizer(source)).encode_batch(texts)
        sequence_bytes = size / int(offsets[-1]) * args.length
        found: dict[str, Any] = {
            "model": str(source),
            "data": specs,
            "out": str(folder),
            "trained": arm.phase,
            "n_bytes": size,
            "learning_rate": self.plan["learning_rates"][arm.trained],
            "sequence_length": args.length,
            "document_attention": True,  # the old model read each document by itself, too
            "batch_size": max(1, round(args.step_bytes / sequence_bytes)),
            "seed": seed,
            "spike_factor": 0.0,
            "checkpoint_minutes": 10.0,
            "keep_checkpoints": 1,
            "mixed_precision": args.mixed_precision,
        }
        if arm.is_matching:
            found |= {
                "objective": MATCHING,
                "teacher_logprobs": str(self.taught(arm, n_bytes, seed)),
            }
        if curve:
            found |= {"held_out": self.curve_texts(), "evaluate_bytes": -(-size // args.points)}
        return found

    def curve_texts(self) -> list[str]:
        """Files with the few documents that a curve is measured on."""
        args, specs = self.args, []
        languages = [*args.new, *args.home]
        for name, own in scored(args.eval, languages, args.curve_documents).items():
            file = self.out / "text" / "curve" / f"{name}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in own]
            file.write_text("".join(lines), encoding="utf-8")
            specs.append(f"{name}={file}")
        return specs

    # An arm from its beginning to its figures.

    def run(self, arm: Arm, n_bytes: int, seed: int, stage: str) -> None:
        """One arm; nothing where its result is there."""
        file = self.result(arm, n_bytes, seed, stage)
        if file.exists():
            return
        args, is_final = self.args, stage == "final"
        if arm.trained != "none":
            check_possible(arm)
        tell(f"{file.stem}: begins")
        folder, making = self.start(arm)
        facts: dict[str, Any] = {
            "arm": arm.name,
            "stage": stage,
            "tokenizer": arm.tokenizer,
            "init": arm.init,
            "trained": arm.trained,
            "objective": arm.objective,
            "seed": seed,
            "new": args.new,
            "home": args.home,
            "other": args.other,
            "share_of_new": SHARE_OF_NEW,
            "mixed_precision": args.mixed_precision,
            "device": machine(),
            "making": making,
        }
        if arm.trained != "none":
            folder, facts["training"] = self.train(arm, folder, n_bytes, seed, curve=is_final)
        languages = [*args.new, *args.home, *args.other]
        n = args.final_documents if is_final else args.documents
        facts |= measure(
            folder,
            scored(args.eval, languages, n),
            continued=args.continued if is_final and seed == 0 else 0,
            precision=args.mixed_precision,
        )
        if is_final and seed == 0 and args.tasks and args.data:
            facts["tasks"] = self.tasks(folder)
        write(file, facts)
        if arm.trained != "none" and not (is_final and seed == 0) and not args.keep:
            shutil.rmtree(folder)
        tell(f"{file.stem}: {summary(facts)}")

    def tasks(self, folder: Path) -> list[dict[str, Any]]:
        """Accuracy on the tasks of `vocabshift harness`."""
        args = self.args
        report = vs.run_harness(
            [folder],
            requests_of(args.tasks, shots=0),  # a model of this size hardly uses examples
            limit=args.questions,
            data=args.data,
            border="heal",
            batch_size=8,
        )
        failures = [{"task": each.task, "failure": each.reason} for each in report.failures]
        return [*(dict(row) for row in report.results.to_dicts()), *failures]

    def jobs(self, stages: list[str]) -> Iterator[tuple[Arm, int, int, str]]:
        """(arm, bytes, seed, stage) in order of value."""
        args = self.args
        finalists = [arm_of(name) for name in args.finalists or self.plan["finalists"]]
        if "before" in stages:
            yield from ((arm_of(name), 0, 0, "before") for name in self.plan["before"])
        if "screened" in stages:
            for name in self.plan["screened"]:
                yield arm_of(name), args.screen_bytes, 0, "screened"
        if "final" in stages:
            yield Arm(BASE, None, "none"), 0, 0, "final"
            for seed in range(args.seeds):
                for arm in finalists:
                    if seed == 0:
                        yield arm.before, 0, 0, "final"
                    yield arm, args.final_bytes, seed, "final"
        if "seconds" in stages:
            sizes = self.sizes_at_equal_seconds(finalists)
            for arm, n_bytes in sizes.items():
                yield arm, n_bytes, 0, "final"

    def sizes_at_equal_seconds(self, finalists: list[Arm]) -> dict[Arm, int]:
        """Bytes of each finalist that cost as many CPU seconds as the cheapest one does in full."""
        costs: dict[Arm, tuple[float, float]] = {}
        for arm in finalists:
            files = (
                self.result(arm, self.args.final_bytes, seed, "final")
                for seed in range(self.args.seeds)
            )
            found = [json.loads(f.read_text(encoding="utf-8")) for f in files if f.exists()]
            if found:
                made = found[0]["making"]["cpu_seconds"]
                costs[arm] = made, seconds(found) - made
        if len(costs) < 2:
            return {}
        least = min(map(sum, costs.values()))
        sizes = {}
        for arm, (made, trained) in costs.items():
            n_bytes = round(self.args.final_bytes * (least - made) / trained, -3)
            if made + trained <= 1.05 * least:
                continue
            if n_bytes >= self.args.screen_bytes:
                sizes[arm] = int(n_bytes)
            else:  # no document of a language may fit into so few
                tell(
                    f"{arm.name}: not possible at equal seconds: its rows take {made:.0f} s, "
                    "which leaves less text than an arm is screened on"
                )
        return sizes


def summary(facts: dict[str, Any]) -> str:
    """One line of bits per byte and seconds."""
    import math

    bits = {
        name: sum(nats for _, nats in own) / math.log(2) / sum(size for size, _ in own)
        for name, own in facts["documents"].items()
    }
    seconds = facts["making"]["cpu_seconds"] + facts.get("training", {}).get("cpu_seconds", 0.0)
    return (
        " ".join(f"{name} {value:.3f}" for name, value in bits.items()) + f"; {seconds:.0f} CPU s"
    )


def toml(settings: dict[str, Any]) -> str:
    """The settings as a file for `vocabshift cpt`; JSON's values are TOML's here."""
    return "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in settings.items()
    )


def write(file: Path, facts: Any) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(file.name + ".partial")
    partial.write_text(json.dumps(facts, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.rename(file)


def tell(line: str) -> None:
    """One line on standard error, with the time."""
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


def told(what: str) -> Callable[[str, int, int | None], None]:
    """A progress that says how far the work is, once in five minutes."""
    last = time.monotonic()

    def report(phase: str, done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last > 300:
            last = time.monotonic()
            tell(f"{what}, {phase}: {done:,} of {total or 0:,}")

    return report


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--train", type=Path, required=True, help="LANG.txt, LANG.jsonl")
    parser.add_argument("--eval", type=Path, required=True, help="sib200-flores/LANG.txt, code/*")
    parser.add_argument("--new", nargs="+", required=True, help="languages to adapt to")
    parser.add_argument("--home", nargs="+", required=True, help="languages to keep, replayed")
    parser.add_argument("--other", nargs="*", default=[], help="scored, never trained on")
    parser.add_argument("--donor", type=Path, help="for the arms with omp")
    parser.add_argument("--stage", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--finalists", nargs="+", help="names; default: those of arms.toml")
    parser.add_argument("--arm", help="this one alone, of --bytes and --seed")
    parser.add_argument("--bytes", type=int, help="with --arm; default: as in screening")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--final", action="store_true", help="--arm is measured on all lines")
    parser.add_argument("--hours", type=float, help="no arm begins after so many")
    parser.add_argument("--list", action="store_true", help="what there is, what is to be done")
    parser.add_argument("--keep", action="store_true", help="keep all trained models")
    parser.add_argument("--screen-bytes", type=int, default=100_000)
    parser.add_argument("--final-bytes", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--length", type=int, default=128, help="tokens of a training sequence")
    parser.add_argument("--step-bytes", type=int, default=2_500, help="of text, in every arm")
    parser.add_argument("--mixed-precision", choices=("no", "bf16"), default="no")
    parser.add_argument("--points", type=int, default=4, help="of a curve, after the first")
    parser.add_argument("--curve-documents", type=int, default=20)
    parser.add_argument("--documents", type=int, default=150, help="of a language, in screening")
    parser.add_argument("--final-documents", type=int, default=1004)
    parser.add_argument("--continued", type=int, default=40, help="lines of a language")
    parser.add_argument("--tasks", nargs="*", default=[], help="as `vocabshift harness` has them")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--data", type=Path, help="the folder with the tasks' files")
    parser.add_argument("-o", "--out", type=Path, required=True)
    return parser.parse_args()


def main() -> int:
    """Run the arms that are asked for, in order of value."""
    args = arguments()
    study = Study(args)
    began = time.monotonic()
    jobs = list(study.jobs([each for each in args.stage if each != "seconds"]))
    if args.arm:
        stage = "final" if args.final else "screened"
        jobs = [(arm_of(args.arm), args.bytes or args.screen_bytes, args.seed, stage)]
    elif "seconds" in args.stage:
        jobs.append(None)  # type: ignore[arg-type]  # known once the finals are there
    skipped: dict[str, str] = {}
    while jobs:
        job = jobs.pop(0)
        if job is None:
            jobs += study.jobs(["seconds"])
            continue
        arm, n_bytes, seed, stage = job
        file = study.result(arm, n_bytes, seed, stage)
        if args.list:
            print(f"{'done' if file.exists() else 'to do'}\t{stage}\t{file.stem}")
            continue
        if file.exists():
            continue
        if args.hours is not None and time.monotonic() - began > 3600 * args.hours:
            skipped[file.stem] = "the time was over"
            continue
        try:
            study.run(arm, n_bytes, seed, stage)
        except NotPossibleError as error:
            skipped[file.stem] = str(error)
        except (ValueError, OSError, ImportError) as error:
            traceback.print_exc()
            skipped[file.stem] = f"failed: {error}"
    for key, why in skipped.items():
        tell(f"{key}: left out: {why}")
    return int(any(why.startswith("failed") for why in skipped.values()))


if __name__ == "__main__":
    sys.exit(main())
