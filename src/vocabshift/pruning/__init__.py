"""Pruning: remove unneeded tokens from a tokenizer without making others unreachable."""
