"""A plugin of MkDocs: the site's own styles are one file (first the colors of verdicts), and its scripts another.

Scripts are ES modules. Browsers load none from the disk, where pages are opened too, so a script and all that it
imports become one classic script: each module a function that runs once, after those that it imports.
"""

import re
from collections.abc import Container, Mapping
from pathlib import Path

from mkdocs.config.config_options import ExtraScriptValue
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin
from mkdocs.structure.files import File, Files

from generators.base.verdicts import as_css

STYLES, SCRIPTS = "assets/site.css", "assets/site.js"
# Scripts of one page each, by the id of the place that they fill: they run after that of all pages, others lack them.
OF_ONE_PAGE = {"compare": "assets/compare.js"}
IMPORT = re.compile(r'^import \{\s*([^}]+?),?\s*\} from "\./([\w-]+\.js)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|class|(?:async )?function) (\w+))", re.MULTILINE)
COMMENT = re.compile(r"^ */\*.*?\*/\n", re.MULTILINE | re.DOTALL)  # a sixth of what would be sent
OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class JoinedFiles(BasePlugin):  # type: ignore[type-arg, no-untyped-call]  # it has no settings
    """Joins what `extra_css` names, in that order, and each script of `extra_javascript` with what it imports."""

    styles: list[str]

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Let pages name the joined styles, and run scripts when they have been read."""
        self.styles = list(config.extra_css)
        config.extra_css = [STYLES]
        config.extra_javascript = [_deferred(str(name)) for name in config.extra_javascript]
        return config

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Put the joined files in the place of their parts.

        Raises:
            PluginError: a file that `mkdocs.yml` names is not there, or a module can't be joined.
        """
        styles = [_taken(files, name).read_text("utf-8") for name in self.styles]
        names = [str(name) for name in config.extra_javascript]
        entries = [_taken(files, name) for name in names]
        shared = with_imports(entries[0]) if entries else {}
        own = [with_imports(entry, shared) for entry in entries[1:]]
        for module in {name for modules in (shared, *own) for name in modules}:
            if part := files.get_file_from_path(f"assets/{module}"):
                files.remove(part)
        files.append(File.generated(config, STYLES, content=as_css() + "\n".join(styles)))
        scripts = [joined(shared, first=True), *map(joined, own)]
        for name, script in zip(names, scripts, strict=bool(names)):
            files.append(File.generated(config, name, content=script))
        return files


def with_imports(entry: Path, without: Container[str] = ()) -> dict[str, str]:
    """Return the text of a module and of all that it imports by file name, each after those that it imports."""
    found: dict[str, str] = {}

    def add(path: Path) -> None:
        if path.name in found or path.name in without:
            return
        text = path.read_text("utf-8")
        for imported in IMPORT.finditer(text):
            add(path.with_name(imported[2]))
        found[path.name] = text

    add(entry)
    return found


def joined(modules: Mapping[str, str], *, first: bool = False) -> str:
    """Return modules as one classic script; the first on a page makes the place where modules find each other."""
    start = ['"use strict";', *(["const atlasModules = {};"] if first else [])]
    return "\n".join([*start, *(_as_function(name, text) for name, text in modules.items())])


def _as_function(name: str, text: str) -> str:
    exported = ", ".join(EXPORT.findall(text))
    body = IMPORT.sub(lambda found: f'const {{ {_renamed(found[1])} }} = atlasModules["{found[2]}"];', text)
    body = COMMENT.sub("", EXPORT.sub("", body))
    if other := OTHER.search(body):
        raise PluginError(f"{name} can't be joined, as it has a line of a form that is not read: {other[0]}")
    return f'atlasModules["{name}"] = (() => {{\n{body}return {{ {exported} }};\n}})();'


def _renamed(names: str) -> str:
    return " ".join(names.split()).replace(" as ", ": ")


def _deferred(name: str) -> ExtraScriptValue:
    script = ExtraScriptValue(name)
    script.defer = True
    return script


def _taken(files: Files, name: str) -> Path:
    file = files.get_file_from_path(name)
    if file is None or file.abs_src_path is None:
        raise PluginError(f"mkdocs.yml names {name}, which is not there.")
    files.remove(file)
    return Path(file.abs_src_path)
