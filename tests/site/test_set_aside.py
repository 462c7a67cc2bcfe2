"""What is HTML already is set aside while a page is parsed, and stands where it stood when the page is written."""

import re

from generators.site.set_aside import put_back, set_aside
from generators.site.words import environment
from tests.site.test_plugin import SETTINGS, built, write

PAGE = """# Rooms

<figure id="figure-plan">
<!--aside-->
<a href="plan.svg"><img src="plan.svg" alt="A plan, *drawn*"></a>
<!--/aside-->
<figcaption>The plan.</figcaption>
</figure>

<details id="all"><summary>All</summary>
<!--aside-->
<table class="plain"><tr><td>1 &lt; 2</td></tr></table>
<!--/aside-->
</details>

*Seen* from above: [the plan](#figure-plan).
"""


def test_parts_come_back_where_they_stood():
    page, parts = set_aside(PAGE)
    assert len(parts) == 2
    assert "img" not in page and "table" not in page
    assert 'id="figure-plan"' in page and "The plan." in page
    assert put_back(page, parts) == re.sub("<!--/?aside-->\n", "", PAGE)


def test_a_page_without_parts_is_unchanged():
    assert set_aside("# Rooms\n<!-- aside -->\n") == ("# Rooms\n<!-- aside -->\n", [])


def test_a_site_has_all_of_them_and_no_trace_of_it(tmp_path):
    write(tmp_path, {"mkdocs.yml": SETTINGS, "src/index.md": "# Start\n", ".pages/rooms.md": PAGE})
    write(tmp_path, {"plain/mkdocs.yml": SETTINGS, "plain/src/index.md": "# Start\n"})
    write(tmp_path / "plain" / ".pages", {"rooms.md": re.sub("<!--/?aside-->\n", "", PAGE)})
    built(tmp_path)
    built(tmp_path / "plain")
    page = (tmp_path / "site/rooms/index.html").read_text()
    assert "aside" not in page
    assert "<td>1 &lt; 2</td>" in page
    assert "<em>Seen</em>" in page
    assert page == (tmp_path / "plain/site/rooms/index.html").read_text(), "as if it had been parsed"


def test_no_stored_string_can_pass_for_a_mark():
    source = '{% import "macros.j2" as m with context %}{{ m.table("T", ["readable"], rows) }}'
    made = environment().from_string(source).render(rows=[("<!--/aside-->",), ("<!--aside-->",)])
    assert len(set_aside(made)[1]) == 1
    assert "&lt;!--aside--&gt;" in set_aside(made)[1][0]
