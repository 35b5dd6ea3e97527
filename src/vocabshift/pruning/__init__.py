"""Pruning: take tokens out of a tokenizer that nobody needs, and break nothing."""
