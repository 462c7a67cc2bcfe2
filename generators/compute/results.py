"""Results on disk. Only this file knows the layout.

    results/<model>/model.json                  what is known of the model
    results/<model>/<finding>.json              what was measured of one finding, with the SHA-256 of its content
    results/<model>/<finding>.<key>.npz         its arrays
    results/<model>/.settled                    from what all of it was stored when nothing was left to do
    results/<model>/.lock                       held by the process that writes here; it stays
    results/<model>/.unfinished/<finding>.<key>/  what a run of the model left when it was interrupted
    results/local/<model>/                      the same, of models computed here, shown in place of what git tracks

Arrays are written before the JSON that names them, under a name of their own; so whichever of the two a killed run
got to, the JSON that is there finds its arrays.
"""

import filecmp
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout
from numpy import ndarray as Array
from pydantic import ValidationError

from generators.base.errors import AtlasError, InputError, first_line
from generators.base.files import read_limited, replace_file, sweep
from generators.base.npz import from_npz, to_npz
from generators.base.plain import as_json, content_digest
from generators.checkpoint.config import CONFIG
from generators.checkpoint.registry import RESERVED, SLUG, explain
from generators.compute.records import ModelRecord, Record, StoredFinding, differing

MODEL = "model.json"
UNFINISHED = ".unfinished"
UP_TO_DATE = ".settled"
LOCK = ".lock"
LARGEST_JSON, LARGEST_ARRAYS = 2**26, 2**28  # bytes per file
KEY_LENGTH = 16  # hex digits of a key in the name of its arrays
OURS = re.compile(rf"\..*|\w+\.json|\w+\.[0-9a-f]{{0,{KEY_LENGTH}}}\.npz")  # file names in a results folder
T = TypeVar("T", bound=Record)


class ResultsHeldError(AtlasError):
    """Another run writes a model's results, and waiting for it took too long."""


class FingerprintRecord(Record):
    made_from: str
    findings: tuple[str, ...]


