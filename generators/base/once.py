from collections.abc import Callable
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class once(cached_property[T]):  # noqa: N801  # written like the decorator of the standard library
    """What `functools.cached_property` is from Python 3.12 on.

    In 3.11 that one holds a lock of the class while it computes: where a property asks the network, the threads of
    all models would wait for one another.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        super().__init__(compute)
        self.lock = nullcontext()
