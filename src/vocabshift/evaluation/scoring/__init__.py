"""Bits per byte of causal language models, compared by document."""
