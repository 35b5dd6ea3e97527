"""Tokenizers as values: the model, its pipeline, and the folder that holds them."""
