"""What the name of an arm means, and the list of arms in `arms.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BASE = "base"
TOKENIZERS = (BASE, "extension", "superwords", "trimmed", "swap")
INITS = ("random", "fvt", "focus", "omp", "tokenadapt", "distill")
SLOW = "-slow"
"""Of `trained`: at the lower learning rate that finalists need, whose training is longer."""
TRAINED = ("none", "embeddings", "new-rows", "lora", "ends", "all", f"all{SLOW}")
OBJECTIVES = ("next-token", "matching", "matching-home")
"""Next-token loss; likelihood matching on all text; on home text alone, with the rest as before."""


@dataclass(frozen=True)
class Arm:
    """A tokenizer, how the rows of its new tokens are made, and what is then trained and how."""

    tokenizer: str
    init: str | None  # None: the model as it is
    trained: str
    objective: str = OBJECTIVES[0]

    @property
    def is_matching(self) -> bool:
        """Whether it has a teacher."""
        return self.objective != OBJECTIVES[0]

    @property
    def name(self) -> str:
        """As results and the command line call it."""
        words = [self.tokenizer, *filter(None, [self.init]), self.trained]
        if self.init is None and self.trained == "none":
            words = words[:1]
        return "-".join([*words, *([self.objective] if self.is_matching else [])])

    @property
    def phase(self) -> str:
        """What `cpt` calls what is trained."""
        return self.trained.removesuffix(SLOW)

    @property
    def before(self) -> Arm:
        """The arm before its training."""
        return Arm(self.tokenizer, self.init, "none")


def arm_of(name: str) -> Arm:
    """The arm of a name; ValueError for one that means nothing."""
    objective = next((o for o in OBJECTIVES[1:] if name.endswith(f"-{o}")), OBJECTIVES[0])
    words = name.removesuffix(f"-{objective}").split("-", 2)
    if words[0] == BASE:
        arm = Arm(BASE, None, "-".join(words[1:]) or "none", objective)
    elif len(words) == 3:
        arm = Arm(*words, objective)
    else:
        raise ValueError(f"{name}: TOKENIZER-INIT-TRAINED is needed")
    for kind, value, known in (
        ("tokenizer", arm.tokenizer, TOKENIZERS),
        ("init", arm.init, (None, *INITS)),
        ("trained", arm.trained, TRAINED),
    ):
        if value not in known:
            raise ValueError(f"{name}: {kind} {value!r} is none of {known}")
    if arm.trained == "none" and arm.is_matching:
        raise ValueError(f"{name}: an arm that is not trained has no objective")
    return arm


def plan() -> dict[str, Any]:
    """The contents of `arms.toml`."""
    return tomllib.loads((HERE / "arms.toml").read_text(encoding="utf-8"))
