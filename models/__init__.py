"""The atlas's own models, a folder each, and in `training` how they were made."""
