"""The digest of code: what it says counts, how it is written down and what else lies around doesn't."""

import ast
import os
import random
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.base.code import PACKAGE, digest, digest_in, modules_in, said
from generators.findings import FINDINGS
from tests import toy_findings

MEASURE = "generators.findings.toy.measure"
FILES = {
    "__init__.py": '"""All of ours."""\n',
    "base/__init__.py": '"""Floor."""\n',
    "base/sizes.py": "LARGEST = 7\n",
    "base/kinds.py": "KINDS = ('a', 'b')\n",
    "drawing/style.py": "INK = 'black'\n",
    "findings/__init__.py": "from generators.findings.toy import measure\nFINDINGS = (measure,)\n",
    "findings/contract.py": "import dataclasses\n",
    "findings/toy/__init__.py": "from generators.findings.toy.claims import RULES\n",
    "findings/toy/claims.py": "RULES = (1, 2)\n",
    "findings/toy/measure.py": (
        "import os\n"
        "from typing import TYPE_CHECKING\n"
        "import numpy as np\n"
        "from generators.findings.contract import Inputs\n"
        "from generators.maths import ranks\n"
        "if TYPE_CHECKING:\n"
        "    from generators.drawing import style\n"
        "else:\n"
        "    from generators.base import kinds\n"
        "def measure(inputs):\n"
        "    from generators.maths.blocks import size\n"
        "    return size * 2.5\n"
    ),
    "maths/__init__.py": '"""Mathematics."""\n',
    "maths/ranks.py": "from ..base import sizes\ndef rank(x):\n    return x + sizes.LARGEST\n",
    "maths/blocks.py": "size = 3\n",
    "maths/curves.py": "turns = 1\n",
}
COUNTED = {
    "base/sizes.py",
    "base/kinds.py",
    "findings/contract.py",
    "findings/toy/measure.py",
    "maths/ranks.py",
    "maths/blocks.py",
}


def package(folder: Path, files: dict[str, str] = FILES, **changed: str) -> Path:
    """Write a package of ours into a folder; `changed` files are named with `__` for `/` and without `.py`."""
    at = folder / "generators"
    for name, text in {**files, **{f"{name.replace('__', '/')}.py": text for name, text in changed.items()}}.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text, "utf-8")
    return at


def modules(at: Path, name: str = MEASURE) -> set[str]:
    return {module.removeprefix("generators.") for module in modules_in(at, name)}


# Which modules count


def test_what_is_imported_counts_and_nothing_else(tmp_path):
    expected = {name.removesuffix(".py").replace("/", ".") for name in COUNTED}
    assert modules(package(tmp_path)) == expected


@pytest.mark.parametrize("file", FILES)
def test_a_change_counts_where_the_module_is_imported(file, tmp_path):
    before = digest_in(package(tmp_path / "before"), MEASURE)
    after = digest_in(package(tmp_path / "after", {**FILES, file: FILES[file] + "more = 1\n"}), MEASURE)
    assert (before != after) == (file in COUNTED)


def test_order_and_place_of_files_do_not_count(tmp_path):
    digests = set()
    for seed in range(5):
        names = random.Random(seed).sample(list(FILES), len(FILES))
        digests.add(digest_in(package(tmp_path / f"place {seed}", {name: FILES[name] for name in names}), MEASURE))
    assert len(digests) == 1


