"""Metrics that know about language: morphemes, syllables, numbers, robustness."""
