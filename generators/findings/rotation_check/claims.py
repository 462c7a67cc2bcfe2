from generators.findings.judging import Evidence, Untested, claim
from generators.findings.rotation_check.measure import RotationCheckMetrics


@claim("rotated-as-config", holds=0.01, partly=0.0, form="{:.2f} nats per token")
def rotated_as_config(m: RotationCheckMetrics) -> Evidence | Untested:
    closest = min(m["settings"], key=lambda row: row["added"])
    if m["own"]["mean"] + min(0.0, closest["added"]) >= m["entropy"]:
        return Untested("unread")
    return Evidence(
        closest["added"],
        {"closest": closest},
        interval=(closest["low"], closest["high"]),
        extra_condition_met=all(row["low"] > 0 for row in m["settings"]),
        partly_condition_met=True,
    )
