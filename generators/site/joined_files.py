"""A plugin of MkDocs: the site's own styles are one file, its scripts another, so that a page asks for two."""

from pathlib import Path

from mkdocs.config.config_options import ExtraScriptValue
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin
from mkdocs.structure.files import File, Files

STYLES, SCRIPTS = "assets/site.css", "assets/site.js"
# Scripts of one page each, by the id of the place that they fill: they stay files, and others come without them.
OF_ONE_PAGE = {"alike": "assets/alike.js", "compare": "assets/compare.js"}


class JoinedFiles(BasePlugin):  # type: ignore[type-arg, no-untyped-call]  # it has no settings
    """Joins what `extra_css` and `extra_javascript` name, in that order, but for scripts of one page.

    The parts stay files of the site, too, for those who read them: data name the script that unpacks them.
    """

    parts: dict[str, list[str]]

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Let pages name the joined files."""
        scripts = [str(script) for script in config.extra_javascript]
        apart = [name for name in scripts if name in OF_ONE_PAGE.values()]
        self.parts = {
            STYLES: list(config.extra_css),
            SCRIPTS: [name for name in scripts if name not in apart],
        }
        config.extra_css = [STYLES]
        config.extra_javascript = [_deferred(name) for name in (SCRIPTS, *apart)]
        return config

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Add the joined files.

        Raises:
            PluginError: a file that `mkdocs.yml` names is not there.
        """
        for name, parts in self.parts.items():
            files.append(File.generated(config, name, content="\n".join(_content(part, files) for part in parts)))
        return files


def _deferred(name: str) -> ExtraScriptValue:
    """Return a script that runs when the page has been read."""
    script = ExtraScriptValue(name)
    script.defer = True
    return script


def _content(part: str, files: Files) -> str:
    """Return what a file of the site holds."""
    file = files.get_file_from_path(part)
    if file is None or file.abs_src_path is None:
        raise PluginError(f"mkdocs.yml names {part}, which is not there.")
    return Path(file.abs_src_path).read_text("utf-8")
