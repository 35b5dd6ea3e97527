"""lm-eval on several checkpoints, with the papers' tasks."""

from pathlib import Path

TASKS = Path(__file__).with_name("tasks")
"""Our task folder, for lm-eval's --include_path."""
