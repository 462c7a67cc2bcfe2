"""What `make lighthouse` leaves for the site; `tests/site/js/lighthouse.test.js` tries how it is made."""

import json

import pytest

from generators.site import evidence
from tests.conftest import ROOT


def test_what_is_stored_can_be_read_and_damage_is_told(tmp_path):
    stored = evidence.lighthouse(ROOT / "results")
    assert stored is not None
    assert {"home", "model", "compare"} <= {*stored.pages}
    assert evidence.lighthouse(tmp_path) is None
    (tmp_path / evidence.LIGHTHOUSE).write_text(json.dumps({"date": "1"}))
    with pytest.raises(evidence.InputError, match="make lighthouse"):
        evidence.lighthouse(tmp_path)