def test_modules_may_import_one_another(tmp_path):
    ring = {
        "a": "from generators import b\n",
        "b": "from generators.c import x\n",
        "c": "import generators.a\nx = 1\n",
    }
    at = package(tmp_path, **ring)
    assert modules(at, "generators.a") == modules(at, "generators.c") == {"a", "b", "c"}
    assert digest_in(at, "generators.a") == digest_in(at, "generators.b"), "the code is the same"


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("import generators.maths.ranks", {"maths.ranks", "base.sizes"}),
        ("import generators.maths.ranks as r", {"maths.ranks", "base.sizes"}),
        ("import numpy, generators.maths.blocks", {"maths.blocks"}),
        ("from generators.maths import ranks, blocks", {"maths.ranks", "base.sizes", "maths.blocks"}),
        ("from generators.maths.blocks import size", {"maths.blocks"}),
        ("from generators.maths.blocks import *", {"maths.blocks"}),
        ("from ..maths.blocks import size", {"maths.blocks"}),
        ("from ..maths import blocks", {"maths.blocks"}),
        ("from .. import maths", set()),
        ("from . import contract", {"findings.contract"}),
        ("from .contract import Inputs", {"findings.contract"}),
        ("from generators.absent import x", set()),
        ("import generators_of_others.maths", set()),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from generators.maths import ranks", set()),
        ("import typing as t\nif t.TYPE_CHECKING:\n    from generators.maths import ranks", set()),
        ("if True:\n    from generators.maths import blocks", {"maths.blocks"}),
        ("try:\n    import nothing\nexcept ImportError:\n    from generators.maths import blocks", {"maths.blocks"}),
        ("class A:\n    def f(self):\n        import generators.maths.blocks", {"maths.blocks"}),
    ],
)
def test_every_form_of_import(line, counted, tmp_path):
    at = package(tmp_path, findings__one=f"{line}\n1\n")
    assert modules(at, "generators.findings.one") == {"findings.one", *counted}


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ("from generators.room import chair", {"room"}),
        ("from generators.room import *", {"room"}),
        ("import generators.room", {"room"}),
        ("import generators.room.table", {"room", "room.table"}),
        ("from generators.room import table", {"room.table"}),
        ("import generators.room.table as t", {"room.table"}),
        ("from generators.room.table import legs", {"room.table"}),
        ("from generators.room import lamp", {"room", "room.lamp"}),
        ("import generators.room.lamp as light", {"room", "room.lamp"}),
    ],
)
def test_what_a_package_runs_counts_where_something_is_taken_from_it(line, counted, tmp_path):
    room = {
        "room/__init__.py": '"""A room."""\nchair = 4\nfrom generators.maths.blocks import size as lamp\n',
        "room/table.py": "legs = 4\n",
        "room/lamp.py": "watts = 40\n",
    }
    at = package(tmp_path, {**FILES, **room}, one=f"{line}\n")
    assert modules(at, "generators.one") - {"maths.blocks"} == {"one", *counted}
    assert ("maths.blocks" in modules(at, "generators.one")) == ("room" in counted)


def test_a_module_that_is_not_there():
    with pytest.raises(ModuleNotFoundError, match=r"generators\.nowhere"):
        digest("generators.nowhere")
    with pytest.raises(ModuleNotFoundError, match="elsewhere"):
        digest("elsewhere.module")


def test_a_module_from_elsewhere_counts_with_what_it_imports_of_ours():
    counted = modules_in(PACKAGE, toy_findings.__name__)
    assert {toy_findings.__name__, "generators.findings.inputs", "generators.findings.measured"} <= set(counted)
    assert "tests.checkpoints" not in counted


# The atlas itself


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)
def test_measuring_depends_on_mathematics_and_the_contract_alone(finding):
    own = f"generators.findings.{finding.name}"
    counted = set(modules_in(PACKAGE, finding.measure.__module__))
    assert {f"{own}.measure", "generators.findings.inputs", "generators.findings.measured"} <= counted
    assert not {"generators.findings.judging", "generators.findings.contract", f"{own}.claims"} & counted
    assert not {own, f"{own}.claims", f"{own}.figures"} & counted
    rooms = (f"{own}.", "generators.base.", "generators.maths.", "generators.findings.")
    assert all(name.startswith(rooms) for name in counted), counted
    asked = finding.asks_about
    others = {f"generators.findings.{other.name}." for other in FINDINGS if other.name not in {finding.name, *asked}}
    assert not [name for name in counted if name.startswith(tuple(others))]


