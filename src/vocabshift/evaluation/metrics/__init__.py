"""Every metric: one file per family, the class in `metric`, and the list in `registry`."""
