"""Text: corpora, languages, patterns, sentences, and the counting of words."""
