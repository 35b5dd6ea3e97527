"""`python -m vocabshift`: the command line."""

from __future__ import annotations

from vocabshift.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
