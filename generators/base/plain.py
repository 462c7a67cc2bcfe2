"""Values as plain JSON, and the digests that keys and checks are made of."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Return `value` as JSON values: NumPy numbers as numbers, tuples as lists, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def canonical_json(value: object) -> str:
    """Return the one JSON text of `value` that digests are made from."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def as_json(value: Any) -> str:
    """Return JSON for people to read: one entry a line."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_compact_json(value: Any) -> str:
    """Return JSON for programs to fetch."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
