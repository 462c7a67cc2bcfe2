"""Values as plain JSON, and the digests that keys and checks are made of."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
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


def unusual(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, so that adding a field changes nothing."""
    given = {field.name: getattr(record, field.name) for field in fields(record)}
    defaults = {field.name: field.default for field in fields(record)}
    return {
        name: unusual(value) if is_dataclass(value) else value
        for name, value in given.items()
        if value is not defaults[name] and value != defaults[name]
    }


def canonical_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_digest(value: object) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
