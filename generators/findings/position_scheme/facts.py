"""In which ways a model knows positions."""

from generators.findings.facts import Facts
from generators.findings.position_scheme.measure import PositionSchemeMetrics


def schemes(metrics: PositionSchemeMetrics) -> list[str]:
    """Return the schemes that a model adds up."""
    return [*metrics["schemes"]]


FACTS = Facts(search=("RoPE", "rotary", "rotations", "Llama", "ALiBi", "sinusoidal"), schemes=schemes)
