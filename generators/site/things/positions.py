"""What is known of each position: how long its embedding is, and how far it lies from the next."""

from generators.site.things.known import Things, array, measured, metric, unknown
from generators.site.view import ModelPage


def positions(page: ModelPage) -> Things:
    """Return what is known of a model's positions."""
    found = measured(page).get("helix")
    things = Things(metric(found, "n_positions") or page.findings.model.n_ctx)
    things.add("norm of its embedding", array(found, "norms"), "helix", "norms", order="largest")
    steps = array(found, "steps")
    if steps is not None:
        things.add("distance to the next position", steps, "helix", "steps", order="largest", ids=range(len(steps)))
    for position in metric(found, "outlier_positions") or []:
        things.note(position, "It lies apart from the curve of the others.", "helix")
    things.unknown = unknown(page, ("helix",), "this model's positions")
    return things