class Store:
    """A folder of results, one sub-folder per model; nothing is written anywhere else.

    Args:
        root: the folder.
        wait: how many seconds `atlas compute` waits for another process that writes a model's results; None: until
            it ends.
        under: another folder of results, shown where this one has none of a model. Before the first result of such a
            model is written here, all that is there is copied.
    """

    def __init__(self, root: Path, wait: float | None = None, under: Path | None = None) -> None:
        self.root, self.wait, self.under = root, wait, under

    @property
    def layers(self) -> "list[Store]":
        return [Store(self.root), *([Store(self.under)] if self.under is not None else [])]

    def names(self) -> list[str]:
        return self._named(f"*/{MODEL}")

    def folders(self) -> list[str]:
        return self._named("*/*.json")

    def _named(self, pattern: str) -> list[str]:
        found = {path.parent.name for layer in self.layers for path in layer.root.glob(pattern)}
        return sorted(name for name in found if SLUG.fullmatch(name) and name != RESERVED)

    def folder(self, name: str) -> Path:
        here = self._folder(name)
        return here if self.under is None or (here / MODEL).exists() else self.under / name

    def model(self, name: str) -> ModelRecord | None:
        """Read a model's record; None if it has no results. Raises InputError if it is damaged."""
        record = self._read(self.folder(name) / MODEL, ModelRecord)
        if record is not None and record.name != name:
            raise InputError(f"The stored results in {self.folder(name)} are those of {record.name!r}.")
        return record

    def finding(self, name: str, finding: str) -> StoredFinding | None:
        """Read what was measured of one finding; None if nothing was. Raises InputError: it is damaged."""
        record = self._read(self.folder(name) / f"{finding}.json", StoredFinding)
        if record is not None and record.finding != finding:
            raise InputError(f"The stored results {self.folder(name) / finding}.json are of another finding.")
        if record is not None and record.model != name:
            raise InputError(f"The stored results {self.folder(name) / finding}.json are those of {record.model!r}.")
        return record

    def finding_names(self, name: str) -> list[str]:
        return sorted(path.stem for path in self.folder(name).glob("*.json") if path.name != MODEL)

    def dates(self, name: str) -> set[str]:
        records = [self.finding(name, finding) for finding in self.finding_names(name)]
        return {record.computed_on for record in records if record is not None and record.computed_on}

    def arrays(self, name: str, record: StoredFinding) -> dict[str, Array]:
        """Read the arrays that a finding left for its figures. Raises InputError: they are absent or damaged."""
        if record.arrays_sha256 is None:
            return {}
        path = self.folder(name) / _arrays_file(record)
        try:
            data = read_limited(path, LARGEST_ARRAYS)
        except OSError as error:
            raise InputError(f"The stored arrays {path} can't be read: {error.strerror}.") from error
        if hashlib.sha256(data).hexdigest() != record.arrays_sha256:
            raise InputError(f"The stored arrays {path} are damaged: their digest is another one.")
        try:
            return from_npz(data)
        except Exception as error:  # NumPy raises all kinds of errors for crafted files
            raise InputError(f"The stored arrays {path} are damaged: {first_line(error)}.") from error

    def load(self, name: str, finding: str) -> tuple[StoredFinding, dict[str, Array]] | None:
        """Read what was measured of one finding, with its arrays; None where nothing was.

        Where another process replaces the one before the other is read, both are read anew.

        Raises InputError: it is there but damaged.
        """
        record = self.finding(name, finding)
        while record is not None:
            try:
                return record, self.arrays(name, record)
            except InputError:
                before, record = record, self.finding(name, finding)
                if record == before:
                    raise
        return None

    def load_or_none(self, name: str, finding: str) -> tuple[StoredFinding, dict[str, Array]] | None:
        with suppress(InputError):
            return self.load(name, finding)
        return None

    def of_different_weights(self, name: str, found: Iterable[StoredFinding]) -> str | None:
        """Return a sentence if two findings are of different tensors of one name, and no run is replacing them.

        If so, what was `found` is read anew: such a run may have ended since.
        """
        if differing(found) is None or self.is_held(name):
            return None
        whole = (self.load_or_none(name, finding) for finding in self.finding_names(name))
        mixed = differing(each[0] for each in whole if each is not None)
        if mixed is None:
            return None
        one, other, tensor = mixed
        return (
            f"The stored results of {name} are of different weights: {one} and {other} were "
            f"measured from two tensors called {tensor}. Compute them again from one."
        )

    def has_model(self, name: str) -> bool:
        with suppress(InputError):
            return self.model(name) is not None
        return False

    def save_model(self, record: ModelRecord) -> None:
        self._write(self._folder(record.name) / MODEL, record)

    def save_finding(self, name: str, record: StoredFinding, arrays: Mapping[str, Array]) -> StoredFinding:
        """Write and return one finding, and drop older arrays. Raises AtlasError: it can't; what was there stays."""
        folder, record = self._folder(name), record.model_copy(update={"model": name})
        if arrays:
            data = to_npz(arrays)
            record = record.model_copy(update={"arrays_sha256": hashlib.sha256(data).hexdigest()})
            with _writing(folder):
                replace_file(folder / _arrays_file(record), data)
        self._write(folder / f"{record.finding}.json", record)
        self.drop_older_arrays(name, record)
        return record

    def drop_older_arrays(self, name: str, record: StoredFinding) -> None:
        """Remove arrays of replaced results, which a killed run may have left."""
        folder = self._folder(name)
        current = _arrays_file(record) if record.arrays_sha256 else None
        with _writing(folder):
            for path in folder.glob(f"{record.finding}.*.npz"):
                if path.name != current:
                    path.unlink(missing_ok=True)

    def remove_finding(self, name: str, finding: str) -> None:
        with _writing(self._folder(name)):
            for path in (self._folder(name) / f"{finding}.json", *self._folder(name).glob(f"{finding}.*.npz")):
                path.unlink(missing_ok=True)

    def remove_model(self, name: str) -> None:
        """Remove a model's results here, its record first: without it a folder counts as empty."""
        with _writing(self._folder(name)):
            for path in sorted(self._folder(name).glob("[!.]*"), key=lambda path: path.name != MODEL):
                path.unlink(missing_ok=True)

    def unfinished(self, name: str, finding: str, key: str) -> Path:
        """Return the folder for partial results of this key; those of other keys are removed."""
        folder = self._folder(name) / UNFINISHED
        mine = folder / f"{finding}.{key[:KEY_LENGTH]}"
        self.drop_unfinished(name, finding, but=mine)
        return mine

    def drop_unfinished(self, name: str, finding: str, but: Path | None = None) -> None:
        folder = self._folder(name) / UNFINISHED
        for left in folder.glob(f"{finding}.*"):
            if left != but:
                shutil.rmtree(left, ignore_errors=True)
        with suppress(OSError):
            folder.rmdir()  # if it is empty

    @contextmanager
    def locked(self, name: str, wait: float = -1) -> Iterator[None]:
        """Keep other processes from writing this model's results meanwhile; a killed process frees the lock.

        What killed processes left half written is swept. `wait` is in seconds; below 0: until it is free.

        Raises ResultsHeldError: another process has held the lock for too long. AtlasError: the folder can't be
        written.
        """
        folder = self._folder(name)
        _check_ours(folder)
        lock = FileLock(folder / LOCK)
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire(timeout=wait)
            except Timeout:
                waited = f"{self.wait or 0:g} seconds of waiting were not enough"
                raise ResultsHeldError(f"The results of {name} are being written by another run: {waited}.") from None
        try:
            with _writing(folder):
                sweep(folder)
                self._copy_under(name)
            yield
        finally:
            if self._is_copy(name):
                self.remove_model(name)
            lock.release()

    def _copy_under(self, name: str) -> None:
        """Copy what is stored of a model in the folder under this one, unless this one has results of it.

        The model's own file comes last: without it a folder counts as empty.
        """
        if self.under is None or self.folder(name) == self._folder(name):
            return
        for path in sorted(self.folder(name).glob("[!.]*"), key=lambda path: path.name == MODEL):
            replace_file(self._folder(name) / path.name, read_limited(path, LARGEST_ARRAYS))

    def _is_copy(self, name: str) -> bool:
        if self.under is None or self._folder(name).resolve() == (self.under / name).resolve():  # a link
            return False
        here, under = ({path.name for path in root.glob("[!.]*")} for root in (self._folder(name), self.under / name))
        return here == under and not any(filecmp.cmpfiles(self._folder(name), self.under / name, here, False)[1:])

    def is_held(self, name: str) -> bool:
        """Return whether another process, or another part of this one, holds the lock of this model's results."""
        if not (self._folder(name) / LOCK).exists():
            return False
        try:
            with FileLock(self._folder(name) / LOCK).acquire(timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # locking reports the error
            return False

    def is_tidy(self, name: str, records: Iterable[StoredFinding]) -> bool:
        """Return whether a model's folder holds nothing but these findings: no leftovers and no partial runs."""
        folder = self.folder(name)
        known = {MODEL, UP_TO_DATE, LOCK}
        for record in records:
            known.add(f"{record.finding}.json")
            if record.arrays_sha256:
                known.add(_arrays_file(record))
        return {path.name for path in folder.iterdir()} <= known if folder.is_dir() else False

    def up_to_date(self, name: str) -> FingerprintRecord | None:
        try:
            return FingerprintRecord.model_validate_json(read_limited(self._folder(name) / UP_TO_DATE, LARGEST_JSON))
        except (OSError, ValidationError):
            return None

    def remember(self, name: str, made_from: str, findings: tuple[str, ...]) -> None:
        with _writing(self._folder(name)):
            content = FingerprintRecord(made_from=made_from, findings=findings).model_dump_json()
            replace_file(self._folder(name) / UP_TO_DATE, content.encode())

    def _folder(self, name: str) -> Path:
        if not SLUG.fullmatch(name):
            raise InputError(f"{name!r} can't name a folder of results.")
        return self.root / name

    def _read(self, path: Path, kind: type[T]) -> T | None:
        try:
            content = json.loads(read_limited(path, LARGEST_JSON), parse_constant=_no_number)
            said = content.pop("sha256", None) if isinstance(content, dict) else None
            digest = content_digest(content)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not path.is_symlink():
                return None
            raise InputError(f"The stored results {path} can't be read: {error.strerror}.") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"The stored results {path} are damaged: they aren't JSON.") from error
        if said != digest:
            raise InputError(f"The stored results {path} are damaged: their digest is another one.")
        try:
            return kind.model_validate(content)
        except ValidationError as error:
            raise InputError(
                f"The stored results {path} are of another version of the atlas ({explain(error)})."
            ) from error

    def _write(self, path: Path, record: Record) -> None:
        content: dict[str, Any] = record.model_dump(mode="json")
        with _writing(path.parent):
            replace_file(path, as_json({**content, "sha256": content_digest(content)}).encode())


def _check_ours(folder: Path) -> None:
    """Raise InputError for folders with other files, such as a checkpoint, which would be removed."""
    with suppress(OSError):  # not there, or no folder: writing says so
        other = next((path.name for path in sorted(folder.iterdir()) if not OURS.fullmatch(path.name)), None)
        if other is not None or (folder / CONFIG).exists():
            raise InputError(
                f"Results can't be stored in {folder}: it holds {other or CONFIG}, which is no result. "
                "Name another folder with --results."
            )


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _arrays_file(record: StoredFinding) -> str:
    return f"{record.finding}.{(record.key or '')[:KEY_LENGTH]}.npz"


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AtlasError(f"Results can't be written to {folder}: {error}.") from error
