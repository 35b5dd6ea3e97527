"""lm-eval on several checkpoints, with the papers' tasks."""

from vocabshift.evaluation.harness.run import TASKS

__all__ = ["TASKS"]  # where it was before 0.2
