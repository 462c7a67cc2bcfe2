"""Made-up models of real shapes: embeddings built like real ones, positions on a helix, random matrices."""

from pathlib import Path

import numpy as np
import yaml

from tests.checkpoints import Sizes, write_checkpoint

Array = np.ndarray
GPT2_SHAPE = 50257, 768
GPT2 = Sizes(n_layer=12, n_head=12, d_model=GPT2_SHAPE[1], n_ctx=1024, vocab_size=GPT2_SHAPE[0])
UNUSED = 100  # tokens that huddle
ROWS = 1024  # at a time
WAVES = 4  # in three channels each


def realistic_embedding(V: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Return token embeddings (V, d) float32 built like real ones, and the ids of its unused tokens.

    Variances fall as (k + 8)^-0.7, as MiniLM's do, about a mean that holds a quarter of the energy; norms are
    log-normal, varying by 15 %. Twenty thousand tokens come in pairs (" word" and "word"), alike to all degrees and
    nearly of one length; up to 200 families of 5 to 30 are near-duplicates; 100 unused tokens huddle.
    """
    rng = np.random.default_rng(seed)
    variances = (np.arange(d) + 9.0) ** -0.7
    E = rng.standard_normal((V, d), dtype=np.float32) * np.sqrt(0.75 * variances / variances.sum()).astype(np.float32)
    norms = np.exp(0.15 * rng.standard_normal(V)).astype(np.float32)
    unused, first, second, *families = _parts_of(
        rng.permutation(V), [min(UNUSED, V // 20), V // 5, V // 5, *rng.integers(5, 30, min(200, V // 100))]
    )
    _likened(E, first, second, rng.uniform(0.15, 0.7, len(second)).astype(np.float32))
    norms[second] = norms[first] * np.exp(0.06 * rng.standard_normal(len(second))).astype(np.float32)
    for family in families:
        _likened(E, family[:1].repeat(len(family)), family, np.full(len(family), rng.uniform(0.2, 0.6), np.float32))
    E[unused] = 0.15 * E[unused[0]] + 0.04 * E[unused]
    norms[unused] = 0.9
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    mean = rng.standard_normal(d).astype(np.float32)
    mean *= 0.5 / np.linalg.norm(mean)
    for begin in range(0, V, ROWS):
        block = slice(begin, begin + ROWS)
        E[block] = 4 * norms[block, None] * (E[block] @ rotation + mean)
    return E, np.sort(unused)


def _parts_of(ids: Array, sizes: list[int]) -> list[Array]:
    return np.split(ids, np.cumsum(sizes))[: len(sizes)]


def _likened(E: Array, like: Array, ids: Array, distance: Array) -> None:
    """Mix into rows what they are to be like; at distance 1 they stay as they are."""
    E[ids] = E[like] * np.sqrt(1 - distance**2)[:, None] + E[ids] * distance[:, None]


def winding_positions(n: int, d: int, seed: int = 0) -> Array:
    """Return position embeddings (n, d) float32 that wind in a few channels, with noise in all."""
    rng = np.random.default_rng(seed)
    P = 0.02 * rng.standard_normal((n, d))
    turns = 2 * np.pi * np.arange(n) / n
    for wave in range(1, WAVES + 1):
        for channel in rng.choice(d, 3, replace=False):
            P[:, channel] += 0.5 / wave * np.cos(wave * turns + channel)
    return P.astype(np.float32)


def write_model(folder: Path, sizes: Sizes, seed: int = 0) -> Path:
    """Write a GPT-2 of these sizes, with such embeddings, into a folder."""
    E, _ = realistic_embedding(sizes.vocab_size, sizes.d_model, seed)
    P = winding_positions(sizes.n_ctx, sizes.d_model, seed)
    return write_checkpoint(folder, sizes=sizes, seed=seed, changed={"wte.weight": E, "wpe.weight": P})


def write_models(place: Path, count: int, sizes: Sizes) -> list[str]:
    """Write so many models and their registry; return their names."""
    names = [f"made-up-{number}" for number in range(1, count + 1)]
    for seed, name in enumerate(names):
        write_model(place / name, sizes, seed)
    entries = [{"name": name, "title": name, "sources": [{"folder": name}]} for name in names]
    (place / "models.yml").write_text(yaml.safe_dump(entries))
    return names
