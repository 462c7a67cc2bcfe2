"""Token SVD: what are the leading directions of the token embedding?

Observed by Adam Scherlis, "An exploration of GPT-2's embedding weights": the first is the mean of the embeddings, the
next two separate tokens with a leading space from those without.
"""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray as Array

from generators.drawing import labels, style
from generators.findings.finding import (
    NO_TOKENS,
    Claim,
    Figure,
    Finding,
    NotApplicableError,
    Result,
    TokenFacts,
    Weights,
)
from generators.findings.thresholds import judge, untested
from generators.drawing.interactive import Group, Scatter
from generators.maths.spectra import gram
from generators.tokens.vocabulary import Vocabulary
from generators.base.architecture import Architecture

SAMPLE = 6000  # tokens drawn in figures
SEED = 20211201
BLOCK = 4096  # rows brought to float64 at once
RIDGE = 1e-6  # of the mean variance, so that a direction without spread can't blow up
FEWEST = 20  # tokens of either kind


def compute(weights: Weights, architecture: Architecture, tokens: TokenFacts = NO_TOKENS) -> Result:
    """Compute the leading right singular directions of E and what they tell apart.

    Args:
        weights: `token_embedding` (V, d).
        architecture: not used beyond its existence.
        tokens: the vocabulary says which tokens carry the space marker; without it, those parts are null.

    Raises:
        NotApplicableError: E has fewer than three channels, or is all zeros.
    """
    E = weights["token_embedding"]
    values, vectors = np.linalg.eigh(gram(E))
    if len(values) < 3 or values[-1] <= 0:
        raise NotApplicableError("The token embedding has no three leading directions.")
    mean = E.mean(axis=0, dtype=np.float64)
    top = _oriented(vectors[:, ::-1][:, :3], mean)
    scores = (E @ top.astype(np.float32)).astype(np.float64)
    length = float(np.linalg.norm(mean))
    metrics: dict[str, Any] = {
        "cosine_first_mean": float(top[:, 0] @ mean) / length if length else 0.0,
        "singular_values": np.sqrt(np.clip(values[::-1][:10], 0, None)).tolist(),
        "energy_first": float(values[-1] / values.sum()),
        "chance_cosine": 1 / np.sqrt(len(mean)),
        "space_share": None,
        "auc": None,
        "n_tokens": len(E),
    }
    kind = np.full(len(E), -1, np.int8)
    if tokens.vocabulary is not None:
        counted = ~np.asarray(tokens.vocabulary.special, bool)
        marked = np.asarray(tokens.vocabulary.marks_space, bool)
        kind = np.where(counted, marked, -1).astype(np.int8)
        if min(np.sum(kind == 0), np.sum(kind == 1)) >= FEWEST:
            metrics["space_share"] = float(np.mean(marked[counted]))
            metrics["auc"] = {
                "second": auc(scores[:, 1], kind),
                "third": auc(scores[:, 2], kind),
                "plane": auc(scores[:, 1:] @ _lda(scores[:, 1:], kind, np.ones(len(E), bool)), kind),
                "held_out_all_channels": _held_out(E, kind),
            }
    return Result(metrics, {}, _arrays(E, scores, kind, tokens.vocabulary))


def _oriented(vectors: Float[Array, "d 3"], mean: Float[Array, " d"]) -> Float[Array, "d 3"]:
    """Turn the first to the side of the mean, and the others so that their largest entry is positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    signs = np.where(largest >= 0, 1.0, -1.0)
    along = float(vectors[:, 0] @ mean)
    signs[0] = -1.0 if along < 0 else 1.0
    return vectors * signs


def auc(scores: Float[Array, " V"], kind: Array) -> float:
    """Return the area under the ROC curve for telling kind 1 from kind 0, at least 0.5: the direction has no sign."""
    from scipy.stats import rankdata

    chosen = kind >= 0
    ranks = rankdata(scores[chosen])
    positive = kind[chosen] == 1
    n_1, n_0 = int(positive.sum()), int((~positive).sum())
    area = (float(ranks[positive].sum()) - n_1 * (n_1 + 1) / 2) / (n_1 * n_0)
    return max(area, 1 - area)


def _held_out(E: Float[Array, "V d"], kind: Array) -> float:
    """Return the AUC of a linear discriminant on all channels, fitted on even ids and tested on odd ones."""
    even = np.arange(len(E)) % 2 == 0
    direction = _lda(E, kind, even)
    return auc(E @ direction.astype(E.dtype), np.where(even, -1, kind))


def _lda(rows: Float[Array, "V c"], kind: Array, fitted: Bool[Array, " V"]) -> Float[Array, " c"]:
    """Return Fisher's linear discriminant of kind 1 against kind 0 on the fitted rows, block by block."""
    c = rows.shape[1]
    scatter, sums, counts = np.zeros((c, c)), np.zeros((2, c)), np.zeros(2)
    for begin in range(0, len(rows), BLOCK):
        part = slice(begin, begin + BLOCK)
        for which in (0, 1):
            block = np.asarray(rows[part][fitted[part] & (kind[part] == which)], np.float64)
            scatter += block.T @ block
            sums[which] += block.sum(axis=0)
            counts[which] += len(block)
    means = sums / counts[:, None]
    within = scatter - sum(counts[i] * np.outer(means[i], means[i]) for i in (0, 1))
    within[np.diag_indices(c)] += RIDGE * np.trace(within) / c + np.finfo(np.float64).tiny
    return np.linalg.solve(within, means[1] - means[0])


