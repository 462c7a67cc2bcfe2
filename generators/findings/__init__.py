"""The findings, one file each, in the order in which pages show them."""

from generators.findings.attention import ATTENTION
from generators.findings.channels import CHANNELS
from generators.findings.finding import Finding
from generators.findings.frequency import FREQUENCY
from generators.findings.gains import GAINS
from generators.findings.helix import HELIX
from generators.findings.outliers import OUTLIERS
from generators.findings.subspaces import SUBSPACES
from generators.findings.token_svd import TOKEN_SVD
from generators.findings.zero_layer import ZERO_LAYER

FINDINGS: tuple[Finding, ...] = (
    HELIX,
    CHANNELS,
    GAINS,
    ATTENTION,
    SUBSPACES,
    FREQUENCY,
    TOKEN_SVD,
    ZERO_LAYER,
    OUTLIERS,
)

__all__ = ["FINDINGS", "Finding"]
