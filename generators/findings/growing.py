"""Stored measurements that were made before some number existed: what was measured is read as ever.

A finding may measure more than it did when a result was stored. What the result has stays readable; only what asks
for an absent number learns that it was not measured, by a `NotMeasuredError`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from generators.findings.judging import NotMeasuredError
from generators.findings.measured import UNKNOWN, KnownOfModel, Measurements, Table

NumberPath = tuple[str | int, ...]  # path to a number in metrics: dict keys and list indices


class Lacking(Mapping[str, Any]):
    """A dict with keys whose values are absent: defaults don't replace them."""

    def __init__(self, measured: Mapping[str, Any], absent: Iterable[str | int], sentence: str) -> None:
        self._measured, self._absent, self._sentence = measured, {str(key): None for key in absent}, sentence

    def __getitem__(self, key: str) -> Any:
        if key in self._absent:
            raise NotMeasuredError(self._sentence)
        return self._measured[key]

    def __iter__(self) -> Iterator[str]:
        yield from self._measured
        yield from self._absent

    def __len__(self) -> int:
        return len(self._measured) + len(self._absent)


class Stored(dict[str, Any]):
    """A dict whose keys differ between models (arrays, columns): `in` and `get` work as usual."""

    def __init__(self, content: Any, sentence: str) -> None:
        super().__init__(content)
        self._sentence = sentence

    def __missing__(self, key: str) -> NoReturn:
        raise NotMeasuredError(self._sentence)


@dataclass(frozen=True)
class StoredTable(Table):
    sentence: str = field(kw_only=True, compare=False)

    def named(self) -> list[dict[str, Any]]:
        return [Stored(row, self.sentence) for row in super().named()]

    def column(self, name: str) -> list[Any]:
        if name not in self.columns:
            raise NotMeasuredError(self.sentence)
        return super().column(name)


def as_stored(
    metrics: Any,
    tables: Mapping[str, Table],
    arrays: Mapping[str, Any],
    absent: tuple[NumberPath, ...],
    sentence: str,
    model: KnownOfModel = UNKNOWN,
) -> Measurements[Any]:
    """Return a finding as it was stored.

    `absent` are the numbers of its type that its metrics lack; `sentence` says what to do about one.
    """
    known = {
        name: StoredTable(table.title, table.columns, table.rows, sentence=sentence) for name, table in tables.items()
    }
    return Measurements(lacking(metrics, absent, sentence), Stored(known, sentence), Stored(arrays, sentence), model)


def lacking(value: Any, absent: Iterable[NumberPath], sentence: str) -> Any:
    """Return metrics in which to ask for an absent number raises."""
    return _rebuilt(value, tuple(absent), lambda content, keys: Lacking(content, keys, sentence))


def with_nulls(value: Any, absent: Iterable[NumberPath]) -> Any:
    """Return metrics as they are published: absent numbers are None."""
    return _rebuilt(value, tuple(absent), lambda content, keys: content | dict.fromkeys(map(str, keys)))


def _rebuilt(
    value: Any, absent: tuple[NumberPath, ...], made: Callable[[dict[str, Any], list[str | int]], Any]
) -> Any:
    if not absent:
        return value
    inside = {path[0] for path in absent if len(path) > 1}

    def rebuilt(key: str | int, item: Any) -> Any:
        return _rebuilt(item, tuple(path[1:] for path in absent if path[0] == key), made) if key in inside else item

    if isinstance(value, list):
        return [rebuilt(place, item) for place, item in enumerate(value)]
    content = {key: rebuilt(key, item) for key, item in value.items()}
    here = [path[0] for path in absent if len(path) == 1]
    return made(content, here) if here else content
