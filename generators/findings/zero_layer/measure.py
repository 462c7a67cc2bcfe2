"""Which token every token yields without layers: the exceptions, the hubs, and what Gaussian tokens do."""

from collections import Counter

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.findings import token_cells
from generators.findings.contract import Inputs, Measurements, NotApplicableError, Table, Vocabulary, table_of
from generators.findings.token_cells import TokenCells
from generators.maths.neighbours import best_match

# What a vocabulary says of two tokens that differ; the array `group` counts in this order.
GROUPS = ("leading space", "byte or unprintable", "plural", "case", "digits", "other")
BASELINE_TOKENS = 2048
MOST_ROWS = 10_000  # exceptions in the table; an untied model can have as many as it has tokens
MOST_HUBS = 20
SEED = 20211215
BLOCK = 1024
ROUNDING = 1e-12  # relative; two products that differ by less are equal


class Hub(TypedDict):
    """A token that more than one other yields."""

    id: int
    absorbs: int


class Baseline(TypedDict):
    """Self shares of Gaussian tokens and of as many of the model's own."""

    self_share: float
    same_number_of_tokens: float
    n_tokens: int


class Metrics(TypedDict):
    """How many tokens yield themselves, how the others differ from what they yield, and which absorb many."""

    self_share: float
    exceptions: int
    exceptions_by_group: dict[str, int] | None
    equal: int
    hubs: list[Hub]
    baseline: Baseline
    tied: bool
    n_tokens: int


class ExceptionRow(TokenCells):
    """A token that yields another one."""

    best_id: int
    best_readable: str | None
    best_raw_bytes: str | None
    group: str | None
    norm: float
    best_norm: float
    cosine: float
    margin: float


class HubRow(TokenCells):
    """A token that more than one other yields."""

    absorbs: int


def measure(inputs: Inputs) -> Measurements[Metrics]:
    """Measure which token has the largest logit for every token, without any layer in between.

    Reads `token_embedding` (V, d), and `unembedding` (V, d) where that is another matrix. The vocabulary gives
    names and groups.

    Raises:
        NotApplicableError: the output embedding is another matrix, which isn't here.
    """
    E = inputs.weights["token_embedding"]
    U = inputs.weights.get("unembedding")
    if U is None and not inputs.architecture.tied:
        raise NotApplicableError("The output embedding is a matrix of its own, which this checkpoint lacks.")
    best = best_match(E, U)
    arrays = _arrays(E, E if U is None else U, best, inputs.vocabulary)
    count, others = len(arrays["ids"]), int(np.sum(best != np.arange(len(E))))
    metrics = Metrics(
        self_share=1 - count / len(E),
        exceptions=count,
        exceptions_by_group=_by_group(arrays["group"]) if "group" in arrays else None,
        equal=others - count,
        hubs=_hubs(arrays["best"]),
        baseline=_baseline(E, U),
        tied=U is None,
        n_tokens=len(E),
    )
    return Measurements(metrics, _tables(metrics["hubs"], arrays, inputs.vocabulary), arrays)


def _arrays(
    E: Float[Array, "V d"], U: Float[Array, "V d"], best: Int[Array, " V"], vocabulary: Vocabulary | None
) -> dict[str, Array]:
    """Return ids, norms, cosine and margin of exceptions and what they yield; with a vocabulary, names and groups.

    The margin is the ratio of both products less 1.
    """
    ids, margin = exceptions(E, U, best)
    yielded = best[ids]
    norm, best_norm = np.sqrt(products(E, E, ids, ids)), np.sqrt(products(U, U, yielded, yielded))
    lengths = np.where(norm * best_norm > 0, norm * best_norm, 1)
    return {
        "ids": ids.astype(np.int32),
        "best": yielded.astype(np.int32),
        "norm": norm.astype(np.float32),
        "best_norm": best_norm.astype(np.float32),
        "cosine": (products(E, U, ids, yielded) / lengths).astype(np.float32),
        "margin": margin.astype(np.float32),
        **_groups(vocabulary, ids, yielded),
        **token_cells.names(vocabulary, ids),
        **token_cells.names(vocabulary, yielded, "best_name"),
    }


def exceptions(
    E: Float[Array, "V d"], U: Float[Array, "V d"], best: Int[Array, " V"]
) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
    """Return the tokens that another one truly beats, most clearly first, and the ratio of the two products less 1.

    A token that shares its embedding with one of a lower id is mapped to that, but isn't beaten by it. Where a
    token's own product isn't positive, the ratio says nothing and counts as infinite.
    """
    others = np.flatnonzero(best != np.arange(len(E)))
    own, winning = products(E, U, others, others), products(E, U, others, best[others])
    beaten = winning - own > ROUNDING * np.maximum(np.abs(own), np.abs(winning))
    ratio = np.divide(winning - own, own, out=np.full(len(others), np.inf), where=own > 0)[beaten]
    order = np.argsort(-ratio, kind="stable")
    return others[beaten][order], ratio[order]


