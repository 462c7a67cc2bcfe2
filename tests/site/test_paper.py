"""The paper: the atlas as one text, in which every number is one of the results."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from generators.base.text import with_unit
from generators.findings import FINDINGS
from tests.conftest import ROOT

pytestmark = pytest.mark.browser

NUMBER = re.compile(r"[−+-]?\d+(?:,\d{3})*(?:\.\d+)?")
VERDICTS = ("holds", "partly", "fails")


class Told(HTMLParser):
    """Collects what stands in every element with a claim's id, and what in those that only count."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str | None]] = []
        self.claims: dict[str, str] = {}
        self.counts = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that begins."""
        found = dict(attrs)
        if tag not in ("img", "br", "link", "meta", "input", "hr"):
            self.open.append((tag, found.get("data-claim", "counts" if "data-counts" in found else None)))

    def handle_endtag(self, tag: str) -> None:
        """Note that it ends."""
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        """Keep text by the claim that it tells."""
        of = next((of for _, of in reversed(self.open) if of), None)
        if of == "counts":
            self.counts += data
        elif of:
            self.claims[of] = self.claims.get(of, "") + data


@pytest.fixture(scope="module")
def rows(built_site: Path) -> list[dict[str, Any]]:
    found = json.loads((built_site / "data" / "atlas.json").read_text())
    return [row for row in found if row["claim"]]


@pytest.fixture(scope="module")
def told(built_site: Path) -> Told:
    made = Told()
    made.feed((built_site / "paper" / "index.html").read_text("utf-8"))
    return made


def numbers(text: str, *known: str) -> set[str]:
    """Return the numbers of a text that are in none of the names and sentences that it quotes."""
    for each in sorted(filter(None, known), key=len, reverse=True):
        text = text.replace(each, " ")
    return set(NUMBER.findall(text))


def test_every_finding_and_claim_is_told(told: Told, built_site: Path) -> None:
    page = (built_site / "paper" / "index.html").read_text("utf-8")
    assert all(f'id="paper-{finding.name}"' in page for finding in FINDINGS)
    assert {rule.id for finding in FINDINGS for rule in finding.rules} == told.claims.keys()


def test_every_number_beside_a_claim_is_one_of_its_results(told: Told, rows: list[dict[str, Any]]) -> None:
    titles = {row["title"] for row in rows}
    seen = 0
    for claim, text in told.claims.items():
        of = [row for row in rows if row["claim"] == claim]
        known = {
            n
            for row in of
            if row["value"] is not None
            for n in NUMBER.findall(with_unit(row["value"], row["unit"] or ""))
        }
        kinds = Counter(row["verdict"] for row in of if not row["only_in_series"])
        in_series = Counter(row["verdict"] for row in of if row["only_in_series"])
        # Models of one recipe count once, so a count may be lower than that of rows, and never higher.
        for found in (kinds, in_series):
            most = sum(found[verdict] for verdict in VERDICTS)
            known |= {str(count) for count in range(most + 1)}
        unit = of[0]["unit"] or ""
        there = numbers(text, of[0]["statement"], of[0]["statement"].rstrip("."), unit, *titles)
        assert there <= known, (claim, text, there - known)
        seen += len(there)
    assert seen > len(told.claims)


def test_its_counts_are_those_of_the_results(told: Told, rows: list[dict[str, Any]]) -> None:
    models = {row["model"] for row in rows if not row["only_in_series"]}
    claims = {row["claim"] for row in rows}
    assert f"{len(claims)} claims" in told.counts
    assert f"We tested {len(models)} models" in told.counts
    assert f"in {len(models)} models" in told.counts


def test_it_is_printed_on_ten_to_fourteen_sheets(built_site: Path, tmp_path: Path) -> None:
    file = tmp_path / "paper.pdf"
    subprocess.run(
        [sys.executable, "-m", "tests.paper", file],
        cwd=built_site.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    assert 10 <= len(re.findall(rb"/Type /Page\b", file.read_bytes())) <= 14