def test_the_same_code_elsewhere_has_the_same_digest(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "generators", ignore=shutil.ignore_patterns("__pycache__"))
    program = (
        "import sys\n"
        "from generators.base.code import PACKAGE, digest\n"
        "print(PACKAGE)\n"
        "print(digest('generators.findings.gains.measure'))\n"
        "print('generators.findings' in sys.modules, 'numpy' in sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    place, found, imported = run.stdout.splitlines()
    assert Path(place) == (tmp_path / "generators").resolve()
    assert found == digest("generators.findings.gains.measure")
    assert imported == "False False"


# What a program says

EVERYTHING = '''
"""A program with one of everything that Pythons have read differently."""
from __future__ import annotations
import os.path as p, sys
from .. import x as y
type_of = f"{x:{w}}" f"{x:>{w}.{v}f}" "tail" f"{{{x!r:}}}" rf"\\d{x = }"
accents, other, raw = "é\\U0001fae8\\ud800", "\\x00", b"\\xff"
numbers = 1_000, 0x10, 1e1000, 1e-7, 2j, -0.0, True, None, ...
@decorated(1)
async def f(a, /, b: int = 2, *c: str, d, e=None, **g) -> "float":
    """Nothing."""
    async with a as b, c: yield
    async for i in b: await i
    return [*c, {**g, "k": 1}, {1, 2}, (lambda: 0)(), a if b else c, [j for j in k if j], x[1:2, ...]]
class A(B, metaclass=C):
    z: int
    def g(self): nonlocal_ = 1; global h; del self.h[0]; raise E from None
match x:
    case [1, *rest] | {"k": v, **others}: pass
    case A(1, k=None) as z if z > 1: pass
    case True | -1 | "s" | a.b: ...
    case _: pass
try: assert x, "m"
except* (A, B) as e: print(e)
else: x @= y
finally: x = (n := 3)
while not x < y <= z is not None: break
else: pass
'''
PINNED = "954bd82aa4a6f8fb931d72e0ace0f3bd8bb9b607e495f50eb181401495179372"  # of the program above, in every Python


def test_every_python_gives_what_this_one_gives():
    assert sha256(said(EVERYTHING).encode()).hexdigest() == PINNED


def test_an_empty_piece_of_text_says_nothing():
    """Python 3.12 reads one behind the inner braces, others don't."""
    assert "Constant" not in said('f"{x:{w}}"')
    assert "Constant" in said('f"{x:{w}b}"')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1  # one"),
        ("x = 1", "\n\n# one\n\nx = 1\n"),
        ("x = (1, 2)", "x = 1, 2"),
        ("x = 'a'", 'x = u"""a"""'),
        ("x = 16", "x = 0x1_0"),
        ("x = 1; y = 2", "x = 1\r\ny = 2"),
        ("def f(): return 1", 'def f():\n\t"""One."""\n\treturn 1'),
        ("class A: x = 1", "class A:\n    'A.'\n    x = 1\n    'One.'"),
        ("x = []  # type: list", "x = []"),
        ("x = 'é'".encode(), "# coding: latin-1\nx = 'é'".encode("latin-1")),
        ("x = 1".encode("utf-8-sig"), "x = 1"),
        ("from typing import TYPE_CHECKING", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os"),
    ],
)
def test_two_ways_to_write_the_same(one, other):
    assert said(one) == said(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = '1'", "x = 1"),
        ("x = None", "x = 'None'"),
        ("x = 0.0", "x = -0.0"),
        ("x = [1, 2]", "x = [2, 1]"),
        ("x = [1, [2]]", "x = [[1], 2]"),
        ("x = a - (b - c)", "x = a - b - c"),
        ("x = 1\ny = 2", "y = 2\nx = 1"),
        ("f(a, b)", "f(a, b=b)"),
        ("f(*a)", "f(a)"),
        ("{**a}", "{None: a}"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("def f(a, b): pass", "def f(a, /, b): pass"),
        ("if a:\n    b\nc", "if a:\n    b\n    c"),
        ("if TYPE_CHECKING:\n    a\nelse:\n    b", "if TYPE_CHECKING:\n    a\nelse:\n    c"),
        ("from . import a", "from .. import a"),
        ("import a as b", "import a"),
        ("x = f'{a}b'", "x = f'{a}' 'c'"),
        ("x = f'{a!r}'", "x = f'{a}'"),
        ("x = 'a, b'", "x = 'a', 'b'"),
        ("return_ = 1\nx = '''a\n'''", "return_ = 1\nx = '''a\n\n'''"),
        ("async def f(): pass", "def f(): pass"),
    ],
)
def test_two_programs_that_say_something_else(one, other):
    assert said(one) != said(other)


