"""What mkdocs-jupyter makes of a notebook, marked up like the site's other pages, and as light.

mkdocs-jupyter puts half a megabyte of styles into every page, and scripts that come from elsewhere. Nothing of that
is needed where code, tables and figures are marked up as the theme and `atlas.css` expect them.
"""

import base64
import re

from generators.drawing.style import INK

BODY = re.compile(r'<div class="jupyter-wrapper">.*</div> <!-- jupyter-wrapper -->', re.DOTALL)
COPYING = re.compile(
    r'<div class="zeroclipboard-container">.*?</clipboard-copy>\s*</div>'
    r'|<div class="clipboard-copy-txt"[^>]*>.*?</div>',
    re.DOTALL,
)
CODE = re.compile(r'<div class="highlight-ipynb [^"]*"><pre>(?:<span></span>)?(.*?)</pre></div>', re.DOTALL)
ANCHOR = re.compile(r'<a class="anchor-link"')
FIGURE = re.compile(r'<img [^>]*src="data:image/svg\+xml;base64,([^"]*)"[^>]*>')
INK_IN_FIGURE = re.compile(rf"(fill|stroke): {INK}")


def as_theme_expects(html: str) -> str:
    """Return a rendered notebook without styles and scripts, marked up like the theme's own pages."""
    found = BODY.search(html)
    if found is None:
        raise ValueError("mkdocs-jupyter marks up a notebook's body in another way than generators expect")
    body = COPYING.sub("", found[0])
    body = CODE.sub(r'<div class="highlight"><pre><code>\1</code></pre></div>', body)
    body = ANCHOR.sub('<a class="headerlink" title="Permanent link"', body)
    return FIGURE.sub(lambda found: _inline(found[1]), body)


def _inline(encoded: str) -> str:
    return INK_IN_FIGURE.sub(r"\1: currentColor", base64.b64decode(encoded).decode())


def with_downloads(html: str, name: str) -> str:
    links = (
        f'<p class="downloads">Download: <a href="{name}.ipynb" download>{name}.ipynb</a> (executed), '
        f'<a href="../{name}.py" download>{name}.py</a> (text)</p>'
    )
    return html.replace("</h1>", f"</h1>\n{links}", 1)
