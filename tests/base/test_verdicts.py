"""Colors of verdicts stand in one file, from which pages, figures and the terminal take them."""

import re

from generators.base.verdicts import LOOKS, as_css
from tests.conftest import ROOT

COLORS = {getattr(look, name) for look in LOOKS.values() for name in ("light_tint", "dark_tint")}


def test_pages_name_every_color_once_for_light_and_once_for_dark():
    named = re.findall(r"--([\w-]+):(#\w{6});", as_css())
    assert len(named) == len(set(named)) == 4 * len(LOOKS)


def test_what_fails_is_a_result_and_not_shown_as_an_error():
    assert "red" not in {look.terminal for look in LOOKS.values()}


def test_no_other_file_has_these_colors():
    places = [*(ROOT / "generators").rglob("*.py"), *(ROOT / "site_src/assets").glob("*.*s")]
    found = {path.name for path in places for color in COLORS if color in path.read_text("utf-8")}
    assert found == {"verdicts.py"}
