"""The code that a module's results depend on, as one digest: the module and all of ours that it imports.

Code counts by what it says and not by how it is written down: as a syntax tree without docstrings, comments and
positions, in a form of its own that every Python from 3.11 on gives alike. Modules are read and never imported. What
a package's `__init__` says counts where a name is taken from it, not where a module inside the package is imported;
modules that are imported by a name made at run time aren't seen.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from symtable import symtable
from typing import cast

PACKAGE = Path(__file__).resolve().parents[1]  # all of ours
LEFT_OUT = ("ctx", "kind", "type_comment")  # fields that change nothing: a node's place says it, or a reader


@cache
def digest(module_name: str) -> str:
    """Return the SHA-256 of the code that the results of a module (ours, or one that is imported already) depend on.

    Raises ModuleNotFoundError: there is none of that name.
    """
    return digest_in(PACKAGE, module_name)


def digest_in(package: Path, module_name: str) -> str:
    """Return the digest of a module where `package` is the folder of all that is ours."""
    modules = modules_in(package, module_name)
    return sha256("\n".join(f"{name} {modules[name]}" for name in sorted(modules)).encode()).hexdigest()


def modules_in(package: Path, module_name: str) -> dict[str, str]:
    """Return what a module and all of ours that it imports say, by name; those that say nothing are left out."""
    read: dict[str, _Module] = {}
    wanted = [module_name]
    while wanted:
        name = wanted.pop()
        if name not in read:
            read[name] = _module(package, name)
            wanted += read[name].imports
    return {name: module.says for name, module in read.items() if module.says}


def said(source: bytes | str) -> str:
    """Return what a program says: the same text for all ways to write it down, in every Python."""
    return _in_words(_what_runs(source))


@dataclass(frozen=True)
class _Module:
    """What a module says, and the names of those of ours that it imports."""

    says: str
    imports: tuple[str, ...]


@cache
def _module(package: Path, name: str) -> _Module:
    path = _path(package, name) or _path_elsewhere(name)
    tree = _what_runs(path.read_bytes())
    inside = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = {found for module, taken in _imports(tree, inside) for found in _of_ours(package, module, taken)}
    return _Module(_in_words(tree), tuple(sorted(imports)))


def _path(package: Path, name: str) -> Path | None:
    """Return the file of a module of ours, None where there is none of that name."""
    first, *others = name.split(".")
    if first != package.name:
        return None
    at = package.joinpath(*others)
    return next((file for file in (at / "__init__.py", at.with_suffix(".py")) if file.is_file()), None)


def _path_elsewhere(name: str) -> Path:
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        raise ModuleNotFoundError(f"There is no module {name}.", name=name)
    return Path(file)


# What a program says


def _what_runs(source: bytes | str) -> ast.Module:
    """Return a program without docstrings, other strings that stand alone, and what only type checkers read."""
    return cast(ast.Module, _WhatRuns().visit(ast.parse(source)))


class _WhatRuns(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_text(node.value) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if _is_for_types(node.test) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Join the pieces of text between braces: Pythons differ in where they put empty ones."""
        self.generic_visit(node)
        parts = [(is_text, list(pieces)) for is_text, pieces in groupby(node.values, _is_text)]
        node.values = [piece for is_text, pieces in parts for piece in (_joined(pieces) if is_text else pieces)]
        return node


def _joined(pieces: list[ast.expr]) -> list[ast.expr]:
    text = "".join(str(cast(ast.Constant, piece).value) for piece in pieces)
    return [ast.Constant(text)] if text else []


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_for_types(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else None
    return name == "TYPE_CHECKING"


def _in_words(tree: ast.Module) -> str:
    return "\n".join(map(_written, tree.body))


def _written(value: object) -> str:
    """Return a syntax tree as text: the type of every node, and the fields that hold something, by name."""
    if isinstance(value, ast.AST):
        held = {name: field for name, field in ast.iter_fields(value) if field is not None and field != []}
        fields = ", ".join(f"{name}={_written(held[name])}" for name in sorted(held) if name not in LEFT_OUT)
        return f"{type(value).__name__}({fields})"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f"{type(value).__name__} {value!a}"  # in ASCII: Pythons differ in which characters `repr` escapes


# What it imports


def _imports(tree: ast.Module, inside: str) -> Iterator[tuple[str, str | None]]:
    """Yield every module that is imported (relative: `inside` a package), and the name taken from it, if one is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = _absolute(node, inside)
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (found for alias in node.names for found in _named(alias))


def _absolute(node: ast.ImportFrom, inside: str) -> str:
    """Return the module that names are imported from, by its full name."""
    if not node.level:
        return node.module or ""
    parts = inside.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def _named(alias: ast.alias) -> Iterator[tuple[str, str | None]]:
    """Yield what `import a.b.c` makes known, a, a.b and a.b.c; `as` takes c from a.b."""
    module, _, last = alias.name.rpartition(".")
    if alias.asname and module:
        yield module, last
        return
    parts = alias.name.split(".")
    yield from ((".".join(parts[:end]), None) for end in range(1, len(parts) + 1))


def _of_ours(package: Path, module: str, taken: str | None) -> Iterator[str]:
    """Yield the modules of ours that an import means.

    A name that is taken from a package is a module inside it, unless the package defines that name itself.
    """
    path = _path(package, module)
    if path is None:
        return
    inside = f"{module}.{taken}"
    is_module = taken is not None and _path(package, inside) is not None
    if is_module:
        yield inside
    if not is_module or taken in _defined(path):
        yield module


@cache
def _defined(path: Path) -> frozenset[str]:
    """Return the names that a file defines or imports, outside of functions and classes."""
    table = symtable(path.read_text("utf-8"), path.name, "exec")
    return frozenset(symbol.get_name() for symbol in table.get_symbols() if symbol.is_local())
