"""What rounding does to verdicts: the table on the page is the one that was measured, and it is measured the same."""

import json

import pytest

from generators.findings import FINDINGS
from tests import rounding
from tests.conftest import ROOT

FOUND = json.loads(rounding.RESULTS.read_text())
GAINS = [finding for finding in FINDINGS if finding.name == "gains"]


def test_the_page_shows_what_was_measured():
    assert rounding.table(FOUND) in (ROOT / "site_src" / "add-a-model.md").read_text()


@pytest.mark.parametrize("copy", FOUND["copies"])
def test_claims_about_a_rounded_copy_are_those_that_are_stored(tmp_path, copy):
    stored = {row["claim"]: row[copy] for row in FOUND["claims"]}
    claims = rounding.claims_of(rounding.write_rounded(tmp_path, *rounding.COPIES[copy]), GAINS)
    tested = [claim for claim in claims if claim.id in stored]
    assert tested
    for claim in tested:
        assert claim.verdict == stored[claim.id]["verdict"]
        assert claim.value == pytest.approx(stored[claim.id]["value"], rel=1e-3)
