"""The page about speed says what was measured, plainly where the atlas is slower, and nothing that wasn't."""

import json

import pytest

from generators.base.errors import InputError
from generators.site.navigation import navigation
from generators.site.speed import BENCH, PAGE, how_fast, times, write_speed
from generators.site.staging import Staging
from generators.site.words import environment

ABOUT = {
    "machine": "a processor, 2 cores",
    "date": "2026-11-22",
    "commit": "abc1234",
    "load_before": 3.5,
    "idle": False,
    "clock": "seconds of the processor, one thread",
}
OTHERS = {
    **ABOUT,
    "tokens": 2000,
    "d_model": 64,
    "layers": 2,
    "rows": [
        {"tool": "WeightWatcher 1", "what": "spectra", "times_faster": 12.3, "agrees": "yes"},
        {"tool": "Magikarp", "what": "indicators", "times_faster": 0.25, "agrees": "yes"},
    ],
}
FAST = {"times_faster_answers": 2.0, "times_faster_than_answers": 0.5, "times_faster": 11.0}
FINDINGS = {
    **ABOUT,
    "tokens": 2000,
    "d_model": 64,
    "layers": 2,
    "rows": [
        {"name": "helix", "title": "Helix", "compared": "spectra", "answers": 1.0, "chance": 2.0, **FAST},
        {"name": "gains", "title": "Gains", "compared": "channels", "answers": 4.0, "chance": 5.0, **FAST},
    ],
    "all": FAST,
    "memory": 1.85,
}
POINTS = [{"at": 2, "seconds": 1.0, "memory": 10.0}, {"at": 8, "seconds": 4.0, "memory": 11.0}]
GROWTH = {
    **ABOUT,
    "axes": [
        {
            "name": "layers",
            "what": "layers",
            "upto": 48,
            "beside": {"tokens": 2000, "channels": 64, "layers": 2},
            "points": POINTS,
            "cut": "48 layers are left out: they would take too long",
            "time": {"all": 1.0, "last": 1.0},
            "memory": {"all": 0.07, "last": 0.07},
        }
    ],
}


def written(tmp_path, content):
    """Write the page from what was measured; return it, None where there is none."""
    if content is not None:
        (tmp_path / BENCH).write_text(json.dumps(content))
    staging = Staging(tmp_path / "pages", tmp_path / "cache")
    has_page = write_speed(tmp_path, staging, environment())
    assert has_page == (tmp_path / "pages" / PAGE).is_file()
    return (tmp_path / "pages" / PAGE).read_text() if has_page else None


@pytest.mark.parametrize("content", [None, {}, {"gpt2": {"seconds": 3}}])
def test_without_anything_measured_there_is_no_page(tmp_path, content):
    assert written(tmp_path, content) is None


def test_the_menu_has_the_page_where_there_is_one():
    with_page, without = (str(navigation([], [], has_speed=has)) for has in (True, False))
    assert PAGE in with_page
    assert PAGE not in without


def test_what_is_slower_is_said_to_be(tmp_path):
    page = written(tmp_path, {"others": OTHERS})
    assert "Faster than WeightWatcher 1 (spectra: 12 ×). Slower than Magikarp (indicators: 1/4 ×)." in page


def test_what_was_not_measured_is_said_and_has_no_section(tmp_path):
    page = written(tmp_path, {"others": OTHERS})
    said = page.partition("Not measured yet: ")[2].partition("</p>")[0]
    assert said.startswith("all findings beside the plain way, searches among tokens, how cost grows")
    assert "other tools" not in said
    assert "## How cost grows" not in page
    assert "the aim" not in page


@pytest.mark.parametrize(("ratio", "said"), [(1.81, "was the aim, reached"), (1.79, "was the aim, not reached")])
def test_whether_an_aim_is_reached_is_said(tmp_path, ratio, said):
    ways = {"one after another": {"times_faster": 1.0}, "jobs": {"times_faster": ratio}}
    measured = {**ABOUT, "models": 8, "jobs": 2, "ways": ways, "apart": {"times_faster": 1.9}}
    page = written(tmp_path, {"side_by_side": measured})
    assert f"<code>--jobs</code> {ratio} times as fast (1.8 {said})." in page
    assert "2 commands at once that share nothing, 1.90 times as fast as one after the other" in page


def test_what_notebooks_take_is_told_with_and_without_chance_and_what_dominates(tmp_path):
    page = written(tmp_path, {"findings": FINDINGS})
    assert "for the same answers alone the atlas is 2 times as fast" in page
    assert "11 times as fast (10 was the aim, reached)" in page
    assert "is slower: it takes 2 times as long. Of what the plain way" in page
    assert "Gains alone takes 75 %" in page
    assert "At most 1.85 times E at once (1.5 was the aim, not reached)" in page


def test_growth_has_figures_exponents_and_where_it_was_cut(tmp_path):
    page = written(tmp_path, {"growth": GROWTH})
    assert "with layers as the power 1.00 (at the end 1.00)" in page
    assert "48 layers are left out" in page
    for of in ("seconds", "memory"):
        assert f"figures/speed/{of}.svg" in page
        assert (tmp_path / "pages" / f"figures/speed/{of}.svg").is_file()


def test_machine_date_commit_and_load_stand_on_the_page(tmp_path):
    page = written(tmp_path, {"growth": GROWTH, "others": {**OTHERS, "load_before": 0.1, "idle": True}})
    for said in ("a processor, 2 cores", "2026-11-22", "abc1234", "3.5 (busy)", "0.1<"):
        assert said in page


def test_bars_show_to_which_side_a_ratio_lies(tmp_path):
    page = written(tmp_path, {"others": OTHERS})
    faster, slower = (part.partition("</svg>")[0] for part in page.split("<svg ")[1:])
    assert "#1f77b4" in faster
    assert "#d55e00" in slower


def test_a_damaged_file_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="make bench"):
        written(tmp_path, {"others": {**OTHERS, "rows": [{"tool": "x"}]}})


@pytest.mark.parametrize(
    ("ratio", "words", "sign"),
    [
        (12.34, "12 times as fast", "12 ×"),
        (0.1, "slower: it takes 10 times as long", "1/10 ×"),
        (1.02, "as fast", "1 ×"),
    ],
)
def test_ratios_in_words_and_in_signs(ratio, words, sign):
    assert how_fast(ratio) == words
    assert times(ratio) == sign
