"""Which pilots `decide` runs within its budget, and what follows from them.

First every candidate is scored without training. Then the best of each way and the next best are
trained, and the old tokenizer with them, on equal bytes of text, or for equal time where the budget
is time. Owns the order, the budget and the verdict; `decide_pilots` does the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from vocabshift.workflows.decide_options import KEEP, Candidate, DecideOptions

if TYPE_CHECKING:
    from vocabshift.evaluation.scoring.choice import Standing
    from vocabshift.evaluation.scoring.score import DocumentScore
    from vocabshift.progress import Progress

SCREENING = 0.5
"""Share of the time that scoring without training may take."""

_RESERVE = 0.8
"""Share of what is left of the time that is given to training by plan; a pilot that is slower than
expected would otherwise end unmeasured."""


class TimeIsOverError(Exception):
    """A pilot was stopped because the budget was spent."""


def stopped_by(is_over: Callable[[], bool], progress: Progress | None) -> Progress:
    """`progress` of making rows, which ends them with TimeIsOverError once `is_over()` is true."""

    def report(phase: str, done: int, total: int | None) -> None:
        if is_over():
            raise TimeIsOverError("its rows were not made in time")
        if progress is not None:
            progress(phase, done, total)

    return report


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot measured, and what it cost."""

    candidate: Candidate
    documents: Sequence[DocumentScore]
    n_bytes: int = 0  # of text that was trained on; 0: no training
    n_tokens: int = 0
    batch_size: int = 0
    seconds: float = 0.0  # all of it: tokenizer, rows, training, scoring
    seconds_kept: float = 0.0  # of them, of rows that training need not make again
    cpu_seconds: float = 0.0  # of rows and training
    bytes_per_token: Mapping[str, float] = field(default_factory=dict)
    scored_per_second: float = 0.0  # tokens


