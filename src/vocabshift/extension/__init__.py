"""New words for a tokenizer that exists: continued BPE and its baselines; what there is to gain."""
