"""The findings, a folder each, in the order in which pages show them: each states its place.

They are imported when `FINDINGS` is first asked for: what does without them comes at once.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from generators.findings.contract import Finding

    FINDINGS: tuple[Finding[Any], ...]

__all__ = ["FINDINGS"]


def __getattr__(name: str) -> Any:
    if name == "FINDINGS":
        return _found()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _found() -> "tuple[Finding[Any], ...]":
    folders = [module.name for module in iter_modules(__path__) if module.ispkg]
    found = [import_module(f"{__name__}.{folder}").FINDING for folder in folders]
    return tuple(sorted(found, key=lambda finding: (finding.order, finding.name)))
