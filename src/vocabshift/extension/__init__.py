"""Extends an existing tokenizer: continued BPE, its baselines, and what new tokens gain."""
