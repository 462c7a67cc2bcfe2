"""The findings, one file each, in the order in which pages show them."""

from generators.findings.attention import ATTENTION
from generators.findings.channels import CHANNELS
from generators.findings.finding import Finding
from generators.findings.gains import GAINS
from generators.findings.helix import HELIX

FINDINGS: tuple[Finding, ...] = (HELIX, CHANNELS, GAINS, ATTENTION)

__all__ = ["FINDINGS", "Finding"]
