"""Which pilots run within a budget, and what follows: on pilots whose results are constructed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from vocabshift.evaluation.scoring.score import DocumentScore
from vocabshift.workflows.decide_options import KEEP, Candidate, DecideOptions, candidates
from vocabshift.workflows.decide_schedule import (
    Found,
    Ledger,
    Pilot,
    TimeIsOverError,
    finalists,
    run_pilots,
    stopped_by,
    training_bytes,
    verdict,
)

WEIGHTS = {"hi": 1.0, "en": 1.0}
SIZES = [30, 80, 55, 10, 120, 64] * 5
LISTED = list(candidates((100, 200), (500,), ("fvt", "focus")))


def documents(hi: float, en: float, seed: int) -> list[DocumentScore]:
    generator = np.random.default_rng(seed)
    return [
        DocumentScore(
            language, size, (bits + 0.02 * float(generator.normal())) * size * math.log(2)
        )
        for language, bits in (("hi", hi), ("en", en))
        for size in SIZES
    ]


class Constructed:
    """Pilots with given bits per byte after training, on a clock of their own."""

    def __init__(
        self,
        trained: Mapping[str, tuple[float, float]],
        *,
        screening: float = 10.0,
        step: float = 1.0,
        impossible: str = "",
        slow_init: str = "",
        kept: bool = False,
        speeds: Mapping[str, float] | None = None,
    ) -> None:
        self.now, self.ran = 0.0, list[str]()
        self.sizes: dict[str, int] = {}
        self._trained, self._screening, self._step = trained, screening, step
        self._impossible, self._kept, self._speeds = impossible, kept, speeds or {}
        self._slow_init = slow_init

    def clock(self) -> float:
        return self.now

    def screen(self, candidate: Candidate, is_over: Callable[[], bool] = lambda: False) -> Pilot:
        if candidate.name == self._impossible:
            raise ValueError("too little text")
        if candidate.init == self._slow_init:
            self.now += 400.0
            stopped_by(is_over, None)("distill", 1, 2)
        self.now += 0.0 if self._kept else self._screening
        self.ran.append(f"screen {candidate.name}")
        worse = 0.5 if candidate.way == "swap" else 0.1
        bits = (2.0, 1.0) if candidate.way == KEEP else (1.9, 1.0 + worse)
        seed = 1 + LISTED.index(candidate)
        return Pilot(candidate, documents(*bits, seed), seconds=self._screening)

    def is_screened(self, candidate: Candidate) -> bool:
        return self._kept

    def train(self, candidate: Candidate, n_bytes: int, is_over: Callable[[], bool]) -> Pilot:
        for done in range(0, n_bytes, 1000):
            self.now += self._step
            if is_over():
                raise TimeIsOverError(f"{done} of {n_bytes} bytes were read")
        self.ran.append(f"train {candidate.name} {n_bytes}")
        bits = self._trained.get(candidate.name, (1.95, 1.0))
        seed = 500 + LISTED.index(candidate)
        cpu = 5.0 if candidate.init == "fvt" else 9.0
        return Pilot(candidate, documents(*bits, seed), n_bytes=n_bytes, cpu_seconds=cpu)

    def fixed(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        self.sizes = self.sizes or dict(sizes)
        return self.sizes

    def training_speed(self, pilot: Pilot) -> float:
        usual = 2000.0 if pilot.candidate.way == "swap" else 1000.0
        return self._speeds.get(pilot.candidate.name, usual)


def decided(work: Constructed, **options: object) -> tuple[Found, Ledger]:
    asked = DecideOptions(**options)  # type: ignore[arg-type]
    ledger = Ledger(asked.minutes, work.clock)
    return run_pilots(LISTED, work, asked, WEIGHTS, ledger), ledger


def test_the_clearly_better_candidate_is_recommended() -> None:
    """The swap, though it looked worst without training."""
    work = Constructed({"swap-500-fvt": (1.2, 1.05), "swap-500-focus": (1.4, 1.05)})
    found, _ = decided(work, n_bytes=5000)
    assert [f"screen {each.name}" for each in LISTED] == work.ran[: len(LISTED)]
    assert KEEP in found.trained
    assert {each.candidate.way for each in found.trained.values()} == {"keep", "extend", "swap"}
    assert {5000} == {pilot.n_bytes for pilot in found.trained.values()}
    reached = verdict(found, WEIGHTS)
    swap = next(name for name in found.trained if name.startswith("swap"))
    assert ("recommended", swap, ()) == (reached.kind, reached.recommended, reached.tied)
    assert "clearly more than" in reached.why


def test_the_old_tokenizer_is_recommended_where_nothing_beats_it() -> None:
    worse = {each.name: (1.9, 1.5) for each in LISTED if each.way != KEEP}
    found, _ = decided(Constructed({**worse, KEEP: (1.8, 1.0)}), n_bytes=5000)
    assert verdict(found, WEIGHTS).recommended == KEEP


def test_a_tie_of_tokenizers_cannot_be_told() -> None:
    alike = {each.name: (1.3, 1.0) for each in LISTED if each.way != KEEP}
    found, _ = decided(Constructed(alike), n_bytes=5000)
    reached = verdict(found, WEIGHTS)
    assert reached.kind == "cannot tell"
    assert len(reached.tied) == 3
    assert "cannot tell" in reached.why
    assert reached.recommended is not None
    costs = {name: found.trained[name].cpu_seconds for name in reached.tied}
    assert costs[reached.recommended] == min(costs.values())


def test_too_few_documents_are_named() -> None:
    found, _ = decided(Constructed({"swap-500-fvt": (1.2, 1.0)}), n_bytes=5000)
    for pilot in (*found.screened.values(), *found.trained.values()):
        pilot.documents[:] = [*pilot.documents[:9], *pilot.documents[30:39]]  # type: ignore[index]
    reached = verdict(found, WEIGHTS)
    assert reached.kind == "cannot tell"
    assert "10 of each language are needed, so give more;" in reached.why


def test_a_tie_of_initializers_leaves_the_tokenizer_clear() -> None:
    bits = {"swap-500-fvt": (1.2, 1.0), "swap-500-focus": (1.2, 1.0)}
    work = Constructed(bits)
    found, _ = decided(work, n_bytes=5000, finalists=6)
    reached = verdict(found, WEIGHTS)
    assert ("recommended", "swap-500-fvt") == (reached.kind, reached.recommended)
    assert set(bits) == set(reached.tied)
    assert "its initializers cannot be told apart" in reached.why


def test_the_weight_of_home_decides() -> None:
    bits = {"swap-500-fvt": (1.2, 1.5), "swap-500-focus": (1.2, 1.5), KEEP: (1.8, 0.8)}
    found, _ = decided(Constructed(bits), n_bytes=5000)
    assert verdict(found, {"hi": 1.0, "en": 0.0}).recommended in bits
    assert verdict(found, {"hi": 1.0, "en": 9.0}).recommended == KEEP


def test_screening_takes_half_of_the_time_at_most() -> None:
    """Every tokenizer is tried with the first initializer before any with the second."""
    work = Constructed({}, screening=10.0)
    found, ledger = decided(work, minutes=100 / 60, n_bytes=1000)
    names = ["keep", "extend-100-fvt", "extend-200-fvt", "swap-500-fvt", "extend-100-focus"]
    assert names == list(found.screened)
    assert "time for screening" in found.left_out["swap-500-focus"]
    assert ledger.spent <= 100


def test_rows_that_take_too_long_are_not_made() -> None:
    """They end with the time for screening, and what was screened before is trained."""
    found, _ = decided(Constructed({}, slow_init="focus"), minutes=10.0, n_bytes=1000)
    why = "not screened: its rows were not made in time"
    assert found.left_out["extend-100-focus"] == why
    assert "time for screening" in found.left_out["extend-200-focus"]
    assert len(found.trained) == 4
    found, _ = decided(Constructed({}, slow_init="focus"), n_bytes=1000)
    assert len(found.screened) == len(LISTED)


@pytest.mark.parametrize("share", [0.4, 0.7])
def test_what_was_screened_before_is_not_lost_in_the_second_half(share: float) -> None:
    """Of a resumed run, whose screenings cost nothing more."""
    work = Constructed({}, kept=True)
    ledger = Ledger(10.0, work.clock, already=600 * share)
    found = run_pilots(LISTED, work, DecideOptions(minutes=10.0), WEIGHTS, ledger)
    assert [each.name for each in LISTED] == list(found.screened)
    assert len(found.trained) == 4


def test_nothing_is_recommended_where_the_old_tokenizer_was_not_trained() -> None:
    bits = {"swap-500-fvt": (1.2, 1.0), "swap-500-focus": (1.2, 1.0)}
    work = Constructed(bits, screening=1.0, speeds={KEEP: 100.0})
    found, _ = decided(work, minutes=2.0, n_bytes=20_000)
    assert len(found.trained) >= 2
    reached = verdict(found, WEIGHTS)
    assert ("cannot tell", None) == (reached.kind, reached.recommended)
    assert "the old tokenizer was not trained" in reached.why
    assert "too little time" in reached.why


def test_time_is_shared_out_equally_and_faster_readers_read_more() -> None:
    work = Constructed({}, screening=1.0)
    found, ledger = decided(work, minutes=2.0)
    sizes = {name: pilot.n_bytes for name, pilot in found.trained.items()}
    [swap] = [size for name, size in sizes.items() if name.startswith("swap")]
    assert {2 * size for name, size in sizes.items() if not name.startswith("swap")} == {swap}
    assert 60 < ledger.spent <= 120


def test_a_slower_pilot_than_expected_is_stopped_at_the_end_of_the_time() -> None:
    work = Constructed({}, screening=1.0, step=4.0)
    found, ledger = decided(work, minutes=2.0)
    stopped = {name: why for name, why in found.left_out.items() if "was stopped" in why}
    assert stopped
    assert all("bytes were read" in why for why in stopped.values())
    assert 120 <= ledger.spent <= 120 + 4 * len(stopped)


def test_equal_bytes_that_do_not_fit_are_left_out_and_not_begun() -> None:
    work = Constructed({}, screening=1.0)
    found, ledger = decided(work, minutes=1.0, n_bytes=20_000)
    assert 1 <= len(found.trained) < 4
    assert "too little time" in "".join(found.left_out.values())
    assert ledger.spent <= 60


def test_a_resumed_run_gives_what_was_fixed_before() -> None:
    """With less time left the shares would be others, and the work no longer equal."""
    work = Constructed({}, screening=1.0)
    first, _ = decided(work, minutes=2.0)
    sizes = {name: pilot.n_bytes for name, pilot in first.trained.items()}
    again, _ = decided(work, minutes=4.0)
    assert sizes == {name: pilot.n_bytes for name, pilot in again.trained.items()}


def test_without_trained_pilots_nothing_is_recommended() -> None:
    work = Constructed({}, screening=10.0)
    found, _ = decided(work, minutes=0.2, n_bytes=50_000)
    assert ["screen keep"] == work.ran
    reached = verdict(found, WEIGHTS)
    assert ("cannot tell", None) == (reached.kind, reached.recommended)
    assert "fewer than two" in reached.why


def test_a_candidate_that_is_not_possible_is_left_out() -> None:
    found, _ = decided(Constructed({}, impossible="swap-500-fvt"), n_bytes=1000)
    assert found.left_out["swap-500-fvt"] == "not possible: too little text"
    with pytest.raises(ValueError, match="too little text"):
        decided(Constructed({}, impossible=KEEP), n_bytes=1000)


def test_a_pilot_that_fails_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose loss is not finite, and one whose tokenizer does not give text back."""
    work, train, screen = Constructed({}), Constructed.train, Constructed.screen

    def failing(self: Constructed, candidate: Candidate, *rest: Any) -> Pilot:
        if candidate.way == "swap":
            raise ValueError("the loss is nan")
        return train(self, candidate, *rest)

    def lossy(self: Constructed, candidate: Candidate, *rest: Any) -> Pilot:
        pilot = screen(self, candidate, *rest)
        if candidate.n_tokens != 100:
            return pilot
        return replace(pilot, documents=[replace(d, is_lost=True) for d in pilot.documents])

    monkeypatch.setattr(Constructed, "train", failing)
    monkeypatch.setattr(Constructed, "screen", lossy)
    found, _ = decided(work, n_bytes=1000)
    assert found.left_out["extend-100-fvt"] == "not possible: the tokenizer loses text of en, hi"
    assert "training failed: the loss is nan" in found.left_out.values()
    assert {"keep", "extend"} == {pilot.candidate.way for pilot in found.trained.values()}


@pytest.mark.parametrize("stage", ["screen", "train"])
def test_a_pilot_without_a_score_is_no_best(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last step may have broken it, after the last loss that was looked at."""
    plain = getattr(Constructed, stage)

    def broken(self: Constructed, candidate: Candidate, *rest: Any) -> Pilot:
        pilot: Pilot = plain(self, candidate, *rest)
        if candidate.way != "swap":
            return pilot
        return replace(pilot, documents=[replace(d, nats=math.nan) for d in pilot.documents])

    monkeypatch.setattr(Constructed, stage, broken)
    found, _ = decided(Constructed({}), n_bytes=1000)
    assert {"keep", "extend"} == {pilot.candidate.way for pilot in found.trained.values()}
    assert "its bits per byte are not finite" in "".join(found.left_out.values())
    assert all(math.isfinite(each.behind) for each in verdict(found, WEIGHTS).standings)


def test_time_of_earlier_attempts_counts_and_is_noted() -> None:
    noted: list[float] = []
    work = Constructed({})
    ledger = Ledger(1.0, work.clock, already=50.0, keep=noted.append)
    work.now = 9.0
    assert not ledger.is_over()
    work.now = 10.0
    assert ledger.is_over()
    assert noted == [59.0, 60.0]
    assert ledger.left == 0.0
    noted.clear()
    run_pilots(LISTED[:1], work, DecideOptions(minutes=9.0), WEIGHTS, ledger)
    assert noted == [70.0]  # a run that is killed in screening is charged too


def test_the_best_of_each_way_is_a_finalist() -> None:
    screened = {each.name: Constructed({}).screen(each) for each in LISTED}
    chosen = finalists(screened, 2, WEIGHTS)
    assert chosen[0] == KEEP
    assert {screened[name].candidate.way for name in chosen} == {"keep", "extend", "swap"}
    of = [screened[name].candidate.tokenizer for name in finalists(screened, 3, WEIGHTS)]
    assert {"keep", "extend-100", "extend-200", "swap-500"} == set(of)
    assert len(finalists(screened, 4, WEIGHTS)) == 5
    assert finalists({KEEP: screened[KEEP]}, 3, WEIGHTS) == (KEEP,)


def test_without_a_limit_of_time_all_read_the_same() -> None:
    work = Constructed({})
    pilots = [work.screen(each) for each in LISTED[:3]]
    sizes = training_bytes(pilots, work, DecideOptions(n_bytes=7), Ledger(None, work.clock))
    assert {7} == set(sizes.values())


def test_rows_that_are_kept_leave_their_time_to_training() -> None:
    work = Constructed({})
    pilots = [work.screen(each) for each in LISTED[:2]]
    options, ledger = DecideOptions(minutes=1), Ledger(1, work.clock)
    before = training_bytes(pilots, work, options, ledger)
    kept = [pilots[0], replace(pilots[1], seconds_kept=4.0)]
    after = training_bytes(kept, work, options, ledger)
    assert {name: size + 2000 for name, size in before.items()} == after  # 2 s each


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "a budget is needed"),
        ({"minutes": 0.0}, "minutes is 0.0"),
        ({"n_bytes": 1, "share_of_new": 1.0}, "share_of_new is 1.0"),
        ({"n_bytes": 1, "home_weight": -1.0}, "home_weight is -1.0"),
        ({"n_bytes": 1, "ways": ("jump",)}, "ways are extend, superwords, swap"),
        ({"n_bytes": 1, "trained": "new-rows"}, "pilots train all, embeddings, ends"),
        ({"n_bytes": 1, "extend_tokens": (0,)}, "at least 1 new token"),
    ],
)
def test_impossible_requests_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DecideOptions(**options)  # type: ignore[arg-type]
