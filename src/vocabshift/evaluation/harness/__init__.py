"""lm-eval on several checkpoints, with the papers' tasks."""

from vocabshift.evaluation.harness.known_tasks import TASKS

__all__ = ["TASKS"]  # where it was before 0.2
