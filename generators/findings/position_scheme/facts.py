from generators.findings.facts import Facts
from generators.findings.position_scheme.measure import PositionSchemeMetrics


def schemes(metrics: PositionSchemeMetrics) -> list[str]:
    return [*metrics["schemes"]]


FACTS = Facts(search=("RoPE", "rotary", "rotations", "Llama", "ALiBi", "sinusoidal"), schemes=schemes)
