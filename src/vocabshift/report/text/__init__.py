"""Reports for terminals and Markdown."""
