"""Numbers and untrusted strings as they stand on a page."""

import re
from html import unescape

import markdown
import pytest

from generators.base.text import formula, in_markdown, number, share, two, typeset
from tests.conftest import ROOT

HOSTILE = (
    *("<script>alert(1)</script>", "a|b|c", "`code` and ```fence```", "[x](javascript:alert(1)) ![y](z)"),
    *("*bold* _it_ ~~no~~ ^up^", "# heading", "1. one", "{% raw %}{{ 7*7 }}{#id .class}", "&lt;b&gt; &amp;"),
    *("\\*not escaped\\*", "https://example.org", "--- ***", "\"quotes\" and 'quotes'"),
)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("line", ["# {}", "* [{}](about.md)", "{}"])
def test_hostile_text_in_markdown_comes_out_as_it_went_in(text, line):
    html = markdown.markdown(line.format(in_markdown(text)), extensions=["attr_list", "md_in_html"])
    assert unescape(re.sub(r"<[^<>]*>", "", html)).strip() == text
    assert "<script" not in html
    assert "javascript" not in html or 'href="javascript' not in html


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((None, "–"), (True, "yes"), (False, "no"), (7, "7"), (0.123456, "0.1235"), (-0.5, "−0.5"), (1e-7, "1e-7")),
        *(([1, 2.5], "1, 2.5"), ("text", "text")),
    ],
)
def test_number(value, shown):
    assert number(value) == shown


def test_no_formula_of_a_page_shows_its_source():
    found = 0
    for template in sorted((ROOT / "templates").rglob("*.j2")):
        for tex in re.findall(r'\{\{ "((?:[^"\\]|\\.)*)" \| tex', template.read_text()):
            assert str(formula(tex)).startswith("<math")
            drawn = re.sub(r"<annotation.*?</annotation>", "", str(formula(tex.replace("\\\\", "\\"))))
            assert "\\" not in drawn, (template.name, tex)
            found += 1
    assert found > 10


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.02894, "0.029"), (1234.5, "1,200"), (55.41, "55"), (1.0, "1"), (0.05, "0.05"), (-0.143, "−0.14"), (0.0, "0")],
)
def test_numbers_in_prose_have_two_digits_and_no_exponent(value, said):
    assert two(value) == said
    assert (two(4.45e-5), two(-6.3e-9)) == ("0.000044", "−6.3 × 10⁻⁹")
    assert two(1234) == "1,234", "it may be a count"
    assert (two(0.997), two(0.99992)) == ("0.997", "1"), "a correlation close to one isn't one"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.6323, "63 %"),
        (0.9991, "99.9 %"),
        (0.986, "99 %"),
        (0.99996, "99.996 %"),
        (0.0286, "2.9 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
    ],
)
def test_shares_in_prose_are_percent_after_a_space_that_breaks_no_line(value, said):
    assert share(value) == said.replace(" ", "\u00a0")


def test_thresholds_are_never_rounded_away_and_sentences_get_minus_signs():
    assert (share(0.8996), share(0.8996, 0.9)) == ("90\u00a0%", "89.96\u00a0%")
    assert (two(0.4996), two(0.4996, 0.5), two(0.5, 0.5)) == ("0.5", "0.4996", "0.5")
    said = typeset("91.1% at -0.75 (r = -0.88), 3-D, GPT-2, 5 % and ?x=%20")
    assert said == "91.1\u00a0% at −0.75 (r = −0.88), 3-D, GPT-2, 5\u00a0% and ?x=%20"