def products(
    E: Float[Array, "V d"], U: Float[Array, "V d"], u: Int[Array, " n"], v: Int[Array, " n"]
) -> Float[Array, " n"]:
    """Return E_u . U_v pair by pair, in float64."""
    out = np.empty(len(u))
    for begin in range(0, len(u), BLOCK):
        part = slice(begin, begin + BLOCK)
        out[part] = np.einsum("ij,ij->i", E[u[part]], U[v[part]], dtype=np.float64)
    return out


def _groups(vocabulary: Vocabulary | None, ids: Int[Array, " n"], yielded: Int[Array, " n"]) -> dict[str, Array]:
    """Return the group of every exception by its place in `GROUPS`; without a vocabulary, no array."""
    if vocabulary is None:
        return {}
    pairs = zip(ids.tolist(), yielded.tolist(), strict=True)
    return {"group": np.array([GROUPS.index(vocabulary.pair_group(u, v)) for u, v in pairs], np.int8)}


def _by_group(group: Int[Array, " n"]) -> dict[str, int]:
    counts = np.bincount(group, minlength=len(GROUPS)).tolist()
    return dict(zip(GROUPS, counts, strict=True))


def _hubs(yielded: Int[Array, " n"]) -> list[Hub]:
    """Return the tokens that most others yield, of those that more than one yields."""
    counts = Counter(yielded.tolist()).most_common(MOST_HUBS)
    return [{"id": hub, "absorbs": count} for hub, count in counts if count > 1]


# The baseline


def _baseline(E: Float[Array, "V d"], U: Float[Array, "V d"] | None) -> Baseline:
    """Return the self share of Gaussian tokens with the model's mean and covariance, and of as many real ones."""
    n = min(BASELINE_TOKENS, len(E))
    chosen = np.unique(np.linspace(0, len(E) - 1, n).astype(np.int64))
    inputs, outputs = gaussian_like(E, U, n)
    return {
        "self_share": _self_share(inputs, outputs),
        "same_number_of_tokens": _self_share(E[chosen], None if U is None else U[chosen]),
        "n_tokens": n,
    }


def gaussian_like(
    E: Float[Array, "V d"], U: Float[Array, "V d"] | None, n: int
) -> tuple[Float[Array, "n d"], Float[Array, "n d"] | None]:
    """Return n Gaussian tokens, inputs and outputs, with the joint mean and covariance of all tokens.

    Mixing all centred tokens with Gaussian weights has exactly their covariance, and needs no covariance matrix.
    """
    rng = np.random.default_rng(SEED)
    sides = [E] if U is None else [E, U]
    mixed = [np.zeros((n, side.shape[1])) for side in sides]
    weight = np.zeros(n)
    for begin in range(0, len(E), BLOCK):
        mixture = rng.standard_normal((n, len(E[begin : begin + BLOCK])), dtype=np.float32)
        weight += mixture.sum(axis=1)
        for side, total in zip(sides, mixed, strict=True):
            total += mixture @ side[begin : begin + BLOCK]
    drawn = []
    for side, total in zip(sides, mixed, strict=True):
        mean = side.mean(axis=0, dtype=np.float64)
        drawn.append((mean + (total - np.outer(weight, mean)) / np.sqrt(len(E))).astype(np.float32))
    return drawn[0], None if U is None else drawn[1]


def _self_share(E: Float[Array, "n d"], U: Float[Array, "n d"] | None) -> float:
    return 1 - len(exceptions(E, E if U is None else U, best_match(E, U))[0]) / len(E)


# Tables


def _tables(hubs: list[Hub], arrays: dict[str, Array], vocabulary: Vocabulary | None) -> dict[str, Table]:
    count = len(arrays["ids"])
    which = f", the {MOST_ROWS} of {count} with the largest margin" if count > MOST_ROWS else ""
    tables = {
        "exceptions": table_of(
            f"Tokens that yield another token{which}; the margin is by how much its product is larger than their own",
            list(ExceptionRow.__annotations__),
            [_exception(arrays, i, vocabulary) for i in range(min(count, MOST_ROWS))],
        )
    }
    if hubs:
        tables["hubs"] = table_of(
            "Tokens that more than one other token yields",
            list(HubRow.__annotations__),
            [_hub(hub, vocabulary) for hub in hubs],
        )
    return tables


def _exception(arrays: dict[str, Array], i: int, vocabulary: Vocabulary | None) -> ExceptionRow:
    best = token_cells.cells(vocabulary, int(arrays["best"][i]))
    return {
        **token_cells.cells(vocabulary, int(arrays["ids"][i])),
        "best_id": best["id"],
        "best_readable": best["readable"],
        "best_raw_bytes": best["raw_bytes"],
        "group": GROUPS[arrays["group"][i]] if "group" in arrays else None,
        "norm": float(arrays["norm"][i]),
        "best_norm": float(arrays["best_norm"][i]),
        "cosine": float(arrays["cosine"][i]),
        "margin": float(arrays["margin"][i]),
    }


def _hub(hub: Hub, vocabulary: Vocabulary | None) -> HubRow:
    return {**token_cells.cells(vocabulary, hub["id"]), "absorbs": hub["absorbs"]}
