"""Notebooks written as text -> executed notebooks, for MkDocs to render and readers to download.

A notebook is a file in jupytext's percent format in `site_src/notebooks/`. Its header says what it `reads`: patterns
of files, relative to its folder in the site. It is executed again when one of these changes, and not where none fits.

A cell that shows a figure or a table says in its metadata (`shows="..."`) what is to be seen, for those who can't.
"""

import html
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from generators.base import digests
from generators.base.cache import Cache, key
from generators.base.errors import AtlasError, InputError
from generators.base.progress import Report, silent
from generators.site.staging import Staging

FOLDER = "notebooks"
LIBRARIES = (
    *("ipykernel", "ipython", "jupytext", "nbclient"),
    *("matplotlib", "matplotlib-inline", "numpy", "pandas", "pyarrow", "safetensors"),
)
# Of the extra `notebooks`: what executes them, what shows them as pages, and what writes the table that they read.
NEEDED = ("ipykernel", "jupyter_client", "jupytext", "mkdocs_jupyter", "nbclient", "nbformat", "pandas", "pyarrow")
LONGEST_CELL = 300  # seconds; one that takes longer hangs
TITLE = re.compile(r"^# # (.+)$", re.MULTILINE)
UNTOLD = "What the code above shows"
# The figures' ink is replaced by the page's colour of text, so nothing else may stand behind them than the page.
KERNEL_CONFIG = """
from generators.drawing.style import house_style

panes = {f"axes3d.{axis}axis.panecolor": "#00000000" for axis in "xyz"}
c.InlineBackend.figure_formats = {"svg"}
c.InlineBackend.rc = house_style() | panes
c.InlineBackend.print_figure_kwargs = {"bbox_inches": "tight", "metadata": {"Date": None, "Creator": None}}
"""
NUMBERED_GROUP = re.compile(r'<g id="[\w.-]+_\d+">')
SCOPED_STYLE = re.compile(r"<style scoped>.*?</style>", re.DOTALL)


@dataclass(frozen=True)
class Notebook:
    source: Path

    @property
    def name(self) -> str:
        return self.source.stem

    @property
    def text(self) -> str:
        return self.source.read_text("utf-8")

    @property
    def title(self) -> str:
        found = TITLE.search(self.text)
        return found[1].strip() if found else self.name


def check_installed() -> None:
    """Raise InputError unless everything is installed that a site with notebooks needs."""
    if any(find_spec(name) is None for name in NEEDED):
        raise InputError("Building the whole site needs Jupyter and pyarrow: pip install 'helix-atlas[notebooks]'.")


def listed(site_source: Path) -> list[Notebook]:
    """Return the notebooks of a site: in the order in which the index page names them, others after those."""
    index = site_source / FOLDER / "index.md"
    order = re.findall(r"\(([\w-]+)\.ipynb\)", index.read_text("utf-8")) if index.is_file() else []
    found = [Notebook(path) for path in sorted((site_source / FOLDER).glob("*.py"))]
    return sorted(found, key=lambda one: order.index(one.name) if one.name in order else len(order))


def write_notebooks(source: Path, staging: Staging, cache: Cache, report: Report = silent) -> list[str]:
    """Write every notebook, executed now or taken from the cache if nothing it follows from changed.

    Return a sentence for each that could not be executed; its page has its text and says so. One whose input isn't
    there is not executed either, and says so, but that is no failure. What they read has been written.
    """
    failures = []
    folder = staging.folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for notebook in listed(source):
        try:
            content = _content(notebook, folder, cache, report)
        except NotebookError as error:
            failures.append(str(error))
            content = _as_text(_unexecuted(notebook, str(error)))
        staging.write(f"{FOLDER}/{notebook.name}.ipynb", content)
    return failures


class NotebookError(AtlasError):
    """A notebook can't be executed: which one and why, in a sentence."""


def _content(notebook: Notebook, folder: Path, cache: Cache, report: Report) -> str:
    """Return the executed notebook; `folder` is where it will stand in the site, and is executed."""
    parsed, reads = _parsed(notebook)
    if absent := [pattern for pattern in reads if not any(folder.glob(pattern))]:
        are = "is" if len(absent) == 1 else "are"
        sentence = f"The notebook {notebook.name} was not executed: {' and '.join(absent)} {are} missing."
        report(sentence)
        return _as_text(_unexecuted(notebook, sentence))
    name = _key(notebook, {path for pattern in reads for path in folder.glob(pattern)}, folder)
    known = cache.get(name)
    if known is not None:
        return known.decode()
    report(f"{notebook.name}: executing the notebook")
    _execute(parsed, notebook, folder)
    _tidy(parsed)
    text = _as_text(_described(parsed, notebook))
    cache.put(name, text.encode())
    return text


def _parsed(notebook: Notebook) -> tuple[Any, list[str]]:
    import jupytext

    try:
        parsed = jupytext.reads(notebook.text, "py:percent")
        return parsed, list(parsed.metadata["atlas"]["reads"])
    except Exception as error:  # YAML, jupytext and the header's own mistakes: each has errors of its own
        raise NotebookError(f"The notebook {notebook.name} can't be read: {_one_line(str(error))}") from error


