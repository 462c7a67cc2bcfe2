"""The findings, a folder each, in the order in which pages show them: each states its place."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from generators.findings.contract import Finding


def _found() -> tuple[Finding[Any], ...]:
    """Return the `FINDING` of every folder beside this file, by `order`."""
    folders = [module.name for module in iter_modules(__path__) if module.ispkg]
    found = [import_module(f"{__name__}.{folder}").FINDING for folder in folders]
    return tuple(sorted(found, key=lambda finding: (finding.order, finding.name)))


FINDINGS: tuple[Finding[Any], ...] = _found()

__all__ = ["FINDINGS", "Finding"]
