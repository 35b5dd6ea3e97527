"""Our own sample texts and the walk through the whole corridor."""
