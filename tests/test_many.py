"""`make many`: a site of made-up models can be built, and what is kept of it is told."""

import json

from generators.site import quality_reports
from generators.site.words import environment
from tests import many

KINDS = quality_reports.Costs.model_fields
STORED = {
    "date": "2026-11-23",
    "commit": "abc1234",
    "models": 2,
    "seconds": dict(zip(KINDS, (12.5, 2.25, 6.5, 3.5, 1.25, 1.5), strict=True)),
    "clock": dict(zip(KINDS, (7.5, 2.75, 5.5, 4.5, 0.25, 0.5), strict=True)),
    "sizes": {"home_kB": 90, "finding_kB": 110, "model_MB": 1.25, "site_MB": 40.5},
}


def test_the_site_of_a_made_up_model_is_built_and_weighed(tmp_path):
    folder = many.project(tmp_path / "many", 1)
    processor, clock = many.seconds_of_atlas(folder, "build")
    assert processor > 0
    assert clock > 0
    assert many.seconds_of_mkdocs(folder)[1] < clock
    found = many.sizes(folder / "site", ["made-up-1"])
    assert found.keys() == STORED["sizes"].keys()
    assert all(size > 0 for size in found.values())
    many.change_one(folder, 1)


def test_what_is_stored_is_shown(tmp_path):
    (tmp_path / "many.json").write_text(json.dumps(STORED))
    said = str(environment().get_template("of_many.j2").module.costs(quality_reports.read(tmp_path, "many")))
    assert "With 2 random models" in said
    assert "12.5 seconds of CPU (7.5 of wall-clock time) from scratch" in said
    assert "6.5 (5.5) with all figures cached" in said
    assert "1.5 (0.5) when nothing did. Whenever anything changed" in said
    assert "MkDocs takes 2.25 of these seconds (2.75 of wall-clock time)." in said
