from collections import Counter
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings import token_cells
from generators.findings.inputs import Inputs, NotApplicableError, Vocabulary
from generators.findings.measured import Measurements, StoredChance, Table, table_of
from generators.findings.nulls import DRAWS, drawn
from generators.findings.sizes import asked_tokens, check_tokens
from generators.findings.token_cells import TokenCells
from generators.findings.zero_layer.variants import YieldVariant, answers, variants, ways_of
from generators.maths.blocks import norms, spread_ids
from generators.maths.neighbours import best_match
from generators.maths.ranks import strongest_channel

# What a vocabulary says of two tokens that differ; the array `group` counts in this order.
GROUPS = ("leading space", "byte or unprintable", "plural", "case", "digits", "other")
BASELINE_TOKENS = 2048
VARIANT_TOKENS = 1024  # tokens tested with the final norm and at positions
MOST_ROWS = 10_000  # exceptions in the table; an untied model can have one per token
MOST_HUBS = 20
SEED = 20211215
BLOCK = 1024
ROUNDING = 1e-12  # relative; products that differ by less count as equal
FEWEST_PARTNERS = 10


class AlikeTokens(TypedDict):
    """The spread of some tokens in one number, over that of all, and where their median lies among all.

    Spreads are interquartile ranges; `chance` draws as many tokens at random.
    """

    spread: float
    place: float
    chance: StoredChance


class Partners(TypedDict):
    """The shorter tokens of the pairs: alike in norm, and in the frequency channel where one is known."""

    count: int
    norm: AlikeTokens
    channel: int | None
    on_channel: AlikeTokens | None


class AbsorbingToken(TypedDict):
    id: int
    absorbs: int


class ZeroLayerMetrics(TypedDict):
    """How many tokens yield themselves, how the others differ from what they yield, and which absorb many.

    Of a very large vocabulary some tokens are asked (`asked_tokens`), and the exceptions are of these.
    """

    self_share: float
    exceptions: int
    exceptions_by_group: dict[str, int] | None
    hubs: list[AbsorbingToken]
    variants: list[YieldVariant]
    partners: Partners | None
    n_tokens: int


class ExceptionRow(TokenCells):
    best_id: int
    best_readable: str | None
    best_raw_bytes: str | None
    group: str | None
    norm: float
    best_norm: float
    cosine: float
    margin: float


class HubRow(TokenCells):
    absorbs: int


def measure(inputs: Inputs) -> Measurements[ZeroLayerMetrics]:
    """Measure which token has the largest logit for every token, without any layer in between."""
    E = inputs.weights["token_embedding"]
    U = inputs.weights.get("unembedding")
    if U is None and not inputs.architecture.tied:
        raise NotApplicableError("The output embedding is a matrix of its own, which this checkpoint lacks.")
    check_tokens(E)
    some = asked_tokens(E)
    asked = np.arange(len(E)) if some is None else some
    best = best_match(E, U, some)
    found = _variants(inputs, E, U)
    arrays = _arrays(E, E if U is None else U, asked, best, inputs.vocabulary)
    count = len(arrays["ids"])
    known = inputs.frequencies[0].log_frequency if inputs.frequencies else None
    groups = None if inputs.vocabulary is None else np.bincount(arrays["group"], minlength=len(GROUPS)).tolist()
    by_group = None if groups is None else dict(zip(GROUPS, groups, strict=True))
    hubs = Counter(arrays["best"].tolist()).most_common(MOST_HUBS)
    metrics = ZeroLayerMetrics(
        self_share=1 - count / len(asked),
        exceptions=count,
        exceptions_by_group=by_group,
        hubs=[{"id": hub, "absorbs": count} for hub, count in hubs if count > 1],
        variants=found,
        partners=partners(E, norms(E), arrays["ids"], known),
        n_tokens=len(E),
    )
    tables = _tables(metrics["hubs"], arrays, inputs.vocabulary)
    title = "What tokens yield with the final norm between the embeddings, and with a position added"
    tables["variants"] = table_of(title, YieldVariant, found)
    return Measurements(metrics, tables, arrays)


def _arrays(
    E: Float[Array, "V d"],
    U: Float[Array, "V d"],
    asked: Int[Array, " m"],
    best: Int[Array, " m"],
    vocabulary: Vocabulary | None,
) -> dict[str, Array]:
    """Return ids, norms, cosine and margin of exceptions and what they yield; with a vocabulary, names and groups.

    The margin is the ratio of both products less 1.
    """
    ids, yielded, margin = exceptions(E, U, asked, best)
    norm, best_norm = np.sqrt(products(E, E, ids, ids)), np.sqrt(products(U, U, yielded, yielded))
    lengths = np.where(norm * best_norm > 0, norm * best_norm, 1)
    arrays = {
        "ids": ids.astype(np.int32),
        "best": yielded.astype(np.int32),
        "norm": norm.astype(np.float32),
        "best_norm": best_norm.astype(np.float32),
        "cosine": (products(E, U, ids, yielded) / lengths).astype(np.float32),
        "margin": margin.astype(np.float32),
        **token_cells.names(vocabulary, ids),
        **token_cells.names(vocabulary, yielded, "best_name"),
    }
    if vocabulary is not None:
        pairs = zip(ids.tolist(), yielded.tolist(), strict=True)
        arrays["group"] = np.array([GROUPS.index(vocabulary.pair_group(u, v)) for u, v in pairs], np.int8)
    return arrays


