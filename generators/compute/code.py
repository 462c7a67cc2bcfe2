"""The code that a module's results depend on, as one digest: the module and all of ours that it imports.

Code counts by what it says and not by how it is written down: as a syntax tree without docstrings, comments and
positions, in a form of its own that every Python from 3.11 on gives alike. Modules are read and never imported. What
a package runs when it is imported counts where something is imported from it, not where a module inside it is.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from symtable import symtable

PACKAGE = Path(__file__).resolve().parents[1]  # all of ours
LEFT_OUT = ("ctx", "kind", "type_comment")  # what a node's place or a comment says already


@cache
def digest(module_name: str) -> str:
    """Return the SHA-256 of the code that the results of a module depend on.

    Args:
        module_name: a module of ours, or one from elsewhere that is imported already.

    Raises:
        ModuleNotFoundError: there is none of that name.
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


@dataclass(frozen=True)
class _Module:
    """What a module says, and the names of those of ours that it imports."""

    says: str
    imports: tuple[str, ...]


@cache
def _module(package: Path, name: str) -> _Module:
    path = _path(package, name) or _path_elsewhere(name)
    tree = _that_runs(ast.parse(path.read_bytes(), path.name))
    inside = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = {of_ours for module, attribute in _imports(tree, inside) for of_ours in _of_ours(package, module, attribute)}
    return _Module("".join(written(statement) for statement in tree.body), tuple(sorted(imports)))


def _path(package: Path, name: str) -> Path | None:
    """Return the file of a module of ours, None where there is none of that name."""
    first, *others = name.split(".")
    at = package.joinpath(*others)
    files = (at / "__init__.py", at.with_suffix(".py")) if first == package.name else ()
    return next((file for file in files if file.is_file()), None)


def _path_elsewhere(name: str) -> Path:
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        raise ModuleNotFoundError(f"There is no module {name}.", name=name)
    return Path(file)


# What a program says


def _that_runs(tree: ast.Module) -> ast.Module:
    """Return a program without docstrings and other strings that stand alone, and without what only types need."""
    return _Runs().visit(tree)


class _Runs(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:  # noqa: N802
        alone = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if alone else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:  # noqa: N802
        self.generic_visit(node)
        return node.orelse if _for_types(node.test) else node


def _for_types(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else None
    return name == "TYPE_CHECKING"


def written(value: object) -> str:
    """Return a syntax tree as text: the types of its nodes, and of their fields those that hold something, by name."""
    if isinstance(value, ast.AST):
        fields = sorted((name, held) for name, held in _fields(value) if held is not None and held != [])
        return f"{type(value).__name__}({', '.join(f'{name}={written(held)}' for name, held in fields)})"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return f"{type(value).__name__} {value!a}"  # in ASCII: which characters `repr` shows is up to the Python


def _fields(node: ast.AST) -> Iterator[tuple[str, object]]:
    return ((name, held) for name, held in ast.iter_fields(node) if name not in LEFT_OUT)


# What it imports


def _imports(tree: ast.Module, inside: str) -> Iterator[tuple[str, str | None]]:
    """Yield every module that is imported, in functions too, and the name that is taken from it, if one is.

    Args:
        tree: the program.
        inside: the package that relative imports start from.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = _absolute(node, inside)
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (found for alias in node.names for found in _named(alias))


def _absolute(node: ast.ImportFrom, inside: str) -> str:
    if not node.level:
        return node.module or ""
    parts = inside.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def _named(alias: ast.alias) -> Iterator[tuple[str, str | None]]:
    """Yield what `import a.b.c` makes known: all three; with `as`, what c is in a.b."""
    module, _, last = alias.name.rpartition(".")
    if alias.asname and module:
        yield module, last
        return
    parts = alias.name.split(".")
    yield from ((".".join(parts[:end]), None) for end in range(1, len(parts) + 1))


def _of_ours(package: Path, module: str, attribute: str | None) -> Iterator[str]:
    """Yield the modules of ours that an import means: the module or package, or a module inside the package."""
    submodule = f"{module}.{attribute}"
    inside = attribute is not None and _path(package, submodule) is not None
    if inside:
        yield submodule
    path = _path(package, module)
    if path is not None and not (inside and attribute not in _names(path)):
        yield module


@cache
def _names(path: Path) -> frozenset[str]:
    """Return the names that a file uses outside of functions and classes, those that it defines among them."""
    return frozenset(symtable(path.read_text("utf-8"), path.name, "exec").get_identifiers())
