"""Model surgery: embedding rows, special ids and folders under another tokenizer."""