def _arrays(
    E: Float[Array, "V d"], scores: Float[Array, "V 3"], kind: Array, vocabulary: Vocabulary | None
) -> dict[str, Array]:
    rng = np.random.default_rng(SEED)
    ids = np.sort(rng.choice(len(E), min(SAMPLE, len(E)), replace=False))
    rows = E[ids]
    return {
        "token_scores": scores[ids].astype(np.float32),
        "token_kind": kind[ids],
        "token_norm": np.linalg.norm(rows, axis=1).astype(np.float32),
        "token_id": ids.astype(np.int32),
        **labels.names(vocabulary, ids),
    }


def claims(result: Result) -> list[Claim]:
    """Judge whether the first direction is the mean and whether the next two separate leading space."""
    return [_is_mean(result.metrics), _separates(result.metrics)]


def _is_mean(m: dict[str, Any]) -> Claim:
    cosine = m["cosine_first_mean"]
    answer = (
        f"The first right singular vector and the mean embedding have cosine {cosine:.3f}; it holds "
        f"{m['energy_first']:.0%} of the energy. Two random directions have about {m['chance_cosine']:.2f}."
    )
    return judge("first-is-mean", abs(cosine), {"fails": answer}, baseline=m["chance_cosine"])


def _separates(m: dict[str, Any]) -> Claim:
    areas = m["auc"]
    if areas is None:
        return untested(
            "space-plane", "No tokenizer says which tokens carry the space marker, or nearly all or none do."
        )
    value = areas["plane"]
    answer = (
        f"The best line in the plane of the second and third directions tells tokens with the space marker from "
        f"those without with AUC {value:.2f} (second alone {areas['second']:.2f}, third {areas['third']:.2f}); all "
        f"channels together reach {areas['held_out_all_channels']:.2f} on tokens not fitted on."
    )
    return judge("space-plane", value, {"fails": answer}, baseline=0.5)


def figures_of(result: Result) -> list[Figure]:
    """Return the first direction against the norm, and the plane of the next two."""
    m = result.metrics
    areas = m["auc"]
    split = "Which tokens carry the space marker is not known." if areas is None else f"AUC {areas['plane']:.2f}."
    return [
        Figure(
            "svd-plane",
            "The second and third directions",
            "One dot per token, at its projections on the second and third right singular vectors of E; the plus "
            "marks the origin. Two clouds of different colour mean that this plane tells word beginnings from the "
            "rest.",
            f"Tokens in the plane of the second and third directions, with and without the space marker. {split}",
            lambda: draw_plane(result.arrays),
            lambda: turn_plane(result),
        ),
        Figure(
            "svd-first",
            "The first direction and the norm",
            "The projection on the first right singular vector, which is close to the mean embedding where the claim "
            "holds, against the norm of the token.",
            f"Projection on the first direction against norm; its cosine with the mean is "
            f"{m['cosine_first_mean']:.3f}.",
            lambda: draw_first(result.arrays),
        ),
    ]


KINDS = ((1, "with space marker (WordPiece: no ##)", 0), (0, "without", 1), (-1, "special or not known", 5))


def turn_plane(result: Result) -> Scatter:
    """Return the plane of the second and third directions with every drawn token's name."""
    arrays = result.arrays
    names = arrays.get("token_name")
    groups = []
    for kind, label, colour in KINDS:
        chosen = arrays["token_kind"] == kind
        _, x, y = arrays["token_scores"][chosen].T
        groups.append(
            Group(label, colour, arrays["token_id"][chosen], x, y, None if names is None else names[chosen])
        )
    x_label, y_label = "projection on the second direction", "projection on the third direction"
    return Scatter(x_label, y_label, tuple(groups), result.metrics["n_tokens"])


def draw_plane(arrays: dict[str, Array]) -> Any:
    """Draw the plane of the second and third directions, coloured by the space marker."""
    figure = style.canvas(width=6.4, height=4.8)
    ax = figure.add_subplot()
    for kind, label, colour in KINDS:
        chosen = arrays["token_kind"] == kind
        if chosen.any():
            points = arrays["token_scores"][chosen]
            ax.plot(
                points[:, 1],
                points[:, 2],
                ".",
                ms=2.5,
                alpha=0.4,
                color=style.COLOURS[colour],
                label=label,
                rasterized=True,
            )
    ax.plot(0, 0, "+", ms=14, mew=1.5, color=style.INK)
    ax.set_xlabel("projection on the second direction")
    ax.set_ylabel("projection on the third direction")
    ax.legend(markerscale=4)
    return figure


def draw_first(arrays: dict[str, Array]) -> Any:
    """Draw the first projection against the norm."""
    figure = style.canvas(width=6.4, height=3.8)
    ax = figure.add_subplot()
    ax.plot(
        arrays["token_norm"],
        arrays["token_scores"][:, 0],
        ".",
        ms=2.5,
        alpha=0.4,
        color=style.COLOURS[0],
        rasterized=True,
    )
    ax.set_xlabel("norm of the token embedding")
    ax.set_ylabel("projection on the first direction")
    return figure


TOKEN_SVD = Finding(
    name="token_svd",
    title="Token SVD",
    version=2,
    needs=("token_embedding",),
    uses=(),
    parameters={"ridge": RIDGE},
    compute=compute,
    claims=claims,
    figures=figures_of,
    signature="svd-plane",
    reads_vocabulary=True,
)
