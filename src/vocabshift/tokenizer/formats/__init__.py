"""Files of other libraries that hold a tokenizer, each read into ours."""
