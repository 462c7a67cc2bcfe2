import numpy as np

from generators.findings.plantings import Controls, D, N, P, Planting, Scene, coil, embed, leading, noise, read

GAIN, QUERIES, KEYS = "blocks.0.ln1.gain", "blocks.0.attn.q", "blocks.0.attn.k"


def position_heads(at: Scene, s: float) -> None:
    """Let one head read a helix in noise s times as strongly as before, as products of queries with keys."""
    at.weights[GAIN] = np.ones(D)
    at.weights[P] = embed(coil(N, 3), D, noise=0.05, seed=at.seed)
    axes = leading(at.weights[P] - at.weights[P].mean(axis=0), 3)
    columns = slice(0, D // at.sizes.n_head)
    for role in (QUERIES, KEYS):
        W = at.weights[role].copy()
        W[:, columns] += (np.sqrt(s) - 1) * axes @ (axes.T @ W[:, columns])
        at.weights[role] = W


def reads_main_plane(at: Scene, s: float) -> None:
    at.weights[GAIN] = np.ones(D)
    at.weights[P] = noise(at, N, D) * np.geomspace(1, 0.05, D)
    for name in ("attn.q", "attn.k"):
        read(at, s, leading(at.weights[P] - at.weights[P].mean(axis=0), 2), name)


CONTROLS = Controls(
    plantings=(
        Planting(
            "position-heads",
            "factor by which one head of four reads the curve more strongly",
            position_heads,
            (60, 30, 15, 8, 4, 2, 1),
        ),
        Planting(
            "reads-main-plane",
            "share of Q and K that reads two directions of P",
            reads_main_plane,
            (0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05, 0),
        ),
    )
)
