"""Tokenizers as values: the BPE model, its pipeline, and the files that hold them."""
