"""Storage: atomic outputs, checkpoints, provenance, and downloads from the Hub."""
