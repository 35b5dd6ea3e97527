"""Trainers: from a corpus to a tokenizer. A trainer is a frozen dataclass; `train` runs it."""
