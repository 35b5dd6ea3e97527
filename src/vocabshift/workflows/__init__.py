"""What joins workshops: one function for each verb, and the folder that all of them write into."""

from vocabshift.storage.outcome import outcome

__all__ = ["outcome"]
