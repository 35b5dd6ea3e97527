"""The command line: one file per verb, registered in `main`."""
