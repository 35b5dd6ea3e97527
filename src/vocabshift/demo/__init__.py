"""The demo: our own sample texts and a run through the whole pipeline."""
