"""`python -m vocabshift`: the command line."""

from vocabshift.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
