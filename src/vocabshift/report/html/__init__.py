"""Reports as single HTML pages."""
