"""Helix Atlas: findings about the embeddings of transformers, computed from weights and published as a site."""

__version__ = "0.1.0"
