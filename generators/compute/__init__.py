"""From a model to its stored results: plan, run, store, verify."""
