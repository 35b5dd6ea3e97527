"""Latency: time to the first token, and the text generated per second."""
