"""The command line: one file per verb or group of verbs, registered in `main`."""
