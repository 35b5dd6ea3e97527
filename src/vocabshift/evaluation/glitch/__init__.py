"""Tokens that a model never learned: indicators, references, classes, verification, verdicts."""