class Work(Protocol):
    """The work of pilots; ValueError for a candidate that is not possible."""

    def screen(self, candidate: Candidate, is_over: Callable[[], bool]) -> Pilot:
        """Make tokenizer and rows, and score without training; errors as for `train`."""
        ...

    def is_screened(self, candidate: Candidate) -> bool:
        """Whether an earlier attempt has screened it, so that it takes no time."""
        ...

    def train(self, candidate: Candidate, n_bytes: int, is_over: Callable[[], bool]) -> Pilot:
        """Train on so many bytes, and score; TimeIsOverError once `is_over()` is true."""
        ...

    def fixed(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Bytes for each finalist, as an earlier attempt fixed them, or these from now on."""
        ...

    def training_speed(self, pilot: Pilot) -> float:
        """Bytes of text per second that training is expected to read, from a screened pilot."""
        ...


class Ledger:
    """The seconds that pilots have taken, those of earlier attempts included."""

    def __init__(
        self,
        minutes: float | None,
        clock: Callable[[], float],
        *,
        already: float = 0.0,
        keep: Callable[[float], object] = lambda _: None,
    ) -> None:
        """`already`: seconds of earlier attempts; `keep` is called with what is spent so far."""
        self._limit = None if minutes is None else 60 * minutes
        self._clock, self._began, self._already, self._keep = clock, clock(), already, keep

    @property
    def spent(self) -> float:
        """Seconds."""
        return self._already + self._clock() - self._began

    @property
    def left(self) -> float | None:
        """Seconds; None: no limit."""
        return None if self._limit is None else self._limit - self.spent

    def note(self) -> None:
        """Keep what is spent, so that a run that is killed now does not get this time again."""
        self._keep(self.spent)

    def is_over(self) -> bool:
        """Whether the time is spent."""
        self.note()
        return self._limit is not None and self.spent >= self._limit


@dataclass
class Found:
    """All pilots, and what was left out and why."""

    screened: dict[str, Pilot] = field(default_factory=dict)
    trained: dict[str, Pilot] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def run_pilots(
    candidates: Sequence[Candidate],
    work: Work,
    options: DecideOptions,
    weights: Mapping[str, float],
    ledger: Ledger,
) -> Found:
    """Screen, choose, train; what the budget does not allow is left out with the reason."""
    found = Found()
    longest = 0.0

    def room() -> float:  # what is left for screening
        left = math.inf if ledger.left is None else ledger.left
        return left - (1 - SCREENING) * 60 * (options.minutes or 0)

    for candidate in candidates:
        if found.screened and not work.is_screened(candidate) and longest > room():
            found.left_out[candidate.name] = "not screened: the time for screening was spent"
            continue
        before = ledger.spent
        try:
            pilot = work.screen(candidate, lambda: room() <= 0)
            _check_scores(pilot, weights)
            found.screened[candidate.name] = pilot
            longest = max(longest, pilot.seconds)  # an earlier attempt may have screened it
        except TimeIsOverError as error:
            found.left_out[candidate.name] = f"not screened: {error}"
        except ValueError as error:
            if candidate.way == KEEP:
                raise
            found.left_out[candidate.name] = f"not possible: {error}"
        ledger.note()
        longest = max(longest, ledger.spent - before)
    chosen = finalists(found.screened, options.finalists, weights)
    if len(chosen) < 2:  # the old tokenizer alone: nothing to compare it with
        return found
    for name in found.screened:
        if name not in chosen:
            found.left_out[name] = "not trained: behind the finalists without training"
    sizes = work.fixed(
        training_bytes([found.screened[name] for name in chosen], work, options, ledger)
    )
    for name in chosen:
        if not sizes[name]:
            found.left_out[name] = "not trained: too little time was left"
            continue
        try:
            pilot = work.train(found.screened[name].candidate, sizes[name], ledger.is_over)
            _check_scores(pilot, weights)
            found.trained[name] = pilot
        except TimeIsOverError as error:
            found.left_out[name] = f"training was stopped: {error}"
        except ValueError as error:  # such as a loss that is no longer finite
            found.left_out[name] = f"training failed: {error}"
    return found


def _check_scores(pilot: Pilot, weights: Mapping[str, float]) -> None:
    """ValueError for scores that `rank` would refuse, or that cannot be compared."""
    lost = {each.language for each in pilot.documents if each.is_lost and each.language in weights}
    if lost:
        raise ValueError(f"the tokenizer loses text of {', '.join(sorted(lost))}")
    if not all(math.isfinite(each.nats) for each in pilot.documents):
        raise ValueError("its bits per byte are not finite")


def finalists(
    screened: Mapping[str, Pilot], n: int, weights: Mapping[str, float]
) -> tuple[str, ...]:
    """The old tokenizer, and `n` candidates: the best of each way, of each tokenizer, others.

    The best of each way is always there: without training a swap looks worse than it is.
    """
    others = {name: pilot.documents for name, pilot in screened.items() if name != KEEP}
    if not others:
        return (KEEP,)
    from vocabshift.evaluation.scoring.choice import rank

    order = [each.name for each in rank(others, screened[KEEP].documents, weights)]
    of = {name: screened[name].candidate for name in reversed(order)}
    ways = {each.way: name for name, each in of.items()}.values()
    tokenizers = {each.tokenizer: name for name, each in of.items()}.values()
    order.sort(key=lambda name: (name not in ways, name not in tokenizers))
    return (KEEP, *order[: max(n, len(ways))])


def training_bytes(
    pilots: Sequence[Pilot], work: Work, options: DecideOptions, ledger: Ledger
) -> dict[str, int]:
    """Bytes of text for each finalist: equal ones, or as many as each reads in the same time."""
    names = [pilot.candidate.name for pilot in pilots]
    left = ledger.left
    if left is None:
        assert options.n_bytes is not None
        return dict.fromkeys(names, options.n_bytes)
    speeds = {pilot.candidate.name: work.training_speed(pilot) for pilot in pilots}
    # Scores are made once more, and rows that were not kept.
    again = sum(pilot.seconds - pilot.seconds_kept for pilot in pilots)
    room = max(_RESERVE * left - again, 0.0)
    if options.n_bytes is None:
        each = room / len(names)
        return {name: int(each * speeds[name]) for name in names}
    sizes = {}
    for name in names:
        cost = options.n_bytes / speeds[name]
        sizes[name] = options.n_bytes if cost <= room else 0
        room -= cost if sizes[name] else 0
    return sizes


@dataclass(frozen=True)
class Verdict:
    """What follows from the pilots."""

    kind: str  # "recommended" or "cannot tell"
    recommended: str | None  # name of the candidate; None where nothing was trained
    tied: tuple[str, ...]  # those that cannot be told from the best
    why: str
    standings: tuple[Standing, ...]  # the trained ones, the best first

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def verdict(found: Found, weights: Mapping[str, float]) -> Verdict:
    """The best of the trained pilots, or that they cannot be told apart.

    Candidates with one tokenizer and other initializers may be tied: then the tokenizer is clear.
    """
    from vocabshift.evaluation.scoring.choice import FEWEST_DOCUMENTS, rank

    if len(found.trained) < 2:
        why = "fewer than two pilots were trained within the budget; give more time, or less text"
        return Verdict("cannot tell", None, (), why, ())
    before = found.screened[KEEP].documents
    standings = tuple(
        rank({name: pilot.documents for name, pilot in found.trained.items()}, before, weights)
    )
    if KEEP not in found.trained:
        why = "the old tokenizer was not trained, so that no change has beaten it"
        why += f" ({found.left_out[KEEP]}); give more time, or less text"
        return Verdict("cannot tell", None, (), why, standings)
    best, *others = standings
    tied = [each for each in others if each.is_tied]
    names = (best.name, *(each.name for each in tied))
    tokenizers = {found.trained[name].candidate.tokenizer for name in names}
    cheapest = min(names, key=lambda name: (found.trained[name].cpu_seconds, name))
    if not tied:
        why = f"{best.name} saves {best.saved:.3f} weighted bits per byte, and clearly more than "
        why += f"{others[0].name} ({_behind(others[0])})"
        return Verdict("recommended", best.name, (), why, standings)
    listed = ", ".join(f"{each.name} ({_behind(each)})" for each in tied)
    if len(tokenizers) == 1:
        why = f"the tokenizer {tokenizers.pop()} is clearly best; its initializers cannot be told "
        why += f"apart: {best.name} and {listed}; {cheapest} is the cheapest"
        return Verdict("recommended", cheapest, tuple(names), why, standings)
    why = f"the pilots cannot tell {best.name} from {listed}; "
    why += "more text for each pilot or more held-out text may"
    if best.saved_low is None:
        why += f": there are too few held-out documents for intervals, {FEWEST_DOCUMENTS} of each "
        why += "language are needed, so give more"
    why += f"; {cheapest} is the cheapest of them"
    return Verdict("cannot tell", cheapest, tuple(names), why, standings)


def _behind(standing: Standing) -> str:
    text = f"{standing.behind:.3f} behind"
    if standing.behind_low is None or standing.behind_high is None:
        return f"{text}, no interval"
    return f"{text}, {standing.behind_low:.3f} to {standing.behind_high:.3f}"
