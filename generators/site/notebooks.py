"""Notebooks written as text -> executed notebooks, for MkDocs to render and readers to download.

A notebook is a file in jupytext's percent format in `site_src/notebooks/`. Its header says what it `reads`: patterns
of files, relative to its folder in the site. It is executed again when one of these changes.

A cell that shows a figure or a table says in its metadata (`shows="..."`) what is to be seen, for those who can't.
"""

import html
import os
import platform
import re
import tempfile
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
KERNEL_ENVIRONMENT = {"PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}  # warnings name places on this machine
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

    def parsed(self) -> Any:
        import jupytext

        return jupytext.reads(self.text, "py:percent")

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

    Return a sentence for each that could not be executed; its page has its text and says so. What they read has been
    written.
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
    parsed = notebook.parsed()
    read = {path for pattern in parsed.metadata["atlas"]["reads"] for path in folder.glob(pattern)}
    name = _key(notebook, read, folder)
    known = cache.get(name)
    if known is not None:
        return known.decode()
    report(f"{notebook.name}: executing the notebook")
    _execute(parsed, notebook, folder)
    _describe_outputs(parsed)
    text = _as_text(_described(parsed, notebook))
    cache.put(name, text.encode())
    return text


def _key(notebook: Notebook, read: set[Path], folder: Path) -> str:
    package = Path(__file__).parents[1]
    code = digests.of_files([Path(__file__), package / "drawing" / "style.py"], package)
    versions = [metadata.version(name) for name in LIBRARIES]
    inputs = digests.of_files(read, folder)
    return key(notebook.text, inputs, *versions, platform.python_version(), code, ending=".ipynb")


def _execute(parsed: Any, notebook: Notebook, where: Path) -> None:
    """Execute a notebook in place, in a folder of the site, by this very Python, without the user's settings."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile_default"
        profile.mkdir()
        (profile / "ipython_kernel_config.py").write_text(KERNEL_CONFIG, "utf-8")
        client = NotebookClient(
            parsed,
            km=AsyncKernelManager(
                kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),  # none but this Python's own
                transport="ipc",  # sockets in a folder that others can't look into
                connection_file=str(Path(folder) / "kernel.json"),
            ),
            timeout=LONGEST_CELL,
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": str(where)}},
        )
        try:
            client.execute(env={**os.environ, **KERNEL_ENVIRONMENT, "IPYTHONDIR": folder}, cleanup_kc=True)
        except Exception as error:  # a kernel that dies, hangs or doesn't start must not cost the other pages
            kind, why = getattr(error, "ename", type(error).__name__), getattr(error, "evalue", str(error))
            said = " ".join(f"{kind}: {why}".split())[:500]
            raise NotebookError(f"The notebook {notebook.name} could not be executed: {said}") from error


def _describe_outputs(parsed: Any) -> None:
    """Put figures and tables with the words about them."""
    for cell in parsed.cells:
        shows = cell.metadata.get("shows", UNTOLD)
        for data in (output.get("data", {}) for output in cell.get("outputs", ())):
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


def _unexecuted(notebook: Notebook, sentence: str) -> Any:
    """Return a notebook's text with the reason why there is nothing else."""
    import nbformat

    parsed = notebook.parsed()
    parsed.cells.insert(1, nbformat.v4.new_markdown_cell(f"<p><strong>{html.escape(sentence)}</strong></p>"))
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
