"""Checks of a tokenizer: reachability, round trips, vocabulary."""
