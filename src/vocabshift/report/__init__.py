"""Renderings of Results and of what `evaluation` gives, and of nothing else."""
