"""Spectra, ranks, neighbours, curves: mathematics that knows nothing of models."""
