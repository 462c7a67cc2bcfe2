"""What a page may run and load: what the site ships, and nothing that a model's files could bring in.

The policy is a `<meta>` of the page itself, so that it holds wherever the site is served, and opened from the disk
(Content Security Policy Level 3, https://www.w3.org/TR/CSP3/).
"""

import base64
import hashlib
import re
from collections.abc import Collection

SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL | re.IGNORECASE)
IS_DATA = re.compile(r"\bsrc\b|type=\"?application/json\"?")
# The one thing in which a script of the theme differs between pages: where the site's root is from there.
ROOT = re.compile(r'^__md_scope=new URL\("(?!//)[\w./~%-]+"')
CHARSET = re.compile(r"<meta charset=[^>]*>")
DIRECTIVES = (
    "default-src 'none'",
    "script-src 'self' {hashes}",
    "style-src 'self' 'unsafe-inline'",  # sizes of pictures and colours of cells; nothing runs by them
    "img-src 'self' data: blob:",  # blob: what a reader saves of a figure
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",  # of the search
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
)


def scripts_of(html: str) -> frozenset[str]:
    """Return the scripts that stand in a page itself, without where it is."""
    return frozenset(map(_without_root, _inline(html)))


def with_policy(html: str, shipped: Collection[str]) -> tuple[str, list[str]]:
    """Return a page with its policy, and the scripts in it that the policy keeps from running.

    `shipped` are the scripts of a page on which nothing but the theme stands (`scripts_of`).
    """
    found = _inline(html)
    allowed = [text for text in found if _without_root(text) in shipped]
    hashes = " ".join(dict.fromkeys(map(_digest, allowed)))
    policy = "; ".join(DIRECTIVES).format(hashes=hashes)
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    charset = CHARSET.search(html)
    at = charset.end() if charset else html.index("<head>") + len("<head>")
    return html[:at] + meta + html[at:], [text for text in found if text not in allowed]


def _inline(html: str) -> list[str]:
    return [text for attributes, text in SCRIPT.findall(html) if not IS_DATA.search(attributes)]


def _without_root(script: str) -> str:
    return ROOT.sub("__md_scope=new URL(", script)


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
