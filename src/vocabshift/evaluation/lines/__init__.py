"""Tokenizers on lines of text: where tokens lie, what is counted, and what a view shows."""
