"""Measurements of tokenizers and of models that use them."""
