"""What of the theme's styles a built site does without."""

import re
from pathlib import Path

STYLES = "assets/stylesheets"  # of the theme, in a built site
# On every page the theme marks the body while it chooses colours, so that nothing fades from one to the other. For
# this one rule about every element the browser styles the whole page anew, twice, before a reader can do anything.
SWITCHING = re.compile(r"\[data-md-color-switching\] \*[^{}]*\{[^{}]*\}")


def lighten(site: Path) -> None:
    """Take out of a built site's styles what costs every page and serves none."""
    for path in sorted((site / STYLES).glob("*.css")):
        styles = path.read_text("utf-8")
        lighter = without_switching(styles)
        if lighter != styles:
            path.write_text(lighter, "utf-8")


def without_switching(styles: str) -> str:
    """Return styles without the rule that stops fading while colours are chosen."""
    return SWITCHING.sub("", styles)
