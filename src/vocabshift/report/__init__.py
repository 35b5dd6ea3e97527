"""Renderings of Results and of other values of `evaluation`; nothing is measured here."""
