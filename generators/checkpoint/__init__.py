"""A checkpoint as tensors by role. Only this room knows file formats and tensor names."""
