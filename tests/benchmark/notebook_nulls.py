"""What chance gives, drawn the plain way: for every finding what it draws, how often, and one draw of it.

Only what costs anything is here, and the plain way is given every benefit: covariances and spectra are made
beforehand and not timed, draws of several numbers count for the dearest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.spatial

from generators.findings.attention.with_tokens import DRAWS as DRAWS_OF_TOKENS
from generators.findings.attention.with_tokens import QUERIES
from generators.findings.nulls import DRAWS, RESAMPLES
from tests.benchmark.notebook_parts import (
    HEADS_OF,
    Array,
    Weights,
    layer_norm,
    rotation,
    spearman,
    top,
)
from tests.benchmark.notebook_parts import heads_of as queries_and_keys

TURNS = 100  # of the whole stream, where a draw is dear
SMOOTHED = 20.0  # positions: width of the noise that P is compared with
SAMPLE = 512
SOME_TOKENS = 5000
Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class Null:
    """What is drawn, how often, and what makes a function that draws once."""

    what: str
    draws: int
    one: Callable[[Weights], Draw]


def smooth_curve(weights: Weights) -> Draw:
    shape = weights["position_embedding"].shape

    def one(rng: np.random.Generator) -> Any:
        curve = scipy.ndimage.gaussian_filter1d(rng.standard_normal(shape), SMOOTHED, axis=0)
        lengths = np.linalg.svd(curve - curve.mean(axis=0), compute_uv=False)
        return np.sum(lengths[:3] ** 2) / np.sum(lengths**2)

    return one


def other_order(weights: Weights) -> Draw:
    P = np.asarray(weights["position_embedding"], np.float64)

    def one(rng: np.random.Generator) -> Any:
        shuffled = rng.permutation(P)
        parts = shuffled[len(P) // 10 :], shuffled[: -len(P) // 10]
        lengths = [np.linalg.svd(part - part.mean(axis=0), compute_uv=False) for part in parts]
        return [np.sum(each[:3] ** 2) / np.sum(each**2) for each in lengths]

    return one


def turned_channels(weights: Weights) -> Draw:
    P, covariance = np.asarray(weights["position_embedding"], np.float64), _covariance(weights)

    def one(rng: np.random.Generator) -> Any:
        turn = rotation(P.shape[1], rng)
        loud, quiet = (P @ turn).std(axis=0), np.sum(turn * (covariance @ turn), axis=0)
        return spearman(loud, quiet)

    return one


def turned_gains(weights: Weights) -> Draw:
    squares = np.stack([np.square(gain) for role, gain in weights.items() if role.endswith("ln2.gain")])

    def one(rng: np.random.Generator) -> Any:
        return (squares @ rotation(squares.shape[1], rng) ** 2).argmax(axis=1)

    return one


def turned_matrix(weights: Weights) -> Draw:
    energies = np.linalg.svd(weights["blocks.0.attn.q"], compute_uv=False) ** 2
    k = len(top(weights["position_embedding"]))

    def one(rng: np.random.Generator) -> Any:
        frame = np.linalg.qr(rng.standard_normal((len(weights["blocks.0.attn.q"]), k)))[0]
        return np.sum(energies[:, None] * frame[: len(energies)] ** 2) / energies.sum()

    return one


def tokens_on_positions(weights: Weights) -> Draw:
    E, P = weights["token_embedding"], weights["position_embedding"]
    n_head = P.shape[1] // min(HEADS_OF, P.shape[1] // 2)
    n_layer = sum(role.endswith("attn.q") for role in weights)

    def one(rng: np.random.Generator) -> Any:
        rows = E[rng.integers(len(E), size=len(P))] + P
        found = []
        for layer in range(n_layer):
            queries, keys = queries_and_keys(weights, rows, layer, n_head)
            scores = queries[:, rng.integers(len(P), size=QUERIES)] @ keys.transpose(0, 2, 1)
            found.append(scipy.special.softmax(scores / np.sqrt(keys.shape[2]), axis=2))
        return found

    return one


def turned_against(weights: Weights) -> Draw:
    of_tokens = _covariance(weights)
    of_positions = np.cov(np.asarray(weights["position_embedding"], np.float64).T)

    def one(rng: np.random.Generator) -> Any:
        turn = rotation(len(of_tokens), rng)
        return np.sum((turn.T @ of_positions @ turn) * of_tokens)

    return one


def exchanged_channels(weights: Weights) -> Draw:
    of_tokens = _covariance(weights)
    of_positions = np.cov(np.asarray(weights["position_embedding"], np.float64).T)

    def one(rng: np.random.Generator) -> Any:
        order = rng.permutation(len(of_tokens))
        return np.sum(of_positions[np.ix_(order, order)] * of_tokens)

    return one


def resampled_correlations(weights: Weights) -> Draw:
    E = weights["token_embedding"]
    columns = [-np.arange(len(E)), E[:, 0], np.linalg.norm(E, axis=1), E[:, 1]]

    def one(rng: np.random.Generator) -> Any:
        ids = rng.integers(len(E), size=len(E))
        return scipy.stats.spearmanr(np.stack([column[ids] for column in columns], axis=1)).statistic

    return one


def turned_mean(weights: Weights) -> Draw:
    covariance, mean = _covariance(weights), weights["token_embedding"].mean(axis=0, dtype=np.float64)

    def one(rng: np.random.Generator) -> Any:
        turned = rng.standard_normal(len(mean))
        turned *= np.linalg.norm(mean) / np.linalg.norm(turned)
        return np.linalg.eigh(covariance + np.outer(turned, turned))[1][:, -1] @ turned

    return one


def resampled_tokens(weights: Weights) -> Draw:
    E = weights["token_embedding"]

    def one(rng: np.random.Generator) -> Any:
        rows = E[rng.integers(len(E), size=len(E))]
        return np.linalg.eigh(rows.T @ rows)[1][:, -1] @ rows.mean(axis=0)

    return one


def turned_positions(weights: Weights) -> Draw:
    E = weights["token_embedding"][:SOME_TOKENS]
    k = len(top(weights["position_embedding"]))

    def one(rng: np.random.Generator) -> Any:
        frame = np.linalg.qr(rng.standard_normal((E.shape[1], k)))[0]
        return spearman(E[:, 0], np.sum((E @ frame) ** 2, axis=1))

    return one


def gaussian_tokens(weights: Weights) -> Draw:
    covariance, mean = _covariance(weights), weights["token_embedding"].mean(axis=0, dtype=np.float64)
    gain, bias = weights["final_norm.gain"], weights["final_norm.bias"]

    def one(rng: np.random.Generator) -> Any:
        rows = rng.multivariate_normal(mean, covariance, 4 * SAMPLE, method="eigh").astype(np.float32)
        ways = [layer_norm(rows, gain, bias) if way % 2 else rows for way in range(10)]
        return [(way @ rows.T).argmax(axis=1) for way in ways]

    return one


def scattered_tokens(weights: Weights) -> Draw:
    E = weights["token_embedding"]
    scales = np.sqrt(np.clip(np.linalg.eigvalsh(_covariance(weights)), 0, None))

    def one(rng: np.random.Generator) -> Any:
        rows = rng.standard_normal((SAMPLE, E.shape[1])) * scales
        distances = scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(rows))
        np.fill_diagonal(distances, np.inf)
        return np.sum(distances <= np.median(distances.min(axis=1)) / 2, axis=1).max()

    return one


def _covariance(weights: Weights) -> Array:
    return np.cov(weights["token_embedding"].T)


NULLS: dict[str, tuple[Null, ...]] = {
    "helix": (
        Null(
            "featureless curves of three kinds and random walks",
            4 * DRAWS,
            smooth_curve,
        ),
        Null("curves at other times or in another order", 2 * DRAWS, other_order),
    ),
    "channels": (Null("axes of P and of P and E turned at random", 2 * DRAWS, turned_channels),),
    "gains": (
        Null("axes of gains turned at random", TURNS, turned_gains),
        Null("axes of P turned at random", DRAWS, turned_channels),
    ),
    "attention": (
        Null("matrices turned at random", 8 * DRAWS, turned_matrix),
        Null("tokens on the positions", DRAWS_OF_TOKENS, tokens_on_positions),
    ),
    "blurred": (),
    "subspaces": (
        Null("sides turned at random", 3 * DRAWS, turned_against),
        Null("channels exchanged at random", DRAWS, exchanged_channels),
    ),
    "frequency": (Null("tokens resampled", RESAMPLES, resampled_correlations),),
    "token_svd": (
        Null("means turned at random, and accidental ones", 2 * DRAWS, turned_mean),
        Null("tokens resampled", RESAMPLES, resampled_tokens),
        Null("positions' directions turned at random", TURNS, turned_positions),
    ),
    "zero_layer": (Null("Gaussian tokens, and as many of the model's", 2, gaussian_tokens),),
    "outliers": (Null("tokens scattered at random", TURNS, scattered_tokens),),
}