# Programs by chance

thorough = settings(deadline=None)
names = st.sampled_from(("a", "b", "rows", "ß", "_x1"))
constants = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(), st.text(), st.binary()
).map(repr)
expressions = st.recursive(
    names | constants,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(("+", "-", "@", "and", "<", "is")), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}({}, k={})".format, names, inner, inner),
        st.builds("[{}, *{}]".format, inner, inner),
        st.builds("[{} for a in {}]".format, inner, inner),
        st.builds("(lambda a: {})".format, inner),
        st.builds("f'x{{{}:>{{{}}}}}'".format, names, names),
    ),
    max_leaves=5,
)
lines = st.one_of(
    st.builds("{} = {}".format, names, expressions),
    st.builds("{} += {}".format, names, expressions),
    st.builds("print({})".format, expressions),
    st.just("pass"),
    st.just("import generators.maths"),
)
headers = st.one_of(
    st.builds("def {}(a, b={}):".format, names, expressions),
    st.builds("class {}:".format, names),
    st.builds("if {}:".format, expressions),
    st.builds("for a in {}:".format, expressions),
)
# A program is a list of lines and of blocks, each a header with a program.
programs = st.recursive(
    st.lists(lines, min_size=1, max_size=4),
    lambda inner: st.lists(lines | st.tuples(headers, inner), min_size=1, max_size=3),
    max_leaves=6,
)
remarks = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=12)


def plain(program, indent="") -> str:
    """Write a program down with nothing but what it says."""
    text = ""
    for part in program:
        header, body = part if isinstance(part, tuple) else (part, [])
        text += f"{indent}{header}\n{plain(body, indent + '    ')}"
    return text


def annotated(program, draw, indent="") -> str:
    """Write a program down with comments, docstrings, blank lines and wider indents."""
    kinds = st.sampled_from(("nothing", "comment", "blank", "string"))
    deeper = indent + draw(st.sampled_from(("  ", "    ", "\t")))
    text = ""
    for part in program:
        remark = draw(remarks)
        text += {
            "nothing": "",
            "comment": f"{indent}# {remark}\n",
            "blank": "\n   \n",
            "string": f"{indent}{remark!r}\n",
        }[draw(kinds)]
        header, body = part if isinstance(part, tuple) else (part, None)
        text += f"{indent}{header}{f'  # {remark}' if draw(st.booleans()) else ''}\n"
        text += annotated(body, draw, deeper) if body else ""
    return text


@thorough
@given(programs, st.data())
def test_comments_strings_and_blank_lines_say_nothing(program, data):
    assert said(annotated(program, data.draw)) == said(plain(program))


@thorough
@given(programs, programs)
def test_programs_say_the_same_just_where_their_trees_are_the_same(one, other):
    trees = [ast.dump(ast.parse(plain(program))) for program in (one, other)]
    assert (said(plain(one)) == said(plain(other))) == (trees[0] == trees[1])


@thorough
@given(programs, st.data(), expressions, expressions)
def test_another_expression_says_something_else(program, data, one, other):
    place = data.draw(st.integers(0, len(program)))
    texts = [plain([*program[:place], f"here = {value}", *program[place:]]) for value in (one, other)]
    assert (said(texts[0]) == said(texts[1])) == (ast.dump(ast.parse(one)) == ast.dump(ast.parse(other)))
