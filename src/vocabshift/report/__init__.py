"""Renderings of Results, and of nothing else."""
