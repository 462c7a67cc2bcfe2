import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Windows
from generators.findings.inputs import Inputs, NotApplicableError, model_of
from generators.findings.measured import Measurements, table_of
from generators.findings.outliers import untrained
from generators.findings.outliers.clump import crowd_and_clump
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.running import RESAMPLES, SEED, WINDOWS, Ran, ran
from generators.findings.token_cells import TokenCells, cells
from generators.maths.blocks import first_identical, norms
from generators.maths.resampling import auc_of, interval, resample_items

MOST = 200  # candidates, drawn with a seed where a cluster has more
MOST_CONTROLS = 200  # each candidate has as many controls as stay below
PASSES = 5  # passes over all windows; prompts count as four
SPEAKABLE = 0.01  # largest probability below which Land and Bartolo count a token as under-trained
LEFT_OUT = ("special", "unassigned")  # groups of tokens that no text holds

# Text before a token, between it and its repetition, and after that.
TEMPLATES = (("Input: ", "\nOutput: ", "\n"), ("Say ", ", please. ", "\n"), ('"', '" is the same as "', '"\n'))
EXAMPLES = 2  # times that a prompt repeats the token before it asks; fewer in models with a short context
FREQUENT = 30  # frequent tokens used to test whether the model can repeat at all
REPEATS = 0.5  # median probability of these from which it can


class TokenRow(TokenCells):
    largest_probability: float
    count: int | None


class Unseen(TypedDict):
    """Tokens that the training text never has, against all others, by the largest probability in the texts.

    `auc` says how well a small largest probability tells the unseen, `auc_indicator` how well the embedding does.
    """

    count: int
    unspeakable: int
    largest: float
    median_seen: float
    auc: float
    auc_low: float
    auc_high: float
    auc_indicator: float


class UndertrainedMetrics(TypedDict):
    """Numbers of candidates, of `clump` tokens in one spot, and of controls of their class and frequency.

    Tokens of a class that has no others to compare them with are no candidates; equal rows are one. A token is
    unspeakable if the model never gives it 1 %, in the texts or asked to repeat it. `repeats` is the median
    probability of 30 frequent tokens when the model is asked to repeat them; None where it isn't asked.
    """

    clump: int
    candidates: int
    controls: int
    unspeakable: int
    controls_unspeakable: int
    median_candidate: float
    median_control: float
    repeats: float | None
    unseen: Unseen | None
    ran: Ran


