"""New words for a tokenizer that exists: continued BPE, its baselines, and what there is to gain."""
