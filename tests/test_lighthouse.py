"""What `make lighthouse` leaves for the site; `tests/site/js/lighthouse.test.js` tries how it is made."""

import json

import pytest

from generators.base.errors import InputError
from generators.site import quality_reports
from tests.conftest import ROOT


def test_what_is_stored_can_be_read_and_damage_is_shown(tmp_path):
    stored = quality_reports.read(ROOT / "results", "lighthouse")
    assert stored is not None
    assert {"home", "model", "compare"} <= {*stored.pages}
    assert quality_reports.read(tmp_path, "lighthouse") is None
    (tmp_path / "lighthouse.json").write_text(json.dumps({"date": "1"}))
    with pytest.raises(InputError, match="make lighthouse"):
        quality_reports.read(tmp_path, "lighthouse")