def measure(inputs: Inputs) -> Measurements[UndertrainedMetrics]:
    """Measure the largest probability that the model ever gives each candidate and each control.

    Causal models are also asked, by prompts.
    """
    run = model_of(inputs)
    if not run.predicts:
        raise NotApplicableError("This checkpoint has no head that predicts tokens.")
    E = inputs.weights["token_embedding"]
    _, clump = crowd_and_clump(E)
    if clump is None:
        raise NotApplicableError(
            "No tokens lie in one spot, so nothing in the embedding says which were never trained."
        )
    best = inputs.frequencies[0] if inputs.frequencies else None
    counts = None if best is None else best.training_counts
    log_frequency = np.asarray(-np.arange(len(E)) if best is None else best.log_frequency, np.float64)
    groups = np.full(len(E), "") if inputs.vocabulary is None else np.array(inputs.vocabulary.groups)
    speakable = ~np.isin(groups, LEFT_OUT)
    allowed = np.isfinite(log_frequency) & (speakable if counts is None else speakable & (counts > 0))
    allowed[clump.members] = False
    members = clump.members[speakable[clump.members] & np.isin(groups[clump.members], groups[allowed])]
    candidates = _distinct(E, members)
    if not len(candidates):
        raise NotApplicableError("Each token in one spot is special or has no others of its kind to compare with.")
    controls = _controls(candidates, log_frequency, allowed, groups)
    windows = run.windows(WINDOWS, SEED, PASSES)
    largest = _largest(run, windows, len(E))
    present = np.bincount(run.text.ids, minlength=len(E))[: len(E)]
    often = present if best is None or best.proxy else np.nan_to_num(log_frequency, nan=-np.inf)
    frequent = np.argsort(-np.where(speakable, often, -np.inf), kind="stable")[:FREQUENT]
    repeats, asked = _prompted(run, candidates, controls, frequent)
    ever = np.maximum(np.exp(largest[candidates]), asked.get("candidates", 0.0))
    ever_controls = np.maximum(np.exp(largest[controls]), asked.get("controls", 0.0))
    apart = untrained.distances(OutlierTokens(E, norms(E), inputs.vocabulary), clump)
    rows = [
        TokenRow(
            **cells(inputs.vocabulary, int(i)),
            largest_probability=float(np.exp(largest[i])),
            count=None if counts is None else int(counts[i]),
        )
        for i in candidates
    ]
    metrics = UndertrainedMetrics(
        clump=len(clump.members),
        candidates=len(candidates),
        controls=len(controls),
        unspeakable=int((ever < SPEAKABLE).sum()),
        controls_unspeakable=int((ever_controls < SPEAKABLE).sum()),
        median_candidate=float(np.median(ever)),
        median_control=float(np.median(ever_controls)),
        repeats=repeats,
        unseen=None if counts is None else _unseen(largest, -apart, counts, speakable),
        ran=ran(run, windows),
    )
    arrays = {
        "candidates": np.log(ever).astype(np.float32),
        "controls": np.log(ever_controls).astype(np.float32),
        "all": np.sort(largest[speakable])[:: max(1, int(speakable.sum()) // 4096)].astype(np.float32),
    }
    title = "Candidates and the largest probability they get"
    return Measurements(metrics, {"candidates": table_of(title, TokenRow, rows)}, arrays)


def _distinct(E: Float[Array, "V d"], ids: Int[Array, " n"]) -> Int[Array, " m"]:
    """Return the ids whose rows differ, each once; of many, some drawn with a seed."""
    ids = ids[first_identical(E[ids]) == np.arange(len(ids))]
    return np.sort(np.random.default_rng(SEED).permutation(ids)[:MOST])


def _controls(
    candidates: Int[Array, " n"], log_frequency: Float[Array, " V"], allowed: Bool[Array, " V"], groups: Array
) -> Int[Array, " m"]:
    """Return for each candidate tokens outside the cluster of its group, as rare as it is.

    Where candidates are few they have several each, as long as there are any.
    """
    each = np.repeat(candidates, max(1, MOST_CONTROLS // len(candidates)))
    kinds = [groups == group for group in np.unique(groups[candidates])]
    return np.concatenate([matched(each[kind[each]], log_frequency, allowed & kind) for kind in kinds])


def matched(
    candidates: Int[Array, " n"], log_frequency: Float[Array, " V"], allowed: Bool[Array, " V"]
) -> Int[Array, " matched"]:
    """Return for each candidate the allowed token nearest in frequency that is not taken yet."""
    ids = np.flatnonzero(allowed)
    ids = ids[np.argsort(log_frequency[ids], kind="stable")]
    values = log_frequency[ids]
    chosen = []
    for wanted in np.nan_to_num(log_frequency[candidates], nan=np.nanmin(log_frequency))[: len(ids)]:
        right = int(np.searchsorted(values, wanted))
        either_side = [place for place in (right, right - 1) if 0 <= place < len(values)]
        nearer = min(either_side, key=lambda place: abs(values[place] - wanted))
        chosen.append(ids[nearer])
        ids, values = np.delete(ids, nearer), np.delete(values, nearer)
    return np.array(chosen, np.int64)


def _unseen(
    largest: Float[Array, " V"], looks: Float[Array, " V"], counts: Int[Array, " V"], speakable: Bool[Array, " V"]
) -> Unseen | None:
    """Return how tokens of count 0 differ from others; None where there are none of either.

    `largest` are logs; `looks` is larger for a token that looks under-trained.
    """
    from sklearn.metrics import roc_auc_score

    unseen = counts[speakable] == 0
    if not unseen.any() or unseen.all():
        return None
    rarely = -largest[speakable]
    drawn = resample_items(auc_of(rarely, unseen), len(unseen), RESAMPLES, np.random.default_rng(SEED))
    low, high = interval(drawn)
    return Unseen(
        count=int(unseen.sum()),
        unspeakable=int((np.exp(-rarely[unseen]) < SPEAKABLE).sum()),
        largest=float(np.exp(-rarely[unseen].min())),
        median_seen=float(np.exp(-np.median(rarely[~unseen]))),
        auc=float(roc_auc_score(unseen, rarely)),
        auc_low=low,
        auc_high=high,
        auc_indicator=float(roc_auc_score(unseen, looks[speakable])),
    )


def _largest(run: Run, windows: Windows, V: int) -> Float[Array, " V"]:
    largest = np.full(V, -np.inf, np.float32)

    def see(_: int, predictions: Float[Array, "tokens V"], wanted: Int[Array, " tokens"]) -> None:
        np.maximum(largest, predictions.max(axis=0)[:V], out=largest)

    run.loss(windows).per_window(see)
    return largest.astype(np.float64)


def _prompted(
    run: Run, candidates: Int[Array, " n"], controls: Int[Array, " m"], frequent: Int[Array, " f"]
) -> tuple[float | None, dict[str, Float[Array, " n"]]]:
    """Return the median probability of frequent tokens when asked for, and how probable the other tokens are then.

    Where even frequent tokens don't come back, no others are asked for.
    """
    if not run.architecture.causal:
        return None, {}
    repeats = float(np.median(repeated(run, frequent)))
    if repeats < REPEATS:
        return repeats, {}
    return repeats, {"candidates": repeated(run, candidates), "controls": repeated(run, controls)}


def repeated(run: Run, ids: Int[Array, " n"]) -> Float[Array, " n"]:
    """Return the largest probability of each token where one of three prompts asks for it.

    A prompt that has no room for one example is left out; it is 0 where none of the three has room.
    """
    probability = np.zeros(len(ids))
    for template in TEMPLATES:
        parts = [list(run.encode(part)) for part in template]
        examples = _fitting(run, parts)
        if not examples:
            continue
        before, between, after = parts
        prompts = [
            [*run.text.before, *[*before, i, *between, i, *after] * examples, *before, i, *between]
            for i in ids.tolist()
        ]

        def see(begin: int, logits: Float[Array, "batch V"]) -> None:
            at, last = slice(begin, begin + len(logits)), logits.astype(np.float64)
            own = np.take_along_axis(last, ids[at][:, None], axis=1)[:, 0]
            probability[at] = np.maximum(probability[at], np.exp(own - np.logaddexp.reduce(last, axis=1)))

        run.last_logits(np.array(prompts, np.int32), see)
    return probability


def _fitting(run: Run, parts: list[list[int]]) -> int:
    if run.architecture.n_ctx is None:
        return EXAMPLES
    before, between, after = (len(part) for part in parts)
    asked = len(run.text.before) + before + 1 + between
    room = max(0, run.architecture.n_ctx - asked)
    return min(EXAMPLES, room // (before + 1 + between + 1 + after))
