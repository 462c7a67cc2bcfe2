"""Nothing that a token contains can break a page: every readable form comes back from the browser as it went in."""

import json
from pathlib import Path

import pytest
from jinja2 import Environment
from playwright.sync_api import Browser

from generators.tokens.readable import readable_form
from generators.tokens.tokenizer_files import load_vocabulary
from tests.tokens.test_vocabulary import GPT2_SIZE, HOSTILE_BYTES, MINILM_SIZE, in_package, vocabulary_in

pytestmark = pytest.mark.browser

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tokens</title>
<table>
{%- for form in forms %}
<tr title="{{ form }}"><td><bdi>{{ form }}</bdi></td></tr>
{%- endfor %}
</table>
<p id="after">after</p>
"""
READ_BACK = """() => {
  const all = document.querySelectorAll('*');
  return JSON.stringify({
    texts: [...document.querySelectorAll('bdi')].map(b => b.textContent),
    rendered: [...document.querySelectorAll('bdi')].map(b => b.innerText),
    titles: [...document.querySelectorAll('tr')].map(t => t.getAttribute('title')),
    elements: [...new Set([...all].map(e => e.localName))].sort(),
    count: all.length,
    after: document.getElementById('after').parentElement.localName,
  });
}"""


def hostile_forms() -> list[str]:
    pairs = [a + b for a in HOSTILE_BYTES for b in HOSTILE_BYTES]
    cut = [text[begin:] for text in HOSTILE_BYTES for begin in range(1, min(len(text), 9))]
    single = [bytes([a, b]) for a in range(256) for b in (0x00, 0x3C, 0x80, 0xE2)]
    return [readable_form(raw) for raw in (*HOSTILE_BYTES, *pairs, *cut, *single)]


def test_every_token_comes_back_from_the_page(
    browser: Browser, gpt2_weights: Path, minilm: str, tmp_path: Path
) -> None:
    gpt2, pieces = vocabulary_in(gpt2_weights), load_vocabulary(in_package(minilm), MINILM_SIZE)
    forms = [*gpt2.readable, *pieces.readable, *hostile_forms(), "[id 50257]"]
    assert len(forms) > GPT2_SIZE + MINILM_SIZE + len(HOSTILE_BYTES) ** 2
    path = tmp_path / "tokens.html"
    path.write_text(Environment(autoescape=True).from_string(PAGE).render(forms=forms), "utf-8")

    page = browser.new_page()
    wrong: list[str] = []
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    back = json.loads(page.evaluate(READ_BACK))
    page.close()

    assert back["texts"] == forms
    assert back["titles"] == forms
    assert back["rendered"] == forms  # no white space to collapse, nothing hidden
    assert back["elements"] == sorted(
        ["bdi", "body", "head", "html", "meta", "p", "table", "tbody", "td", "title", "tr"]
    )
    assert back["count"] == 3 * len(forms) + 8
    assert back["after"] == "body"
    assert wrong == []


def test_tokens_written_from_right_to_left_leave_the_rest_in_place(browser: Browser) -> None:
    forms = ["שלום", "␠العربية", "א\\x80", "א1", *map(readable_form, HOSTILE_BYTES)]
    rows = "{% for form in forms %}<p><i>1</i> <bdi>{{ form }}</bdi> <i>2</i></p>{% endfor %}"
    page = browser.new_page(viewport={"width": 4000, "height": 800})
    page.set_content(Environment(autoescape=True).from_string(rows).render(forms=forms))
    places = page.evaluate(
        """() => [...document.querySelectorAll('p')].map(p => [...p.children].map(c => {
          const box = c.getBoundingClientRect();
          return [box.left, box.right];
        }))"""
    )
    page.close()
    assert len(places) == len(forms)
    for (_, end_1), (begin, end), (begin_2, _) in places:
        assert end_1 <= begin < end <= begin_2
