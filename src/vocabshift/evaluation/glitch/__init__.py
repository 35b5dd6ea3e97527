"""Under-trained tokens of a model: indicators, references, classes, verification, verdicts."""
