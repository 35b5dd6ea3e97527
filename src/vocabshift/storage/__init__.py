"""What is written to disk: atomic outputs, checkpoints, provenance."""
