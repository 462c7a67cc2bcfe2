"""Models in a plane of two numbers: which are drawn, which are said to lack one, and what goes together."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from generators.base.plain import as_compact_json
from generators.compute.records import ChanceRecord
from generators.site.alike import FEWEST, alike
from generators.site.words import environment
from tests.site.stand_ins import RULES, claim


def model(name: str, d_model: int = 64, n_ctx: int | None = 128, **claims: tuple):
    records = {}
    for key, (verdict, value, *limit) in claims.items():
        rule = RULES[key.replace("_", "-")][1]
        chance = ChanceRecord(null="n", median=0.0, limit=limit[0], draws=9) if limit else None
        records[rule.id] = claim(rule.id, verdict, value, rule.holds, chance=chance)
    record = SimpleNamespace(
        n_layer=2, n_head=4, d_model=d_model, n_ctx=n_ctx, vocab_size=500, family=f"family of {name[0]}"
    )
    return SimpleNamespace(
        name=name, title=name.upper(), claims=records, findings=SimpleNamespace(model=record), counted_as=name
    )


def few():
    return [
        model("a1", winding=("holds", 3.0, 0.5), low_rank=("holds", 0.995, 0.2), few_channels=("holds", 0.05)),
        model("a2", winding=("fails", 0.2, 0.5), low_rank=("holds", 0.993, 0.2), few_channels=("fails", 0.5)),
        model("b1", n_ctx=None, winding=("holds", 9.0, 0.7), few_channels=("untested", None)),
        model("b2", low_rank=("fails", 0.3, 0.2)),
    ]


def axis(found, name):
    return next(one for one in found.axes if one.id == name)


def many(n: int, rng_seed: int = 0):
    """Models whose winding goes with few channels and with their width, and whose look-back is noise."""
    rng = np.random.default_rng(rng_seed)
    at = rng.permutation(n) + 1.0
    return [
        model(
            f"m{i}",
            d_model=int(64 * at[i]),
            winding=("holds", float(at[i])),
            few_channels=("fails", 1 / at[i]),
            ln1_dials_down=("fails", float(rng.standard_normal())),
        )
        for i in range(n)
    ]


def test_an_axis_has_every_models_number_and_what_is_the_same_for_all():
    found = alike(few())
    winding, low_rank = axis(found, "winding"), axis(found, "low-rank")
    assert winding.values == (3.0, 0.2, 9.0, None)
    assert winding.verdicts == ("holds", "fails", "holds", "untested")
    assert (winding.threshold, winding.chance) == (RULES["winding"][1].holds, None)  # chance differs
    assert low_rank.chance == 0.2
    assert winding.is_log
    assert not low_rank.is_log
    assert axis(found, "size-context").values == (128, 128, None, 128)


def test_the_pair_shown_first_is_of_two_findings_and_tells_models_apart():
    found = alike(few())
    x, y = found.start
    assert x.finding != y.finding
    assert {x.id, y.id} == {"winding", "few-channels"}
    assert found.shown() == [0, 1]
    assert found.lacking() == [(y.label, ["B1"]), ("either", ["B2"])]


def test_of_few_models_nothing_is_said_to_go_together():
    found = alike(many(FEWEST - 1))
    assert (found.claims, found.size) == (None, None)


@pytest.mark.parametrize("n", [FEWEST, 20])
def test_what_goes_together_is_found_and_shown_first(n):
    found = alike(many(n))
    assert {found.claims.x.id, found.claims.y.id} == {"winding", "few-channels"}
    assert found.claims.found.rho == pytest.approx(-1)
    assert found.claims.found.beyond_chance
    assert found.start == (found.claims.x, found.claims.y)
    assert found.size.x.id == "size-channels"
    assert found.size.y.id in ("winding", "few-channels")


def test_the_script_gets_small_plain_numbers_of_claims_that_some_model_has():
    found = alike(many(50))
    text = as_compact_json(found.as_json())
    assert len(text) < 60_000
    reported = json.loads(text)
    assert reported["start"] == [found.start[0].id, found.start[1].id]
    assert {"winding", "few-channels", "size-layers"} <= {one["id"] for one in reported["axes"]}
    assert "fraying" not in {one["id"] for one in reported["axes"]}  # no model has a number
    assert all(len(one["values"]) == 50 for one in reported["axes"])


@pytest.mark.parametrize("pages", [[], few(), many(FEWEST)], ids=["none", "few", "many"])
def test_the_page_says_what_there_is(pages):
    template = environment(whole=True).get_template("alike.md.j2")
    found = alike(pages)
    text = template.render(root="../", alike=found, pages=pages, fewest=FEWEST, is_many=False, neighbours=[])
    assert ("correlate most: a rank correlation of" in text) == (len(pages) >= FEWEST)
    assert text.count('<th scope="row">') == len(found.shown())
    assert ("No model has two numbers yet" in text) == (not pages)
    if len(pages) == 4:
        assert f"Without a number for {found.start[1].label}: B1." in text
        assert "Without a number for either: B2." in text
