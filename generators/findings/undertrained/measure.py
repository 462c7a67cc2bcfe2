import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray as Array
from typing_extensions import TypedDict

from generators.base.runs import Run, Windows
from generators.findings.inputs import Inputs, NotApplicableError, Vocabulary, model_of
from generators.findings.measured import Measurements, table_of
from generators.findings.outliers import untrained
from generators.findings.outliers.clump import crowding, find_clump
from generators.findings.outliers.tokens import OutlierTokens
from generators.findings.running import RESAMPLES, SEED, WINDOWS, Ran, ran
from generators.findings.token_cells import TokenCells, cells
from generators.maths.blocks import norms
from generators.maths.resampling import auc_of, interval, resample_items

PERCENTILE = 5  # percentile of the controls' largest probabilities
PASSES = 4  # passes over all windows; prompts count as three
SPEAKABLE = 0.01  # largest probability below which Land and Bartolo count a token as under-trained
OTHERS = 200  # tokens drawn with a seed
LEFT_OUT = ("special", "unassigned")  # groups of tokens that no text holds

# Text before a token, between it and its repetition, and after that.
TEMPLATES = (("Input: ", "\nOutput: ", "\n"), ("Say ", ", please. ", "\n"), ('"', '" is the same as "', '"\n'))
EXAMPLES = 4  # repeated tokens at the start of each prompt; fewer in models with a short context
FREQUENT = 40  # frequent tokens used to test whether the model can repeat at all


class AgainstCounts(TypedDict):
    """How a set of tokens agrees with those that the training text never has; None where a set is empty."""

    unused: int
    chosen: int
    precision: float | None
    recall: float | None


class Prompted(TypedDict):
    """Shares of tokens that come back when a prompt asks to repeat them."""

    frequent: float
    candidates: float | None
    controls: float | None


class TokenRow(TokenCells):
    indicator: float
    largest_probability: float
    below_controls: bool
    repeated_probability: float | None
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
    """Numbers of candidates and of others; `threshold` is the 5th percentile of controls of matched frequency.

    A token is unspeakable if the model never gives it 1 %, in the texts or asked to repeat it; `others` were drawn
    from all tokens that are no candidates.
    """

    candidates: int
    indicator: str
    controls: int
    threshold: float
    below: int
    median_candidate: float
    median_control: float
    matched_by: str
    prompted: Prompted | None
    found_by_indicator: AgainstCounts | None
    found_by_probability: AgainstCounts | None
    unspeakable: int
    others: int
    others_unspeakable: int
    median_other: float
    unseen: Unseen | None
    ran: Ran


