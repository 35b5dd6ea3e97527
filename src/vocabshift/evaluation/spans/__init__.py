"""Where tokens lie in text, and what a view of them shows."""
