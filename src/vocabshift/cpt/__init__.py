"""Continual pre-training: packed text, phases and one training loop."""
