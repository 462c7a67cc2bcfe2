"""Every finding about weights as a notebook would have it: one straightforward function each, and whether it agrees.

Each takes all weights by role, in float32 as they are stored, and returns the numbers that the finding's claims are
about; `agree` asserts that the atlas's are the same. What chance gives is in `notebook_nulls.py`.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.stats
from sklearn.decomposition import PCA

from tests.benchmark.notebook_parts import (
    HEADS_OF,
    Array,
    Weights,
    attention,
    by_offset,
    close,
    components_for,
    heads_of,
    layer_norm,
    spearman,
    top,
)
from tests.benchmark.token_side import SPREAD, plain_best, plain_nearest, plain_neighbours

MATRICES = {"Q": "attn.q", "K": "attn.k", "V": "attn.v", "O": "attn.o", "MLP in": "mlp.in"}
GROUP = 10
LOOKED_FROM = 64
TOKENS_ASKED = 1024
SHARE_OF_TIES = 2 / TOKENS_ASKED
Numbers = dict[str, Any]


@dataclass(frozen=True)
class Notebook:
    """One finding the plain way, in words what is compared, and whether the atlas says the same."""

    compared: str
    answers: Callable[[Weights], Numbers]
    agree: Callable[[Numbers, Numbers], None]


def layers_of(weights: Weights) -> int:
    return sum(role.endswith("attn.q") for role in weights)


def positions_of(weights: Weights) -> Array:
    return np.asarray(weights["position_embedding"], np.float64)


def helix(weights: Weights) -> Numbers:
    P = positions_of(weights)
    shares = PCA().fit(P[1:]).explained_variance_ratio_
    steps = np.linalg.norm(np.diff(P, axis=0), axis=1)
    nearer = np.minimum(np.append(steps, np.inf), np.insert(steps, 0, np.inf))
    return {
        "shares": shares,
        "for_90": components_for(shares, 0.9),
        "singular_values": np.linalg.svd(P, compute_uv=False),
        "outliers": np.flatnonzero(nearer > 5 * np.median(nearer)),
    }


def helix_agrees(found: Numbers, metrics: Numbers) -> None:
    expected = metrics["explained_variance_ratio"]
    close(found["shares"][: len(expected)], expected)
    assert found["for_90"] == metrics["components_for_90"]
    assert found["outliers"].tolist() == metrics["outlier_positions"]
    close(found["singular_values"][: len(metrics["singular_values"])], metrics["singular_values"])


def channels(weights: Weights) -> Numbers:
    P, E = positions_of(weights), weights["token_embedding"]
    spread, of_tokens = P[1:].std(axis=0), E.std(axis=0, dtype=np.float64)
    right = np.linalg.svd(P, full_matrices=False)[2][:5]
    return {
        "std": spread,
        "token_mean": E.mean(axis=0, dtype=np.float64),
        "token_std": of_tokens,
        "for_90": components_for(spread**2, 0.9),
        "rho": spearman(spread, of_tokens),
        "participation": 1 / np.sum(right**4, axis=1),
    }


def channels_agree(found: Numbers, metrics: Numbers) -> None:
    close(found["std"], metrics["position_std"])
    close(found["token_mean"], metrics["token_mean"])
    close(found["token_std"], metrics["token_std"])
    close(found["rho"], metrics["spearman_position_std_token_std"])
    close(found["participation"], metrics["participation_ratio"])
    assert found["for_90"] == metrics["channels_for_90"]


def gains(weights: Weights) -> Numbers:
    P, E = positions_of(weights), weights["token_embedding"]
    spread = np.log10(P[1:].std(axis=0))
    by_norm = {
        norm: np.abs([weights[f"blocks.{i}.{norm}.gain"] for i in range(layers_of(weights))])
        for norm in ("ln1", "ln2")
    }
    rho = {norm: [np.corrcoef(spread, np.log10(gain))[0, 1] for gain in rows] for norm, rows in by_norm.items()}
    first = np.linalg.svd(E, full_matrices=False)[2][0]
    topped = Counter(by_norm["ln2"].argmax(axis=1).tolist()).most_common(1)[0][1]
    return {"rho": rho, "share_of_first": first**2, "topped": topped}


def gains_agree(found: Numbers, metrics: Numbers) -> None:
    for norm, values in found["rho"].items():
        close(values, list(metrics["correlation"][norm].values()))
    assert found["topped"] == metrics["consistent_channel"]["ln2"]["layers_topped"]
    ranks = metrics["ln2_channel"]
    close(found["share_of_first"][ranks["channel"]], ranks["share_of_first_direction"])


def heads(weights: Weights) -> Numbers:
    P, E = positions_of(weights), weights["token_embedding"]
    bases = {"P": top(P), "E": np.linalg.svd(E, full_matrices=False)[2][: len(top(P))]}
    shares: Numbers = {source: {name: [] for name in MATRICES} for source in bases}
    n_head = P.shape[1] // min(HEADS_OF, P.shape[1] // 2)
    kernels = []
    for layer in range(layers_of(weights)):
        for name, role in MATRICES.items():
            W = weights[f"blocks.{layer}.{role}"]
            for source, basis in bases.items():
                shares[source][name].append(np.sum((basis @ W) ** 2) / np.sum(W**2))
        for queries, keys in zip(*heads_of(weights, P, layer, n_head), strict=True):
            kernels.append(by_offset(attention(queries, keys)))
    return {"shares": shares, "at_0": [k[0] for k in kernels], "at_1": [k[1] for k in kernels]}


def heads_agree(found: Numbers, metrics: Numbers) -> None:
    for source, by_matrix in found["shares"].items():
        for name, values in by_matrix.items():
            close(values, [layer["raw"] for layer in metrics["shares"][source][name]])
    described = metrics["positional_kernels"]["heads"]
    for offset in (0, 1):
        close(found[f"at_{offset}"], [head[f"weight_at_{offset}"] for head in described])


def blurred(weights: Weights) -> Numbers:
    P = positions_of(weights)
    n = len(P)
    n_head = P.shape[1] // min(HEADS_OF, P.shape[1] // 2)
    in_groups = np.concatenate(
        [np.tile(P[i : i + GROUP].mean(axis=0), (len(P[i : i + GROUP]), 1)) for i in range(0, n, GROUP)]
    )
    start = 100 if n >= 200 else 1
    at = np.unique(np.linspace(start, n - 1, LOOKED_FROM).astype(int))
    found: Numbers = {}
    for name, rows in (("as_they_are", P), ("in_groups", in_groups)):
        looks = [
            attention(queries, keys)
            for layer in range(layers_of(weights))
            for queries, keys in zip(*heads_of(weights, rows, layer, n_head), strict=True)
        ]
        found[name] = [each[at, at - 1].mean() for each in looks]
    return found


def blurred_agrees(found: Numbers, metrics: Numbers) -> None:
    for name, values in found.items():
        close(values, [head[name] for head in metrics["heads"]])


def subspaces(weights: Weights) -> Numbers:
    P, E = positions_of(weights), weights["token_embedding"]
    d = P.shape[1]
    tail = -(-d // 10)
    right = np.linalg.svd(E, full_matrices=False)[2]
    capture = np.sum((right @ top(P).T) ** 2, axis=1)
    of_tokens = E - E.mean(axis=0)
    quiet = np.linalg.svd(of_tokens, full_matrices=False)[2][-tail:]
    of_positions = P[1:] - P[1:].mean(axis=0)
    covariances = np.cov(of_positions.T), np.cov(of_tokens.T)
    shared = d * np.trace(covariances[0] @ covariances[1])
    return {
        "head": capture[:tail].mean(),
        "tail": capture[-tail:].mean(),
        "in_tail": np.sum((of_positions @ quiet.T) ** 2) / np.sum(of_positions**2),
        "rivalry": shared / (np.trace(covariances[0]) * np.trace(covariances[1])),
    }


def subspaces_agree(found: Numbers, metrics: Numbers) -> None:
    for name, metric in (
        ("head", "capture_head"),
        ("tail", "capture_tail"),
        ("in_tail", "position_energy_in_tail"),
        ("rivalry", "rivalry"),
    ):
        close(found[name], metrics[metric])


def frequency(weights: Weights) -> Numbers:
    E = weights["token_embedding"]
    norms, frequent = np.linalg.norm(E, axis=1), -np.arange(len(E))
    first = E @ np.linalg.svd(E, full_matrices=False)[2][0]
    ranks = scipy.stats.rankdata(E, axis=0)
    ranks -= ranks.mean(axis=0)
    lengths = np.linalg.norm(ranks, axis=0)
    rhos = {}
    for name, target in (("frequency", frequent), ("norm", norms)):
        of_target = scipy.stats.rankdata(target) - (len(E) + 1) / 2
        rhos[name] = of_target @ ranks / (lengths * np.linalg.norm(of_target))
    channel = E[:, np.abs(rhos["frequency"]).argmax()]
    pairs = [(frequent, channel), (frequent, norms), (channel, norms), (frequent, first)]
    return {"rhos": rhos, "pairs": [abs(spearman(*pair)) for pair in pairs]}


def frequency_agrees(found: Numbers, metrics: Numbers) -> None:
    for name, values in found["rhos"].items():
        close(values, metrics["channel_rho"][name])
    expected = {(row["of"], row["with"]): abs(row["rho"]) for row in metrics["correlations"]}
    pairs = ("log_frequency", "frequency_channel"), ("log_frequency", "norm"), ("frequency_channel", "norm")
    close(found["pairs"], [expected[pair] for pair in (*pairs, ("log_frequency", "svd_0"))])


def token_svd(weights: Weights) -> Numbers:
    P, E = positions_of(weights), weights["token_embedding"]
    _, lengths, right = np.linalg.svd(E, full_matrices=False)
    mean = E.mean(axis=0, dtype=np.float64)
    along = E @ (right[0] * np.sign(right[0] @ mean))
    energy = np.sum((E @ top(P).T) ** 2, axis=1)
    return {
        "cosine": abs(right[0] @ mean) / np.linalg.norm(mean),
        "singular_values": lengths[:10],
        "energy_first": lengths[0] ** 2 / np.sum(lengths**2),
        "rho": spearman(along, energy),
        "rho_share": spearman(along, energy / np.sum(E**2, axis=1)),
    }


def token_svd_agrees(found: Numbers, metrics: Numbers) -> None:
    close(found["cosine"], metrics["cosine_first_mean"])
    close(found["singular_values"], metrics["singular_values"])
    close(found["energy_first"], metrics["energy_first"])
    for name in ("rho", "rho_share"):
        close(found[name], metrics["overlap"][name]["value"], 3e-3)


def zero_layer(weights: Weights) -> Numbers:
    E, P = weights["token_embedding"], weights["position_embedding"]
    best = plain_best(E)
    asked = np.linspace(0, len(E) - 1, min(TOKENS_ASKED, len(E))).round().astype(int)
    shares = []
    for normed in (False, True):
        for at in (None, 0, 1, len(P) // 2, len(P) - 1):
            rows = E[asked] if at is None else E[asked] + P[at]
            if normed:
                rows = layer_norm(rows, weights["final_norm.gain"], weights["final_norm.bias"])
            shares.append(np.mean((rows @ E.T).argmax(axis=1) == asked))
    return {"self_share": np.mean(best == np.arange(len(E))), "shares": shares}


def zero_layer_agrees(found: Numbers, metrics: Numbers) -> None:
    close(found["self_share"], metrics["self_share"])
    close(found["shares"], [way["self_share"] for way in metrics["variants"]], 2 * SHARE_OF_TIES)


def outliers(weights: Weights) -> Numbers:
    E = weights["token_embedding"]
    norms = np.linalg.norm(E, axis=1)
    typical = np.median(plain_nearest(E, np.unique(np.linspace(0, len(E) - 1, min(SPREAD, len(E))).astype(int))))
    others = plain_neighbours(E, typical / 2)
    clump = np.linalg.norm(E - E[others.argmax()], axis=1) <= typical / 2
    centre = E[clump].mean(axis=0)
    members = np.linalg.norm(E - centre, axis=1) <= typical / 2
    cosines = E @ centre / (norms * np.linalg.norm(centre))
    return {
        "norms": [norms.mean(), norms.std(), norms.min(), norms.max()],
        "typical": typical,
        "crowded": np.sum(others >= 9),
        "clump": np.sum(members),
        "at_most": np.sort(1 - cosines)[max(1, int(0.02 * len(E))) - 1],
    }


def outliers_agree(found: Numbers, metrics: Numbers) -> None:
    close(found["norms"], [metrics["norm"][name] for name in ("mean", "std", "min", "max")])
    close(found["typical"], metrics["typical_distance"])
    close(found["crowded"], metrics["crowded"], 1)
    assert found["clump"] == metrics["clump"]["size"]
    close(found["at_most"], metrics["candidates"]["at_most"])


NOTEBOOKS: dict[str, Notebook] = {
    "helix": Notebook("variance in components, singular values, outlier positions", helix, helix_agrees),
    "channels": Notebook("spreads of channels, participation, correlation with tokens", channels, channels_agree),
    "gains": Notebook("correlations of every norm, the channel of ln2, its share of E", gains, gains_agree),
    "attention": Notebook("shares of every matrix in P and E, every head's kernel", heads, heads_agree),
    "blurred": Notebook("every head's weight on the previous token, twice", blurred, blurred_agrees),
    "subspaces": Notebook("capture, energy in the tail, rivalry", subspaces, subspaces_agree),
    "frequency": Notebook("every channel's rank correlations, the candidates'", frequency, frequency_agrees),
    "token_svd": Notebook("first direction, singular values, overlap with P", token_svd, token_svd_agrees),
    "zero_layer": Notebook("every token's best match, ten ways for 1,024 tokens", zero_layer, zero_layer_agrees),
    "outliers": Notebook("norms, crowding, the clump, candidates", outliers, outliers_agree),
}
