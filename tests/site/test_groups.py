"""The groups of the matrix: every finding stands in one, and their columns are all claims of the site."""

import pytest

from generators.findings import FINDINGS
from generators.site.groups import GROUPS, group_of, grouped


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)
def test_every_finding_has_a_group(finding):
    assert group_of(finding) in GROUPS


def test_the_columns_of_the_groups_are_all_claims_once():
    groups = grouped(FINDINGS)
    assert [group.title for group in groups] == list(GROUPS)
    columns = [rule.id for group in groups for finding in group.findings for rule in finding.rules]
    assert sorted(columns) == sorted(rule.id for finding in FINDINGS for rule in finding.rules)
    assert sum(group.columns for group in groups) == len(columns)


def test_a_group_that_claims_nothing_is_no_group():
    of_positions = [finding for finding in FINDINGS if finding.question == 1]
    assert [group.title for group in grouped(of_positions)] == [GROUPS[0]]
