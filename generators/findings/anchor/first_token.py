"""Do heads rest on the first token for its position or for what it is? On text, random tokens and equal tokens.

Source: Gu et al., "When attention sink emerges in language models" (2024), who average over all queries.
"""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Windows
from generators.findings.inputs import Vocabulary
from generators.findings.nulls import interval
from generators.findings.running import SEED, file_weights

LENGTH = 64  # tokens; queries of the second half count
SINK = 0.3  # mean attention of a head that rests on a token
SEQUENCES = 16
REPEATED = 8  # tokens, each repeated: those that the text has most often
RUNS = 4 * SEQUENCES + 2 * REPEATED  # sequences, if the tokenizer has a BOS token

Tokens = Literal["text", "random", "repeated"]
Looks = Float[Array, "sequences heads early"]  # mean attention of late queries to early tokens


class FirstTokenRow(TypedDict):
    """The share of heads that rest on the first token of sequences of one kind."""

    tokens: Tokens
    with_bos: bool
    share: float
    share_low: float
    share_high: float
    sequences: int


class FirstToken(TypedDict):
    """`kept` is the share of heads for one token repeated over that for text, both without BOS.

    `on_text` counts the heads for text. `elsewhere` is the largest share of heads that rest on any other early token
    where one is repeated.
    """

    rows: list[FirstTokenRow]
    length: int
    on_text: int
    kept: float
    low: float
    high: float
    elsewhere: float


def length_of(run: Run, windows: Windows) -> int:
    return min(LENGTH, windows.ids.shape[1] - len(run.text.before))


def looks_at(run: Run, ids: Int[Array, "windows n"], *queries: slice) -> list[Looks]:
    """Return, for each range of queries, their mean attention to every token before them."""
    arch = run.architecture
    found = [np.zeros((len(ids), arch.n_layer, arch.n_head, part.start)) for part in queries]

    def see(layer: int, begin: int, weights: Float[Array, "batch heads n n"]) -> None:
        for seen, part in zip(found, queries, strict=True):
            seen[begin : begin + len(weights), layer] = weights[:, :, part, : part.start].mean(axis=2)

    run.attention(ids, see)
    return [seen.reshape(len(ids), -1, seen.shape[-1]) for seen in found]


def first_token(run: Run, windows: Windows, on_windows: Looks, vocabulary: Vocabulary | None) -> FirstToken:
    """Measure a causal model; `on_windows` is what it looks at in the first tokens of all windows."""
    n, before = length_of(run, windows), run.text.before
    special = np.zeros(run.architecture.vocab_size or 0, bool) if vocabulary is None else vocabulary.special
    start = before or ((run.bos,) if run.bos is not None and special[run.bos] else ())
    seen: dict[tuple[Tokens, bool], Looks] = {}
    for tokens, bare in _sequences(run, windows, n, special, random=vocabulary is not None).items():
        for with_bos in (False, True) if start else (False,):
            begun = np.hstack([np.tile(start, (len(bare), 1)), bare]) if with_bos else bare
            known = tokens == "text" and with_bos == bool(before)
            ids = begun[:, :n].astype(np.int32)
            seen[tokens, with_bos] = on_windows if known else looks_at(run, ids, slice(n // 2, n))[0]
    shares = {
        kind: _shares(looks, windows.files[: len(looks)] if kind[0] == "text" else np.arange(len(looks)))
        for kind, looks in seen.items()
    }
    text, repeated = shares["text", False], shares["repeated", False]
    kept = np.divide(repeated, text, out=np.zeros_like(text), where=text > 0)
    low, high = interval(kept[1:])
    resting = {kind: (looks.mean(axis=0) > SINK).sum(axis=0) for kind, looks in seen.items()}  # heads, by early token
    return FirstToken(
        rows=[_row(*kind, shares[kind], len(looks)) for kind, looks in seen.items()],
        length=n,
        on_text=int(resting["text", False][0]),
        kept=float(kept[0]),
        low=low,
        high=high,
        elsewhere=float(resting["repeated", False][1:].max()) / on_windows.shape[1],
    )


def _sequences(
    run: Run, windows: Windows, n: int, special: Bool[Array, " V"], *, random: bool
) -> dict[Tokens, Int[Array, "sequences n"]]:
    count = run.affordable(SEQUENCES, n, RUNS / SEQUENCES)
    counts = np.bincount(run.text.ids, minlength=len(special))[: len(special)]
    common = np.argsort(-np.where(special, 0, counts), kind="stable")[:REPEATED]
    found: dict[Tokens, Array] = {"text": windows.ids[:count, windows.inner[0] :][:, :n]}
    if random:
        found["random"] = np.random.default_rng([SEED, 5]).choice(np.flatnonzero(~special), (count, n))
    return {**found, "repeated": np.tile(common[:, None], n)}


def _shares(looks: Looks, groups: Int[Array, " sequences"]) -> Float[Array, " draws"]:
    """Return the share of heads that rest on the first token: in all sequences, then in resampled groups of them."""
    weights = np.vstack([np.full(len(looks), 1 / len(looks)), file_weights(groups)])
    return (weights @ looks[:, :, 0] > SINK).mean(axis=1)


def _row(tokens: Tokens, with_bos: bool, shares: Float[Array, " draws"], sequences: int) -> FirstTokenRow:
    low, high = interval(shares[1:])
    return FirstTokenRow(
        tokens=tokens,
        with_bos=with_bos,
        share=float(shares[0]),
        share_low=low,
        share_high=high,
        sequences=sequences,
    )
