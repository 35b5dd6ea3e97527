"""lm-eval on several checkpoints, with the papers' tasks."""
