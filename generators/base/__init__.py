"""Errors, files, numbers as text: what every room may use."""
