"""Intervals, significance and the distribution of tokens."""
