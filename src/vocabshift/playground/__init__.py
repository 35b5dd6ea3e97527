"""The playground: a local page that shows how several tokenizers split a text as it is typed."""
