"""Results on disk: `results/<model>/findings.json` and `arrays.npz`. Only this file knows the layout.

`arrays.npz` is written before `findings.json` and holds the arrays of the old and the new results, each under the
key of the finding that made them; so whichever of the two replacements a killed run got to, the `findings.json`
that is there finds its arrays.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock
from numpy import ndarray as Array
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from generators.base.errors import AtlasError, InputError
from generators.findings.finding import Claim, Result, Status, Table, Verdict
from generators.checkpoint.registry import SLUG, explain

SCHEMA_VERSION = 1
FINDINGS = "findings.json"
ARRAYS = "arrays.npz"
KEY_LENGTH = 16  # hex digits of a key that name its arrays


class Record(BaseModel):
    """Plain data as it is published; absent numbers are null."""

    model_config = ConfigDict(extra="forbid")


class SourceRecord(Record):
    """Where the weights that were read came from."""

    kind: str
    place: str
    revision: str | None = None
    commit: str | None = None


class ModelRecord(Record):
    """What is known of a model beside its findings."""

    name: str = Field(pattern=f"^{SLUG.pattern}$")
    title: str
    family: str
    n_layer: int
    n_head: int
    d_model: int
    n_ctx: int
    vocab_size: int
    causal: bool
    post_norm: bool
    source: SourceRecord
    licence: str | None = None
    notes: str | None = None


class TensorEntry(Record):
    """A tensor that was read, as it stands in the file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class TableRecord(Record):
    """A table: a title that says what one row is, columns, rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[JsonValue, ...], ...]


class FindingRecord(Record):
    """One finding of one model; `key` is the digest of all that it was computed from."""

    status: Status
    reason: str | None = None
    version: int
    key: str | None = None
    computed_on: str | None = Field(default=None, description="UTC date")
    metrics: dict[str, JsonValue] | None = None
    tables: dict[str, TableRecord] = {}


class ClaimRecord(Record):
    """One claim: verdict, effect size, the threshold from which it holds, and what chance gives."""

    id: str
    finding: str
    statement: str
    verdict: Verdict
    value: float | None
    threshold: float | None
    baseline: float | None
    unit: str
    answer: str


class ModelFindings(Record):
    """All that the atlas publishes about one model: `findings.json`."""

    schema_version: Literal[1] = 1
    model: ModelRecord
    tensors: dict[str, TensorEntry]
    findings: dict[str, FindingRecord]
    claims: list[ClaimRecord]

    def verdict_of(self, claim_id: str) -> ClaimRecord | None:
        """Return the claim called `claim_id`, None where its finding was never tried."""
        return next((claim for claim in self.claims if claim.id == claim_id), None)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of findings.json."""
    schema = ModelFindings.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "Helix Atlas findings"}


