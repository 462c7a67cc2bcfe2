"""Spectra, ranks, neighbours: mathematics that knows nothing of models."""
