"""How the atlas's own models are trained: what all of them share, and a package for each."""