def exceptions(
    E: Float[Array, "V d"], U: Float[Array, "V d"], asked: Int[Array, " m"], best: Int[Array, " m"]
) -> tuple[Int[Array, " n"], Int[Array, " n"], Float[Array, " n"]]:
    """Return the tokens that another one truly beats, most clearly first, and that; the ratio of products less 1.

    A token that shares its embedding with one of a lower id is mapped to that, but isn't beaten by it. Where a
    token's own product isn't positive, the ratio says nothing and counts as infinite.
    """
    differs = best != asked
    others, yielded = asked[differs], best[differs]
    own, winning = products(E, U, others, others), products(E, U, others, yielded)
    beaten = winning - own > ROUNDING * np.maximum(np.abs(own), np.abs(winning))
    ratio = np.divide(winning - own, own, out=np.full(len(others), np.inf), where=own > 0)[beaten]
    order = np.argsort(-ratio, kind="stable")
    return others[beaten][order], yielded[beaten][order], ratio[order]


def products(
    E: Float[Array, "V d"], U: Float[Array, "V d"], u: Int[Array, " n"], v: Int[Array, " n"]
) -> Float[Array, " n"]:
    """Return E_u . U_v pair by pair, in float64."""
    pairs = zip(*(np.array_split(ids, len(u) // BLOCK + 1) for ids in (u, v)), strict=True)
    return np.concatenate([np.einsum("ij,ij->i", E[a], U[b], dtype=np.float64) for a, b in pairs])


def _variants(inputs: Inputs, E: Float[Array, "V d"], U: Float[Array, "V d"] | None) -> list[YieldVariant]:
    ways, keys = ways_of(inputs, E.shape[1]), E if U is None else U
    ids, some = spread_ids(len(E), VARIANT_TOKENS), spread_ids(len(E), BASELINE_TOKENS)
    drawn_inputs, drawn_outputs = gaussian_like(E, U, len(some))
    own, scale = np.arange(len(some)), np.float32(inputs.architecture.embedding_scale)
    return variants(
        answers(E[ids].astype(np.float32) * scale, ids, keys, ways),
        answers(E[some].astype(np.float32) * scale, own, keys[some], ways),
        answers(drawn_inputs * scale, own, drawn_outputs, ways),
        ways,
        inputs.vocabulary,
    )


def gaussian_like(
    E: Float[Array, "V d"], U: Float[Array, "V d"] | None, n: int
) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
    """Return n Gaussian tokens, inputs and outputs, with the joint mean and covariance of all tokens."""
    sides = [E] if U is None else [E, U]
    widths = [side.shape[1] for side in sides]
    mean = np.concatenate([side.mean(axis=0, dtype=np.float64) for side in sides])
    covariance = np.zeros((len(mean), len(mean)))
    for begin in range(0, len(E), BLOCK):  # multiplied in float32, summed in float64
        rows = np.concatenate([side[begin : begin + BLOCK].astype(np.float32) for side in sides], axis=1)
        rows -= mean.astype(np.float32)
        covariance += rows.T @ rows
    variances, vectors = np.linalg.eigh(covariance / len(E))
    spread = (vectors * np.sqrt(np.clip(variances, 0, None))) @ vectors.T  # the symmetric root is unique
    drawn = np.random.default_rng(SEED).standard_normal((n, sum(widths)), dtype=np.float32)
    drawn = drawn @ spread.astype(np.float32) + mean.astype(np.float32)
    return drawn[:, : widths[0]], drawn[:, -widths[-1] :]  # the same where inputs and outputs are one matrix


def _tables(hubs: list[AbsorbingToken], arrays: dict[str, Array], vocabulary: Vocabulary | None) -> dict[str, Table]:
    count = len(arrays["ids"])
    which = f", the {MOST_ROWS} of {count} with the largest margin" if count > MOST_ROWS else ""
    tables = {
        "exceptions": table_of(
            f"Tokens that yield another token{which}; the margin is by how much its product is larger than their own",
            ExceptionRow,
            [_exception(arrays, i, vocabulary) for i in range(min(count, MOST_ROWS))],
        )
    }
    if hubs:
        tables["hubs"] = table_of(
            "Tokens that more than one other token yields",
            HubRow,
            [{**token_cells.cells(vocabulary, hub["id"]), **hub} for hub in hubs],
        )
    return tables


def _exception(arrays: dict[str, Array], i: int, vocabulary: Vocabulary | None) -> dict[str, Any]:
    best = token_cells.cells(vocabulary, int(arrays["best"][i]))
    return {
        **token_cells.cells(vocabulary, int(arrays["ids"][i])),
        **{f"best_{name}": cell for name, cell in best.items()},
        **{name: float(arrays[name][i]) for name in ("norm", "best_norm", "cosine", "margin")},
        "group": GROUPS[arrays["group"][i]] if "group" in arrays else None,
    }


def partners(
    E: Float[Array, "V d"],
    norms: Float[Array, " V"],
    shorter: Int[Array, " n"],
    log_frequency: Float[Array, " V"] | None,
) -> Partners | None:
    if len(shorter) < FEWEST_PARTNERS:
        return None
    channel = None if log_frequency is None else strongest_channel(E, log_frequency)
    return {
        "count": len(shorter),
        "norm": alike(norms, shorter),
        "channel": channel,
        "on_channel": None if channel is None else alike(E[:, channel].astype(np.float64), shorter),
    }


def alike(values: Float[Array, " V"], ids: Int[Array, " n"]) -> AlikeTokens:
    from scipy.stats import iqr

    whole = float(iqr(values)) or 1.0
    rng = np.random.default_rng(SEED)
    others = [iqr(rng.choice(values, len(ids), replace=False)) / whole for _ in range(DRAWS)]
    return {
        "spread": float(iqr(values[ids])) / whole,
        "place": float(np.mean(values < np.median(values[ids]))),
        "chance": drawn("as many tokens drawn at random", np.array(others), "at most"),
    }
