from functools import partial

import numpy as np

from generators.findings.plantings import (
    LN1,
    SHARES,
    Controls,
    D,
    E,
    N,
    P,
    Planting,
    Scene,
    V,
    leading,
    noise,
    read,
    with_gains,
    with_positional_heads,
)


def reads_positions(at: Scene, s: float, name: str) -> None:
    at.weights |= with_gains({}, LN1, [np.ones(D)] * at.sizes.n_layer)  # flat
    at.weights[P] = noise(at, N, D) * np.geomspace(1, 0.05, D)
    read(at, s, leading(at.weights[P], 5), name)


def reads_tokens(at: Scene, s: float, name: str) -> None:
    at.weights[E] = noise(at, V, D) * np.geomspace(1, 0.05, D)
    read(at, s, leading(at.weights[E], N // 10), name)


def writes_positions(at: Scene, s: float) -> None:
    at.weights[P] = noise(at, N, D) * np.geomspace(1, 0.05, D)
    read(at, s, leading(at.weights[P], N // 10), "attn.o")


def mlp_ignores(at: Scene, s: float) -> None:
    """Of what the MLP would read of P's directions by chance, 1 - s is taken away."""
    at.weights[P] = noise(at, N, D) * np.geomspace(1, 0.05, D)
    axes, role = leading(at.weights[P], N // 10), "blocks.0.mlp.in"
    at.weights[role] = at.weights[role] - (1 - np.sqrt(1 - s)) * axes @ (axes.T @ at.weights[role])


def previous_token(at: Scene, s: float) -> None:
    at.weights[E] = 0.3 * at.weights[E]
    at.weights |= with_positional_heads(at.weights, at.sizes, {(0, 1): 1}, sharpness=s, seed=at.seed)


def favored(at: Scene, s: float) -> None:
    """b_Q of every head makes W_K b_Q s times as large in one channel as in a random one."""
    for layer in range(at.sizes.n_layer):
        block = f"blocks.{layer}.attn"
        at.weights[f"blocks.{layer}.ln1.gain"] = np.ones(D)
        keys, bias = at.weights[f"{block}.k"].copy(), at.weights[f"{block}.q.bias"]
        heads = bias.reshape(at.sizes.n_head, -1)
        typical = np.linalg.norm(keys) / np.sqrt(keys.size)
        keys[9] = (s * typical * heads / np.linalg.norm(heads, axis=1, keepdims=True)).ravel() * np.sqrt(2 / np.pi)
        at.weights[f"{block}.k"] = keys


CONTROLS = Controls(
    plantings=(
        *(
            Planting(
                f"{name}-reads-{what}",
                f"share of {name.upper()} that reads {directions}",
                partial(plant, name=f"attn.{name}"),
                SHARES,
            )
            for names, what, directions, plant in (
                ("qk", "positions", "five directions of P", reads_positions),
                ("qkv", "tokens", "25 directions of E", reads_tokens),
            )
            for name in names
        ),
        Planting("writes-positions", "share of O that writes into 25 directions of P", writes_positions, SHARES),
        Planting(
            "mlp-reads-tokens",
            "share of the MLP's input that reads 25 directions of E",
            partial(reads_tokens, name="mlp.in"),
            SHARES,
        ),
        Planting(
            "mlp-ignores-positions",
            "share removed of what the MLP reads from 25 directions of P",
            mlp_ignores,
            (1, 0.8, 0.6, 0.5, 0.4, 0.2, 0),
        ),
        Planting(
            "previous-token-head",
            "pre-softmax score of the previous token",
            previous_token,
            (200, 60, 30, 15, 10, 5, 0),
        ),
        Planting(
            "previous-token-with-tokens",
            "pre-softmax score of the previous token, with tokens added to positions",
            previous_token,
            (200, 60, 30, 15, 10, 5, 0),
        ),
        Planting(
            "query-bias-channel",
            "W_K b_Q of one channel, divided by the mean channel's",
            favored,
            (20, 10, 6, 4.5, 3.5, 2.5, 1, 0),
        ),
    )
)
