"""What is sound and what stands out in a tokenizer: reachability, round trips, vocabulary."""
