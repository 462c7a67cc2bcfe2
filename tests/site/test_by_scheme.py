"""What can be asked of a model by how it knows positions, from what findings declare that they read."""

from types import SimpleNamespace
from typing import Any

import pytest

from generators.findings import FINDINGS
from generators.site.by_scheme import TABLE, askable, claims_of, scheme_finding
from generators.site.pages import rules_by_finding
from generators.site.words import environment

ROTATES, SLOPES, HAS_TABLE = range(3)


def model(name: str, *schemes: str, tested: int = 1) -> Any:
    holds = [SimpleNamespace(verdict="holds", id=f"c{i}", statement=f"It is {i}.") for i in range(tested)]
    claims = [*holds, SimpleNamespace(verdict="untested")]
    measured = {"position_scheme": {"schemes": list(schemes)}} if schemes else {}
    return SimpleNamespace(
        name=name,
        title=name.title(),
        address=f"models/{name}/",
        claim_address=lambda claim: f"models/{name}/#claim-{claim}",
        measured=measured,
        findings=SimpleNamespace(claims=claims),
    )


@pytest.mark.parametrize("kind", [ROTATES, SLOPES])
def test_without_a_table_what_needs_one_is_left_out_and_what_uses_one_distinguished(kind):
    found = askable([])[kind]
    assert all(TABLE in one.needs for one in found.without)
    assert all(TABLE in one.uses for one in found.partly)
    assert not any(TABLE in (*one.needs, *one.uses) for one in found.whole if one.rules)
    assert {"helix", "channels"} <= {one.name for one in found.without}
    assert "position_use" in {one.name for one in found.partly}
    assert found.claims + claims_of(found.without) == len(rules_by_finding())
    assert found.claims == claims_of(found.findings) > claims_of(found.whole) > 0


def test_of_a_model_with_a_table_all_can_be_asked():
    found = askable([])[HAS_TABLE]
    assert (found.whole, found.partly, found.without) == (list(FINDINGS), [], [])


def test_the_example_is_the_model_of_that_kind_of_which_most_is_tested():
    pages = [
        model("unknown"),
        model("sines", "formula"),
        model("turns-little", "rotary"),
        model("turns", "rotary", tested=2),
        model("turns-too", "rotary"),
    ]
    examples = [kind.example.name if kind.example else None for kind in askable(pages)]
    assert examples == ["turns", None, "sines"]


def said(pages: list[Any]) -> list[str]:
    template = environment().get_template("by_scheme.md.j2")
    html = template.render(
        root="../", askable=askable(pages), rules=rules_by_finding(), scheme_finding=scheme_finding()
    )
    return html.split('<div id="')[1:]


def test_the_page_says_how_many_and_where_one_was_computed():
    rotates, slopes, _ = said([model("turns", "rotary", tested=9)])
    assert f"At most {askable([])[ROTATES].claims} of {len(rules_by_finding())} claims can be tested" in rotates
    assert '<a href="../models/turns/">Turns</a>. Of 9 claims tested, 9 hold.' in rotates
    assert "RoPE" in rotates
    assert "No model of this kind has results yet." in slopes


def test_few_claims_that_hold_are_named():
    rotates, *_ = said([model("turns", "rotary", tested=2)])
    assert (
        'Of 2 claims tested, 2 hold: <a href="../models/turns/#claim-c0">It is 0</a> · '
        '<a href="../models/turns/#claim-c1">It is 1</a>.' in rotates
    )
    assert "Of 1 claim tested, 1 holds: <a" in said([model("turns", "rotary")])[ROTATES]
