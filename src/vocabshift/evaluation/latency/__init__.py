"""How long a model takes for its first token, and how much text it writes per second."""
