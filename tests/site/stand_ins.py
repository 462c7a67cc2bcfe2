"""What pages are made from, as small as a test needs it: claims that were judged, and findings that were measured."""

from types import SimpleNamespace
from typing import Any

from generators.compute.records import ClaimRecord
from generators.findings import FINDINGS
from generators.findings.contract import Finding

RULES = {rule.id: (finding.name, rule) for finding in FINDINGS for rule in finding.rules}


def claim(
    name: str, verdict: str, value: float | None = 1.0, threshold: float | None = 1.0, **more: Any
) -> ClaimRecord:
    finding, rule = RULES[name]
    told = {"finding": finding, "statement": rule.statement, "unit": rule.unit, "baseline": None, "answer": ""}
    value = None if verdict == "untested" else value
    return ClaimRecord(**{**told, "id": name, "verdict": verdict, "value": value, "threshold": threshold, **more})


def sections_of(findings: dict[str, Any]) -> list[Any]:
    def section(finding: Finding[Any]) -> Any:
        record = SimpleNamespace(reason="The checkpoint lacks it.")
        return SimpleNamespace(finding=finding, measured=findings.get(finding.name), record=record, pictures=[])

    return [section(finding) for finding in FINDINGS]
