"""Attempts to break the atlas, and what it costs: `python -m tests.torture --help`."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded
