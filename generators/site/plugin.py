"""Plugins of MkDocs: generated pages join the others, notebooks look like them, and every page has its policy."""

import re
from collections.abc import Collection, Mapping
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

from generators.site import citing
from generators.site.glossary import PAGE, with_terms
from generators.site.joined_files import OF_ONE_PAGE
from generators.site.navigation import NAVIGATION, read_navigation
from generators.site.notebook_markup import as_theme_expects, with_downloads
from generators.site.policy import scripts_of, with_policy
from generators.site.previews import OTHERS, PREVIEWS, read_previews, tags
from generators.site.search import ENTRIES, add_entries, mend_lunr

# A link to a folder: relative, and ending there or before a query or fragment.
TO_FOLDER = re.compile(r'(href=")(?!/)((?:[^":?#]+/)?\.\.?|[^":?#]+/)((?:[?#][^"]*)?")')
# What stays as it is written, and what else is said as well by one new line.
AS_WRITTEN = re.compile(r"(<(?:pre|textarea|script|style)\b.*?</(?:pre|textarea|script|style)>)", re.DOTALL)
INDENT = re.compile(r"\s*\n\s*")
# Pages and notebooks about the atlas itself, which a report on a model does without.
HAND_WRITTEN = (".md", ".py")
FOR_THE_PLUGIN = (NAVIGATION, ENTRIES, PREVIEWS)  # generated files that are no files of the site
UPDATED = "updated"  # in a page's front matter: the day of the latest result on it
# The theme's search is a dialog without a name: a screen reader would say "dialog" and no more.
SEARCH = '<div class="md-search" data-md-component="search" role="dialog"'
# By this name the theme finds what light and dark are chosen with; by the other one `scheme.js` does.
PALETTE, OWN_PALETTE = 'data-md-component="palette"', 'data-atlas="palette"'
PLAIN = "404.html"  # the page on which nothing but the theme stands; MkDocs makes it first
# The script with which the theme begins every page, but for its end.
SCOPE = re.compile(r"(<script>__md_scope=.*?)(?=;?</script>)", re.DOTALL)
SCRIPTS_RUN = 'document.documentElement.classList.replace("no-js","js")'
LAST = -100

log = get_plugin_logger(__name__)


class PagesConfig(Config):  # type: ignore[no-untyped-call]
    folder = config_options.Type(str, default=".pages")
    from_disk = config_options.Type(bool, default=False)


class GeneratedPages(BasePlugin[PagesConfig]):  # type: ignore[no-untyped-call]
    """Adds the files that `generators/site/` wrote, with the menu that goes with them; before mkdocs-jupyter."""

    previews: Mapping[str, Mapping[str, str]]

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        folder = self._folder(config)
        if (folder / NAVIGATION).is_file():
            config.nav = read_navigation(folder)
        return config

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        folder = self._folder(config)
        self.previews = read_previews(folder)
        if self.config.from_disk:
            files = Files([file for file in files if not file.src_uri.endswith(HAND_WRITTEN)])
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name not in FOR_THE_PLUGIN:
                made = _file(path.relative_to(folder).as_posix(), folder, config)
                in_its_place = files.get_file_from_path(made.src_uri)
                if in_its_place is not None:
                    files.remove(in_its_place)
                files.append(made)
        return files

    def on_env(self, env: Any, *, files: Files, **_: Any) -> Any:
        """Date every page: by the results on it, or the latest of all. A site of old results is not new each day."""
        pages = [file.page for file in files.documentation_pages() if file.page is not None]
        dates = [str(page.meta[UPDATED]) for page in pages if page.meta.get(UPDATED)]
        for page in pages if dates else ():
            page.update_date = str(page.meta.get(UPDATED) or max(dates))
        return env

    def on_page_context(self, context: Any, *, page: Any, **_: Any) -> Any:
        """Escape the description: the theme writes it into an attribute as it is."""
        if page.meta.get("description"):
            page.meta["description"] = str(escape(str(page.meta["description"])))
        return context

    def on_page_content(self, html: str, *, page: Any, **_: Any) -> str:
        if page.url == PAGE:
            return html
        return with_terms(html, get_relative_url(PAGE, page.url))

    def on_post_template(self, output: str, **_: Any) -> str:
        return with_theme_mended(output)

    def on_post_page(self, output: str, *, page: Any, config: MkDocsConfig, **_: Any) -> str:
        output = without_indents(with_its_scripts(with_theme_mended(output)))
        output = output.replace("</head>", f"{self._head(page, config)}</head>", 1)
        return with_links_to_files(output) if self.config.from_disk else output

    @event_priority(LAST)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        add_entries(self._folder(config), Path(config.site_dir))
        mend_lunr(Path(config.site_dir))

    def _head(self, page: Any, config: MkDocsConfig) -> str:
        """Return what the head of a page says of it for others than its reader."""
        meta = {citing.META: citing.in_words(), citing.META_BIBTEX: citing.fields()}
        said = "".join(f'<meta name="{name}" content="{escape(text)}">' for name, text in meta.items())
        preview = self.previews.get(page.file.src_uri.rpartition(".")[0]) or self.previews.get(OTHERS)
        if preview is not None:
            title = str(page.meta.get("title") or page.title or config.site_name)
            description = str(page.meta.get("description") or config.site_description or "")
            image = preview["image"]
            image = f"{config.site_url}{image}" if config.site_url else get_relative_url(image, page.url)
            said += tags(preview["alt"], title, description, image, page.canonical_url)
        return said

    def _folder(self, config: MkDocsConfig) -> Path:
        beside = Path(config.config_file_path or ".").parent
        return (beside / self.config.folder).resolve()


def _file(name: str, folder: Path, config: MkDocsConfig) -> File:
    """Return a generated file as one of MkDocs'; a path that is set by hand is lost on mkdocs-jupyter's notebooks."""
    if name.endswith(".ipynb"):
        return File(name, str(folder), config.site_dir, config.use_directory_urls)
    return File.generated(config, name, abs_src_path=str(folder / name))


def with_theme_mended(html: str) -> str:
    """Return a page of the theme whose search has a name, whose colors `scheme.js` chooses, and where scripts run.

    Said later, as the theme does, that scripts run, and what the colours are, the page is styled twice.
    """
    html = html.replace(f"{SEARCH}>", f'{SEARCH} aria-label="Search">').replace(PALETTE, OWN_PALETTE)
    return SCOPE.sub(rf"\1,{SCRIPTS_RUN}", html, count=1)


def with_its_scripts(html: str) -> str:
    """Return a page without those scripts of the site that only another page needs."""
    for place, script in OF_ONE_PAGE.items():
        if f'id="{place}"' not in html:
            html = re.sub(rf'<script src="[^"]*{re.escape(script)}"[^>]*></script>\n?', "", html)
    return html


def without_indents(html: str) -> str:
    """Return a page without empty lines and spaces at the beginning of lines, but where these are seen or run."""
    parts = AS_WRITTEN.split(html)  # every second one is as it was written
    return "".join(part if i % 2 else INDENT.sub("\n", part) for i, part in enumerate(parts))


def with_links_to_files(html: str) -> str:
    """Return a page whose relative links to folders lead to the `index.html` in them."""
    return TO_FOLDER.sub(lambda found: f"{found[1]}{found[2].rstrip('/')}/index.html{found[3]}", html)


class NotebookPages(BasePlugin):  # type: ignore[type-arg, no-untyped-call]  # it has no settings
    """Rewrites what mkdocs-jupyter made of a notebook; after mkdocs-jupyter."""

    def on_page_content(self, html: str, *, page: Any, **_: Any) -> str:
        """Return a notebook's page with the theme's markup and links to its files; other pages stay as they are."""
        if not page.file.src_uri.endswith(".ipynb"):
            return html
        return with_downloads(as_theme_expects(html), page.file.name)


class Policies(BasePlugin):  # type: ignore[type-arg, no-untyped-call]  # it has no settings
    """Gives every page a policy that lets no script run but the theme's and the site's own; the last of all."""

    shipped: Collection[str] = ()

    @event_priority(LAST)
    def on_post_template(self, output: str, *, template_name: str, **_: Any) -> str:
        """Return the plain page with its policy, and remember its scripts; other files stay as they are."""
        if template_name != PLAIN:
            return output
        self.shipped = scripts_of(output)
        return self._guarded(output, template_name)

    @event_priority(LAST)
    def on_post_page(self, output: str, *, page: Any, **_: Any) -> str:
        """Return a page with its policy."""
        return self._guarded(output, page.file.src_uri)

    def _guarded(self, html: str, name: str) -> str:
        html, blocked = with_policy(html, self.shipped)
        for script in blocked:
            log.warning("%s holds a script that the site doesn't ship: %.60s", name, " ".join(script.split()))
        return html
