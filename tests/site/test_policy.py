"""The policy of every page: the site's own scripts run, and nothing that a model's files could bring in."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from generators.site.policy import scripts_of, with_policy
from tests.site.links import is_moved
from tests.site.test_browser import until

THEME = '<script>__md_scope=new URL("/",location),go()</script><script>var palette=1</script>'
HOSTILE = """
<script>window.ran = "inline"</script>
<script src="https://elsewhere.example/a.js"></script>
<script src="data:text/javascript,window.ran='data'"></script>
<img src="absent.png" onerror="window.ran='handler'">
<svg onload="window.ran='svg'"></svg>
<iframe srcdoc="<script>parent.ran='frame'</script>"></iframe>
<object data="data:text/html,<script>parent.ran='object'</script>"></object>
<base href="https://elsewhere.example/">
<form action="https://elsewhere.example/" id="form"><button>Send</button></form>
<a href="javascript:window.ran='link'" id="hostile-link">A link</a>
<img src="https://elsewhere.example/pixel.png">
<link rel="stylesheet" href="https://elsewhere.example/a.css">
"""


def page_of(scripts: str, content: str = "") -> str:
    return f'<html><head><meta charset="utf-8"><title>T</title></head><body>{scripts}{content}</body></html>'


@pytest.mark.parametrize("root", ["/", "/an-atlas/", "."])
def test_what_the_theme_ships_is_let_through_wherever_the_page_is(root):
    shipped = scripts_of(page_of(THEME.replace('URL("/"', f'URL("{root}"')))
    html, kept_out = with_policy(page_of(THEME.replace('URL("/"', 'URL("../.."')), shipped)
    assert kept_out == []
    assert html.count("'sha256-") == 2


@pytest.mark.parametrize(
    "script",
    [
        "alert(1)",
        '__md_scope=new URL("//elsewhere.example/",location),go()',
        "var palette=1;alert(1)",
        " var palette=1",
    ],
)
def test_what_it_does_not_ship_is_shown_and_gets_no_hash(script):
    html, kept_out = with_policy(page_of(THEME, f"<ScRiPt type=module>{script}</sCrIpT>"), scripts_of(page_of(THEME)))
    assert kept_out == [script]
    assert html.count("'sha256-") == 2


def test_data_and_files_need_no_hash():
    others = '<script src="a.js"></script><script id="__config" type="application/json">{"a": 1}</script>'
    html, kept_out = with_policy(page_of(others), frozenset())
    assert kept_out == []
    assert "script-src 'self' ;" in html


class Policy(HTMLParser):
    """The policies of a page, what it names before them, and its inline handlers."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.policies: list[str] = []
        self.before: list[str] = []
        self.handlers: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(given["content"])
        elif not self.policies and tag != "html":
            self.before.append(tag)
        self.handlers += [name for name in given if name.startswith("on")]
        self.handlers += [value for value in given.values() if value.strip().lower().startswith("javascript:")]


@pytest.mark.browser
def test_every_page_has_one_policy_before_all_else_and_no_handlers(built_site: Path) -> None:
    pages = sorted(path for path in built_site.rglob("*.html") if not is_moved(path))
    assert len(pages) > 20
    for path in pages:
        page = Policy(path)
        assert len(page.policies) == 1, path
        assert page.before == ["head", "meta"], path  # its character set
        assert page.handlers == [], path
        policy = page.policies[0]
        assert "unsafe-eval" not in policy, path
        (scripts,) = re.findall(r"script-src ([^;]*);", policy)
        assert "unsafe-inline" not in scripts, path
        assert scripts.count("'sha256-") == 3, path


def seen(browser: Browser, url: str, *, guarded: bool) -> tuple[Page, list[str]]:
    """Open a page into which hostile content got, `guarded` by its policy or not; return what it asks of others."""
    page = browser.new_page()
    elsewhere: list[str] = []
    page.route("https://elsewhere.example/**", lambda route: (elsewhere.append(route.request.url), route.abort()))

    def with_content(route: Route) -> None:
        response = route.fetch()
        body = response.text().replace("</h1>", f"</h1>{HOSTILE}", 1)
        unguarded = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", body)
        route.fulfill(response=response, body=body if guarded else unguarded)

    page.route(url, with_content)
    page.add_init_script(
        "window.kept = []; document.addEventListener('securitypolicyviolation', e => kept.push(e.effectiveDirective))"
    )
    page.goto(url)
    page.wait_for_timeout(500)
    return page, elsewhere


@pytest.mark.browser
def test_hostile_content_runs_nothing_and_asks_for_nothing(browser: Browser, address: str) -> None:
    page, elsewhere = seen(browser, f"{address}models/", guarded=True)
    kept_out = {*page.evaluate("window.kept")}
    page.locator("#hostile-link").click()
    page.evaluate("document.querySelector('#form').requestSubmit()")
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran") is None
    assert elsewhere == []
    assert {"script-src-elem", "script-src-attr", "img-src", "style-src-elem", "base-uri"} <= kept_out
    assert page.url == f"{address}models/"
    page.close()
    page, elsewhere = seen(browser, f"{address}models/", guarded=False)
    until(page, "window.ran")
    assert elsewhere, "without the policy it runs and asks"
    page.close()
