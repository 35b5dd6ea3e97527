"""Trainers make a tokenizer from a corpus. A trainer is a frozen dataclass; `train` runs it."""
