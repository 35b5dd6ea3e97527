"""The playground: a local page that shows what several tokenizers do to a text as it is typed."""
