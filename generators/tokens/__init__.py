"""Vocabulary, frequencies, and counting a corpus."""
