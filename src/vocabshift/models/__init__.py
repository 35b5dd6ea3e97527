"""A model on disk: its shards, its tables with a row per token, its configuration."""
