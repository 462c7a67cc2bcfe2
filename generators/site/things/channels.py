"""What is known of each channel: how positions and tokens use it, what norms do to it, what it costs to hold it."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array

from generators.base.text import number
from generators.site.things.known import (
    Found,
    Line,
    Things,
    array,
    frequency_channel,
    measured,
    medians,
    metric,
    points,
    rows,
    unknown,
)
from generators.site.view import ModelPage

NORMS = {"ln1": "in front of attention", "ln2": "in front of the MLP"}
WHY = {
    "frequency": "the channel that goes most with frequency",
    "ln2": "the channel that tops ln2 in most layers",
    "position": "the channel in which positions vary most",
    "drawn": "one of those drawn at random, to compare",
}
RHO = {
    "frequency": "rank correlation with the tokens' log frequency",
    "norm": "rank correlation with the tokens' norm",
    "index": "rank correlation with the tokens' id",
}
OVER_POSITIONS = "standard deviation over positions (P)"
NAMED = 8  # position channels, the loudest of them, that are listed by name
TOLD_BY = ("channels", "gains", "frequency", "channel_use")


def channels(page: ModelPage) -> Things:
    """Return what is known of a model's channels."""
    found = measured(page)
    things = Things(page.findings.model.d_model)
    _embeddings(things, found.get("channels"), found.get("gains"))
    _frequency(things, found.get("frequency"), frequency_channel(page))
    _gains(things, found.get("gains"))
    _use(things, found.get("channel_use"))
    things.unknown = unknown(page, TOLD_BY, "this model's channels")
    return things


def _embeddings(things: Things, found: Found, gains: Found) -> None:
    std = metric(found, "position_std")
    if std is not None:
        things.add(
            OVER_POSITIONS,
            std,
            "channels",
            "channel-histogram",
            order="largest",
            name="position_std",
        )
    elif (known := array(gains, "position_std")) is not None:
        things.add(OVER_POSITIONS, known, "gains", order="largest", name="position_std")
    things.add("mean over positions (P)", array(found, "position_mean"), "channels")
    things.add("mean over tokens (E)", metric(found, "token_mean"), "channels", order="strongest")
    token_std = metric(found, "token_std")
    things.add("standard deviation over tokens (E)", token_std, "channels", order="largest", name="token_std")
    leading = array(found, "right_singular_vectors")
    if leading is not None and len(leading):
        says = "share of P's leading direction, which holds the mean over positions, too"
        things.add(says, leading[0] ** 2, "channels", "singular-vectors", order="largest")
    louder = metric(found, "position_channels") or []
    for place, channel in enumerate(louder):
        others = "" if len(louder) == 1 else f", one of {len(louder)}"
        says = f"A position channel{others}: P varies in it far more than in the rest."
        things.note(channel, says, "channels", named=place < NAMED)
    if std:
        most = int(np.argmax(std))
        things.note(most, f"Positions vary most in it: by {number(std[most])}.", "channels")


def _frequency(things: Things, found: Found, called: str) -> None:
    for name, says in RHO.items():
        figure = "frequency-by-channel" if name == "frequency" else None
        rho = metric(found, "channel_rho", name)
        things.add(says, rho, "frequency", figure, order="strongest", name=f"rho_{name}")
    for name, says in (
        ("frequency_channel", f"{called.capitalize()}: no other goes with the tokens' frequency as closely"),
        ("contrast_channel", "An ordinary channel by frequency, with the median correlation of all"),
    ):
        named = metric(found, name)
        if named is not None:
            rho = f" (rank correlation {number(named['rho'])})"
            things.note(named["channel"], f"{says}{rho}.", "frequency", named=name == "frequency_channel")


def _gains(things: Things, found: Found) -> None:
    for norm, place in NORMS.items():
        gain: Float[Array, "layers d"] | None = array(found, f"{norm}_gain")
        layers = array(found, f"{norm}_layers")
        if gain is None or layers is None:
            continue
        things.lines.append(
            Line(
                drawing="Gain in every layer",
                across="layer",
                says=f"{norm}, {place}",
                at=layers.tolist(),
                values=points(gain.T),
                finding="gains",
                figure=f"gains-{norm}",
                usual=medians(gain.T),
                usual_says=f"{norm}, median of all channels",
                name=norm,
            )
        )
        top = metric(found, "consistent_channel", norm)
        if top is not None:
            says = f"{norm} gives it the largest gain in {top['layers_topped']} of {top['n_layers']} layers."
            things.note(top["channel"], says, "gains")


def _use(things: Things, found: Found) -> None:
    unit = metric(found, "unit")
    for row in rows(found, "channels"):
        cost = f"{number(row['cost'])} ({unit}; 95 % interval {number(row['low'])} to {number(row['high'])})"
        why = WHY.get(row["why"], row["why"])
        says = f"Held at its mean while the model runs it costs {cost}. It was tried as {why}."
        things.note(row["channel"], says, "channel_use", named=row["why"] != "drawn")
    tried = [row["channel"] for row in rows(found, "channels")]
    costs = [row["cost"] for row in rows(found, "channels")]
    if tried:
        says = f"cost of holding it at its mean while the model runs ({unit})"
        things.add(says, costs, "channel_use", "channel-cost", order="largest", ids=tried, name="cost")
    for name, token in (("token_there", "the token there"), ("next_token", "the next token")):
        _while_running(things, found, name, token)


def _while_running(things: Things, found: Found, name: str, token: str) -> None:
    """Add how closely values in the running model go with frequency, in the layer where they do most."""
    strongest: dict[int, float] = {}
    for row in rows(found, "values"):
        known = row[name]
        if known is not None and abs(known) > abs(strongest.get(row["channel"], 0.0)):
            strongest[row["channel"]] = known
    if strongest:
        ids = sorted(strongest)
        says = f"strongest correlation, over layers, of its value in the running model with log frequency of {token}"
        things.add(says, [strongest[i] for i in ids], "channel_use", ids=ids, order="strongest", name=name)