def canonical_json(value: object) -> str:
    """Return the one JSON text of `value` that keys are made from."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_key(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


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


def as_record(result: Result, version: int, key: str, computed_on: str) -> FindingRecord:
    """Return a computed result as it is published."""
    tables = {name: TableRecord(**plain(asdict(table))) for name, table in result.tables.items()}
    return FindingRecord(
        status="computed",
        version=version,
        key=key,
        computed_on=computed_on,
        metrics=plain(result.metrics),
        tables=tables,
    )


def as_result(record: FindingRecord, arrays: dict[str, Array]) -> Result:
    """Return a published record as the result that claims and figures are made from."""
    tables = {name: Table(t.title, t.columns, t.rows) for name, t in record.tables.items()}
    return Result(dict(record.metrics or {}), tables, arrays)


def as_claim_record(claim: Claim) -> ClaimRecord:
    """Return a claim as it is published."""
    return ClaimRecord(**plain(asdict(claim)))


class Store:
    """A folder of results, one sub-folder per model."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> list[str]:
        """Return the models that have results here."""
        if not self.root.is_dir():
            return []
        return sorted(
            path.parent.name for path in self.root.glob(f"*/{FINDINGS}") if SLUG.fullmatch(path.parent.name)
        )

    def load(self, name: str) -> ModelFindings | None:
        """Read a model's findings, None where there are none.

        Raises:
            InputError: they are there but damaged.
        """
        path = self._folder(name) / FINDINGS
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"The stored results {path} can't be read: {error}.") from error
        try:
            return ModelFindings.model_validate_json(text)
        except ValidationError as error:
            raise InputError(
                f"The stored results {path} are damaged ({explain(error)}); delete the folder to compute them anew."
            ) from error

    def arrays(self, name: str, key: str) -> dict[str, Array]:
        """Read the arrays that the finding with this key left for its figures.

        Raises:
            InputError: they are absent or damaged.
        """
        path = self._folder(name) / ARRAYS
        prefix = key[:KEY_LENGTH] + "/"
        try:
            with np.load(path, allow_pickle=False) as file:
                found = {n.removeprefix(prefix): file[n] for n in file.files if n.startswith(prefix)}
        except Exception as error:  # zipfile, zlib, NumPy: each has its own way to say that a file is damaged
            raise InputError(f"The stored arrays {path} can't be read: {error}.") from error
        if not found:
            raise InputError(f"The stored arrays {path} lack those of the key {prefix[:-1]}.")
        return found

    def save(self, findings: ModelFindings, new_arrays: Mapping[str, Mapping[str, Array]]) -> None:
        """Write a model's findings, and the arrays of newly computed ones by their keys; all or nothing.

        Raises:
            AtlasError: the disk is full or the folder can't be written; what was there stays.
        """
        name = findings.model.name
        folder = self._folder(name)
        text = json.dumps(findings.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if new_arrays:
                added = {
                    f"{key[:KEY_LENGTH]}/{array}": values
                    for key, arrays in new_arrays.items()
                    for array, values in arrays.items()
                }
                wanted = self._live_keys(name) | _keys(findings)
                _write_arrays(folder, {**_readable_arrays(folder), **added}, wanted)
            with _replaced(folder / FINDINGS) as temporary:
                temporary.write_text(text + "\n", "utf-8")

    def prune(self, name: str) -> None:
        """Drop arrays that no finding refers to any more.

        Raises:
            AtlasError: the disk is full or the folder can't be written; what was there stays.
        """
        folder = self._folder(name)
        arrays = _readable_arrays(folder)
        live = self._live_keys(name)
        if any(_key_of(array) not in live for array in arrays):
            with _writing(folder):
                _write_arrays(folder, arrays, live)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Keep other processes from writing this model's results meanwhile; a killed process frees the lock.

        What killed processes left half written is swept; a folder that has no findings in the end goes.
        """
        folder = self._folder(name)
        lock = FileLock(folder / ".lock")
        with _writing(folder):
            while not lock.is_locked:
                folder.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):  # the folder went while its lock was waited for
                    lock.acquire()
            for left_behind in folder.glob(".*.tmp"):
                left_behind.unlink(missing_ok=True)
        try:
            yield
        finally:
            if not (folder / FINDINGS).exists():
                shutil.rmtree(folder, ignore_errors=True)  # while locked: the next holder's files stay
            lock.release()

    def _folder(self, name: str) -> Path:
        if not SLUG.fullmatch(name):
            raise InputError(f"{name!r} can't name a folder of results.")
        return self.root / name

    def _live_keys(self, name: str) -> set[str]:
        try:
            stored = self.load(name)
        except InputError:
            return set()
        return _keys(stored) if stored else set()


def _keys(findings: ModelFindings) -> set[str]:
    return {record.key[:KEY_LENGTH] for record in findings.findings.values() if record.key}


def _key_of(array: str) -> str:
    return array.split("/")[0]


def _readable_arrays(folder: Path) -> dict[str, Array]:
    """Return all arrays that can be read; what a damaged one belonged to is computed again."""
    found: dict[str, Array] = {}
    with suppress(Exception), np.load(folder / ARRAYS, allow_pickle=False) as file:
        for name in file.files:
            with suppress(Exception):
                found[name] = file[name]
    return found


def _write_arrays(folder: Path, arrays: Mapping[str, Array], keys: set[str]) -> None:
    """Write those arrays that belong to one of `keys`."""
    kept = {name: arrays[name] for name in sorted(arrays) if _key_of(name) in keys}
    with _replaced(folder / ARRAYS) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **kept)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AtlasError(f"Results can't be written to {folder}: {error}.") from error


@contextmanager
def _replaced(path: Path) -> Iterator[Path]:
    """Yield a temporary path whose file replaces `path` if all goes well and vanishes if not."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
