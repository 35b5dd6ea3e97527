"""Every metric: one file for each family, `metric` that says what one is, `registry` for all."""
