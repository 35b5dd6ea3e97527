"""Workflows: one function per verb, each joining several rooms and writing one output folder."""

from vocabshift.storage.outcome import outcome

__all__ = ["outcome"]
