"""Which channels of a key every query favors by its bias: W_K b_Q of every head, by channel of the stream.

A score is (W_Q x + b_Q) . W_K y. The part b_Q . W_K y is the same for every query: it makes a sink of keys that are
large in the channels where W_K b_Q is.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.architecture import Architecture
from generators.findings.inputs import Weights
from generators.findings.measured import StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.maths.rotations import frames

SEED = 20260416
TOP = 5
SMALLEST_ENERGY = 1e-3  # share of energy in directions that are left out of the null
Pulls = Float[Array, "layers heads d"]


class BiasLead(TypedDict):
    """The channel with the largest |W_K b_Q|, the mean over heads, in times the mean channel of its layer.

    `lead` is the mean of that over layers.
    """

    channel: int
    lead: float
    chance: StoredChance


class QueryBias(TypedDict):
    """Of W_K as it is stored, and with the gain of ln1 folded in, None where there is no gain."""

    raw: BiasLead
    folded: BiasLead | None


def query_bias(weights: Weights, architecture: Architecture) -> tuple[QueryBias | None, dict[str, Table]]:
    """Return numbers and tables; nothing where queries have no bias, or a rotation turns it by position."""
    pulls = None if architecture.rotary else _pulls(weights, architecture)
    if pulls is None:
        return None, {}
    gains = [weights.get(f"blocks.{layer}.ln1.gain", 1.0) for layer in range(len(pulls))]
    folded = np.stack([pull * gain for pull, gain in zip(pulls, gains, strict=True)])
    forms = {"raw": pulls}
    if any(isinstance(gain, Array) for gain in gains) and folded.any(axis=(1, 2)).all():
        forms["folded"] = folded
    sizes = {form: relative(each) for form, each in forms.items()}
    leads = {form: _lead(sizes[form], each) for form, each in forms.items()}
    return {"raw": leads["raw"], "folded": leads.get("folded")}, {"query_bias": _table(sizes)}


def _pulls(weights: Weights, architecture: Architecture) -> Pulls | None:
    heads = architecture.n_head
    shared = heads // (architecture.n_kv_head or heads)
    found = []
    for layer in range(architecture.n_layer):
        block = f"blocks.{layer}.attn"
        if f"{block}.q.bias" not in weights:
            return None
        bias = np.asarray(weights[f"{block}.q.bias"], np.float64).reshape(heads, -1)
        keys = np.asarray(weights[f"{block}.k"], np.float64)
        by_head = np.repeat(keys.reshape(len(keys), heads // shared, -1), shared, axis=1)
        found.append(np.einsum("dhe,he->hd", by_head, bias))
    return np.stack(found) if all(each.any() for each in found) else None


def relative(pulls: Pulls) -> Float[Array, "layers d"]:
    """Return the mean |W_K b_Q| over heads by channel, in times the mean channel of the layer."""
    sizes = np.abs(pulls).mean(axis=1)
    return sizes / sizes.mean(axis=1, keepdims=True)


def _lead(sizes: Float[Array, "layers d"], pulls: Pulls) -> BiasLead:
    channel = int(sizes.mean(axis=0).argmax())
    return {
        "channel": channel,
        "lead": float(sizes[:, channel].mean()),
        "chance": drawn("the largest of axes turned at random", turned_leads(pulls)),
    }


def turned_leads(pulls: Pulls) -> Float[Array, " draws"]:
    """Return the same lead of the axis that leads most, the stream turned at random."""
    layers, heads, d = pulls.shape
    scaled = pulls / np.abs(pulls).mean(axis=(1, 2), keepdims=True)
    left, lengths, _ = np.linalg.svd(scaled.reshape(-1, d), full_matrices=False)
    energy = np.cumsum(lengths**2)
    kept = int(np.searchsorted(energy, (1 - SMALLEST_ENERGY) * energy[-1])) + 1
    mixed = (left[:, :kept] * lengths[:kept]).T.astype(np.float32)
    leads = []
    for frame in frames(d, kept, DRAWS, np.random.default_rng(SEED)):
        turned = (frame @ mixed).reshape(d, layers, heads).transpose(1, 2, 0)
        leads.append(relative(turned).mean(axis=0).max())
    return np.array(leads, np.float64)


def _table(sizes: Mapping[str, Float[Array, "layers d"]]) -> Table:
    top = {form: np.argsort(-each, axis=1, kind="stable")[:, :TOP].tolist() for form, each in sizes.items()}
    folded = top.get("folded") or [None] * len(top["raw"])
    rows = [{"layer": layer, "raw": raw, "folded": folded[layer]} for layer, raw in enumerate(top["raw"])]
    return table_of("Channels with the largest |W_K b_Q|, by layer", ("layer", "raw", "folded"), rows)