def _key(notebook: Notebook, read: set[Path], folder: Path) -> str:
    package = Path(__file__).parents[1]
    code = digests.of_files([Path(__file__), package / "drawing" / "style.py"], package)
    versions = [metadata.version(name) for name in LIBRARIES]
    inputs = digests.of_files(read, folder)
    return key(notebook.text, inputs, *versions, platform.python_version(), code, ending=".ipynb")


def _execute(parsed: Any, notebook: Notebook, where: Path) -> None:
    """Execute a notebook in place, in a folder of the site, by this very Python, without the user's settings."""
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile_default"
        profile.mkdir()
        (profile / "ipython_kernel_config.py").write_text(KERNEL_CONFIG, "utf-8")
        client = NotebookClient(
            parsed,
            km=AsyncKernelManager(
                kernel_spec_manager=_this_python(),
                transport="ipc",  # sockets in a folder that others can't look into
                connection_file=str(Path(folder) / "kernel.json"),
            ),
            timeout=LONGEST_CELL,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(where)}},
        )
        try:
            client.execute(env={**os.environ, "IPYTHONDIR": folder, "PYTHONHASHSEED": "0"}, cleanup_kc=True)
        except CellExecutionError as error:
            raise _failed(notebook, error.ename, error.evalue) from error
        except Exception as error:  # a kernel that dies, hangs or doesn't start must not cost the other pages
            raise _failed(notebook, type(error).__name__, str(error)) from error


def _failed(notebook: Notebook, kind: str, why: str) -> NotebookError:
    said = _without_places(f"{kind}: {_one_line(why)}")
    return NotebookError(f"The notebook {notebook.name} could not be executed: {said}")


def _this_python() -> Any:
    from ipykernel.kernelspec import make_ipkernel_cmd
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

    class ThisPython(KernelSpecManager):  # the machine may have another kernel under the usual name
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            return KernelSpec(argv=make_ipkernel_cmd(), display_name="Python 3", language="python")

    return ThisPython()


def _tidy(parsed: Any) -> None:
    """Make outputs fit for a page: no paths of this machine, figures and tables with the words about them."""
    for cell in parsed.cells:
        for output in cell.get("outputs", ()):
            if "text" in output:
                output.text = _without_places(output.text)
            data = output.get("data", {})
            for kind in data:
                if kind.startswith("text/") or kind == "image/svg+xml":
                    data[kind] = _without_places(data[kind])
            shows = cell.metadata.get("shows", UNTOLD)
            if "image/svg+xml" in data:
                data["image/svg+xml"] = _figure(data["image/svg+xml"], shows)
            if "<table" in data.get("text/html", ""):
                data["text/html"] = _table(data["text/html"], shows)


def _figure(svg: str, shows: str) -> str:
    """Return a figure that can stand in a page beside others: nothing before its tag, and no numbered groups."""
    svg = NUMBERED_GROUP.sub("<g>", svg[svg.index("<svg") :])
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(shows)}"', 1)


def _table(table: str, shows: str) -> str:
    plain = SCOPED_STYLE.sub("", table).replace(' border="1"', "").strip()
    return f'<div class="atlas-scroll" role="region" aria-label="{html.escape(shows)}" tabindex="0">{plain}</div>'


def _without_places(text: str) -> str:
    for path, word in _places():
        text = text.replace(path, word)
    return re.sub(r"ipykernel_\d+/\d+\.py", "cell.py", text)


def _places() -> Iterator[tuple[str, str]]:
    """Yield this machine's folders, inner ones first, with what stands for them."""
    yield sys.prefix, "<python>"
    yield str(Path.cwd()), "<atlas>"
    yield tempfile.gettempdir(), "<tmp>"
    if len(Path.home().parts) > 1:  # a home of / would be found everywhere
        yield str(Path.home()), "~"


def _unexecuted(notebook: Notebook, sentence: str) -> Any:
    """Return a notebook's text with the reason why there is nothing else; if it can't be read, the reason alone."""
    import nbformat

    said = nbformat.v4.new_markdown_cell(f"<p><strong>{html.escape(sentence, quote=False)}</strong></p>")
    try:
        parsed, _ = _parsed(notebook)
        parsed.cells.insert(1, said)
    except NotebookError:
        heading = nbformat.v4.new_markdown_cell(f"# {html.escape(notebook.title, quote=False)}")
        parsed = nbformat.v4.new_notebook(cells=[heading, said])
    return _described(parsed, notebook)


def _described(parsed: Any, notebook: Notebook) -> Any:
    """Return a notebook whose metadata say where it comes from, and nothing that differs between two executions."""
    language = parsed.metadata.get("language_info")
    parsed.metadata = {
        "atlas": {"source": notebook.source.name},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        **({"language_info": language} if language else {}),
    }
    for index, cell in enumerate(parsed.cells):
        cell.id = f"cell-{index}"
    return parsed


def _as_text(parsed: Any) -> str:
    import nbformat

    return nbformat.writes(nbformat.from_dict(parsed), version=4) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:500]
