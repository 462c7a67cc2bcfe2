"""Stored measurements that were made before some number existed: what was measured is read as ever.

A finding may measure more than it did when a result was stored. What the result has stays readable; only what asks
for an absent number learns that it was not measured. A rule learns it at once (`NotMeasuredError`). Figures and words
get `NotMeasured` first, which fails where it is used: so a figure that needs it is lost when drawn, not all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from generators.findings.judging import NotMeasuredError
from generators.findings.measured import UNKNOWN, KnownOfModel, Measurements, Table

NumberPath = tuple[str | int, ...]  # path to a number in metrics: dict keys and list indices
Asked = Callable[[], Any]  # called when an absent number is accessed; raises or returns `NotMeasured`
OPERATIONS = (
    *("str", "format", "float", "int", "index", "complex", "round", "neg", "abs", "len", "iter", "contains", "call"),
    *("eq", "ne", "lt", "le", "gt", "ge", "hash", "array", "add", "radd", "sub", "rsub", "mul", "rmul"),
    *("truediv", "rtruediv", "floordiv", "mod", "pow", "rpow", "or", "and"),
)


class NotMeasured:
    """An absent number. It can be passed on and indexed; any other use raises."""

    def __init__(self, sentence: str) -> None:
        self.__sentence = sentence

    def __getitem__(self, _: object) -> "NotMeasured":
        return self

    def __getattr__(self, _: str) -> NoReturn:
        self._refuse()

    def _refuse(self, *_: object) -> NoReturn:
        raise NotMeasuredError(self.__sentence)


for _operation in OPERATIONS:
    setattr(NotMeasured, f"__{_operation}__", NotMeasured._refuse)


class Lacking(Mapping[str, Any]):
    """A dict with keys whose values are absent: defaults don't replace them."""

    def __init__(self, measured: Mapping[str, Any], absent: Iterable[str | int], asked: Asked) -> None:
        self._measured, self._absent, self._asked = measured, {str(key): None for key in absent}, asked

    def __getitem__(self, key: str) -> Any:
        return self._asked() if key in self._absent else self._measured[key]

    def __iter__(self) -> Iterator[str]:
        yield from self._measured
        yield from self._absent

    def __len__(self) -> int:
        return len(self._measured) + len(self._absent)


class Stored(dict[str, Any]):
    """A dict whose keys differ between models (arrays, columns): `in` and `get` work as usual."""

    def __init__(self, content: Any, asked: Asked) -> None:
        super().__init__(content)
        self._asked = asked

    def __missing__(self, key: str) -> Any:
        return self._asked()


@dataclass(frozen=True)
class StoredTable(Table):
    asked: Asked = field(kw_only=True, compare=False)

    def named(self) -> list[dict[str, Any]]:
        return [Stored(row, self.asked) for row in super().named()]

    def column(self, name: str) -> list[Any]:
        return super().column(name) if name in self.columns else self.asked()


@dataclass(frozen=True)
class StoredMeasurements:
    """A finding as stored; `absent` are the numbers of its type that the stored metrics lack."""

    metrics: Any
    tables: Mapping[str, Table]
    arrays: Mapping[str, Any]
    absent: tuple[NumberPath, ...]
    sentence: str  # what to do about an absent number
    model: KnownOfModel = UNKNOWN

    def for_rules(self) -> Measurements[Any]:
        """Return it as claims are judged from: to ask for an absent number raises `NotMeasuredError`."""
        return self._asked(NotMeasured(self.sentence)._refuse)

    def for_figures(self) -> Measurements[Any]:
        """Return it as figures and words are made from: to use an absent number raises `NotMeasuredError`."""
        return self._asked(lambda: NotMeasured(self.sentence))

    def _asked(self, asked: Asked) -> Measurements[Any]:
        tables = {
            name: StoredTable(table.title, table.columns, table.rows, asked=asked)
            for name, table in self.tables.items()
        }
        metrics = lacking(self.metrics, self.absent, asked)
        return Measurements(metrics, Stored(tables, asked), Stored(self.arrays, asked), self.model)


def lacking(value: Any, absent: Iterable[NumberPath], asked: Asked) -> Any:
    """Return metrics in which `asked` is called where an absent number is asked for."""
    return _rebuilt(value, tuple(absent), lambda content, keys: Lacking(content, keys, asked))


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
