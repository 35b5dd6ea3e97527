"""Tokenizers on lines of text: positions of tokens, counts, and views."""