def measure(inputs: Inputs) -> Measurements[UndertrainedMetrics]:
    """Measure the largest probability that the model ever gives each candidate, and others.

    Causal models are also asked, by prompts. Controls are matched by frequency.
    """
    run = model_of(inputs)
    if not run.predicts:
        raise NotApplicableError("This checkpoint has no head that predicts tokens.")
    E = inputs.weights["token_embedding"]
    tokens = OutlierTokens(E, norms(E), inputs.vocabulary)
    crowd = crowding(E)
    indicator = untrained.indicator(tokens, find_clump(E, crowd), inputs.architecture.tied)
    if indicator is None:  # without a clump, use the shortest tokens instead
        indicator = untrained.Indicator("norm of the input embedding", tokens.norms)
    best = inputs.frequencies[0] if inputs.frequencies else None
    counts = None if best is None else best.training_counts
    log_frequency = (
        -np.arange(len(E), dtype=np.float64) if best is None else np.asarray(best.log_frequency, np.float64)
    )
    speakable = _speakable(inputs.vocabulary, len(E))
    candidates = np.array([i for i in indicator.candidates if speakable[i]], np.int64)
    controls = matched(candidates, log_frequency, speakable if counts is None else speakable & (counts > 0))
    if not len(candidates) or not len(controls):
        raise NotApplicableError("There are no candidates, or no tokens to compare them with.")
    windows = run.windows(WINDOWS, SEED, PASSES)
    largest = _largest(run, windows, len(E))
    threshold = float(np.percentile(largest[controls], PERCENTILE))
    below = largest < threshold
    others = _drawn(candidates, speakable)
    answers = _prompted(run, candidates, controls, others, speakable) if inputs.architecture.causal else None
    ever, ever_others = np.exp(largest[candidates]), np.exp(largest[others])
    if answers is not None:
        ever, ever_others = np.maximum(ever, answers[1]), np.maximum(ever_others, answers[2])
    rows = [
        TokenRow(
            **cells(inputs.vocabulary, int(i)),
            indicator=float(indicator.values[i]),
            largest_probability=float(np.exp(largest[i])),
            below_controls=bool(below[i]),
            repeated_probability=None if answers is None else float(answers[1][place]),
            count=None if counts is None else int(counts[i]),
        )
        for place, i in enumerate(candidates)
    ]
    metrics = UndertrainedMetrics(
        candidates=len(candidates),
        indicator=indicator.name,
        controls=len(controls),
        threshold=float(np.exp(threshold)),
        below=int(below[candidates].sum()),
        median_candidate=float(np.exp(np.median(largest[candidates]))),
        median_control=float(np.exp(np.median(largest[controls]))),
        matched_by="token index" if best is None else best.label,
        prompted=None if answers is None else answers[0],
        found_by_indicator=_against(counts, candidates, speakable),
        found_by_probability=_against(counts, np.flatnonzero(below & speakable), speakable),
        unspeakable=int((ever < SPEAKABLE).sum()),
        others=len(others),
        others_unspeakable=int((ever_others < SPEAKABLE).sum()),
        median_other=float(np.median(ever_others)),
        unseen=None if counts is None else _unseen(largest, -indicator.values, counts, speakable),
        ran=ran(run, windows),
    )
    arrays = {
        "candidates": largest[candidates].astype(np.float32),
        "controls": largest[controls].astype(np.float32),
        "others": largest[others].astype(np.float32),
        "all": np.sort(largest[speakable])[:: max(1, int(speakable.sum()) // 4096)].astype(np.float32),
    }
    if counts is not None and metrics["unseen"] is not None:
        arrays["roc"] = _roc(-largest[speakable], counts[speakable] == 0)
    title = "Candidates and the largest probability they get"
    return Measurements(metrics, {"candidates": table_of(title, TokenRow, rows)}, arrays)


def _speakable(vocabulary: Vocabulary | None, V: int) -> Bool[Array, " V"]:
    if vocabulary is None:
        return np.ones(V, bool)
    return np.array([group not in LEFT_OUT for group in vocabulary.groups])


def matched(
    candidates: Int[Array, " n"], log_frequency: Float[Array, " V"], allowed: Bool[Array, " V"]
) -> Int[Array, " matched"]:
    """Return for each candidate the allowed token nearest in frequency that is no candidate and not taken yet."""
    free = allowed & np.isfinite(log_frequency)
    free[candidates] = False
    ids = np.flatnonzero(free)
    ids = ids[np.argsort(log_frequency[ids], kind="stable")]
    values = log_frequency[ids]
    taken = np.zeros(len(ids), bool)
    chosen = []
    for wanted in np.nan_to_num(log_frequency[candidates], nan=np.nanmin(log_frequency)):
        left = right = int(np.searchsorted(values, wanted))
        left -= 1
        while left >= 0 and taken[left]:
            left -= 1
        while right < len(ids) and taken[right]:
            right += 1
        if left < 0 and right >= len(ids):
            break
        nearer = right if left < 0 or (right < len(ids) and values[right] - wanted <= wanted - values[left]) else left
        taken[nearer] = True
        chosen.append(ids[nearer])
    return np.array(chosen, np.int64)


def _drawn(candidates: Int[Array, " n"], speakable: Bool[Array, " V"]) -> Int[Array, " others"]:
    """Return tokens of any frequency that are no candidates.

    Others as rare as the candidates would be matched on the answer: what is never seen is never said.
    """
    free = speakable.copy()
    free[candidates] = False
    return np.random.default_rng(SEED).permutation(np.flatnonzero(free))[:OTHERS]


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


def _roc(scores: Float[Array, " n"], positive: Bool[Array, " n"]) -> Float[Array, "2 points"]:
    from sklearn.metrics import roc_curve

    false, true, _ = roc_curve(positive, scores)
    return np.stack([false, true]).astype(np.float32)


def _largest(run: Run, windows: Windows, V: int) -> Float[Array, " V"]:
    largest = np.full(V, -np.inf, np.float32)

    def see(_: int, predictions: Float[Array, "tokens V"], wanted: Int[Array, " tokens"]) -> None:
        np.maximum(largest, predictions.max(axis=0)[:V], out=largest)

    run.loss(windows).per_window(see)
    return largest.astype(np.float64)


def _prompted(
    run: Run,
    candidates: Int[Array, " n"],
    controls: Int[Array, " m"],
    others: Int[Array, " others"],
    speakable: Bool[Array, " V"],
) -> tuple[Prompted, Float[Array, " n"], Float[Array, " others"]] | None:
    """Return how often tokens come back, and the probability of each candidate and each of the others.

    None where even frequent tokens don't come back.
    """
    present = np.bincount(run.text.ids, minlength=len(speakable))[: len(speakable)] * speakable
    frequent = np.argsort(-present, kind="stable")[:FREQUENT]
    back, _ = repeated(run, frequent, frequent)
    if back.mean() < 0.5:
        return None
    of_candidates, probabilities = repeated(run, candidates, frequent)
    of_controls, _ = repeated(run, controls, frequent)
    shares = Prompted(
        frequent=float(back.mean()), candidates=float(of_candidates.mean()), controls=float(of_controls.mean())
    )
    return shares, probabilities, repeated(run, others, frequent)[1]


def _against(
    counts: Int[Array, " V"] | None, chosen: Int[Array, " n"], speakable: Bool[Array, " V"]
) -> AgainstCounts | None:
    if counts is None:
        return None
    unused = (counts == 0) & speakable
    hits = int(unused[chosen].sum())
    return AgainstCounts(
        unused=int(unused.sum()),
        chosen=len(chosen),
        precision=hits / len(chosen) if len(chosen) else None,
        recall=hits / int(unused.sum()) if unused.any() else None,
    )


def repeated(
    run: Run, ids: Int[Array, " n"], frequent: Int[Array, " m"]
) -> tuple[Bool[Array, " n"], Float[Array, " n"]]:
    """Return whether any of three prompts brings each token back as the likeliest, and its largest probability.

    A prompt that has no room for one example is left out; no token comes back where none of the three has room.
    """
    back, probability = np.zeros(len(ids), bool), np.zeros(len(ids))
    for template in TEMPLATES:
        parts = [list(run.encode(part)) for part in template]
        examples = _fitting(run, parts)
        if not examples:
            continue
        prompts = np.array([_prompt(run, parts, int(i), frequent, examples) for i in ids], np.int32)

        def see(at: Int[Array, " batch"], logits: Float[Array, "batch V"]) -> None:
            last = logits.astype(np.float64)
            own = np.take_along_axis(last, ids[at][:, None], axis=1)[:, 0]
            back[at] |= own >= last.max(axis=1)
            probability[at] = np.maximum(probability[at], np.exp(own - np.logaddexp.reduce(last, axis=1)))

        run.last_logits(prompts, see)
    return back, probability


def _fitting(run: Run, parts: list[list[int]]) -> int:
    if run.architecture.n_ctx is None:
        return EXAMPLES
    before, between, after = (len(part) for part in parts)
    asked = len(run.text.before) + before + 1 + between
    room = max(0, run.architecture.n_ctx - asked)
    return min(EXAMPLES, room // (before + 1 + between + 1 + after))


def _prompt(run: Run, parts: list[list[int]], token: int, frequent: Int[Array, " m"], examples: int) -> list[int]:
    before, between, after = parts
    ids = list(run.text.before)
    for example in [int(i) for i in frequent if int(i) != token][:examples]:
        ids += [*before, example, *between, example, *after]
    return [*ids, *before, token, *between]
