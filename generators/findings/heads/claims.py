import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray as Array

from generators.base.sentences import first
from generators.base.text import share
from generators.findings.heads.measure import POSITIONS, HeadRow, HeadsMetrics
from generators.findings.judging import Rule, Tested, Untested
from generators.findings.measured import Chance, Measurements
from generators.findings.running import mean_over_windows, ratio_over_windows

ATTENDS = 0.1  # largest weight on the previous token below which there is nothing to predict
PREVIOUS = {"holds": 0.5, "partly": 0.3}  # weight on the previous token
RETAINED = {"holds": 0.8, "partly": 0.5}


def name(row: HeadRow) -> str:
    return f"L{row['layer']}H{row['head']}"


def _by_window(measured: Measurements[HeadsMetrics], positions: int, heads: list[int]) -> Float[Array, " windows"]:
    return measured.arrays["previous"][positions][:, heads].astype(np.float64).mean(axis=1)


def _files(measured: Measurements[HeadsMetrics]) -> Int[Array, " windows"]:
    """Return the file of every window; of results that lack it, each window is its own."""
    previous = measured.arrays["previous"]
    return measured.arrays.get("files", np.arange(previous.shape[1]))


def _previous_token(measured: Measurements[HeadsMetrics]) -> Tested:
    rows = measured.metrics["heads"]
    index = max(range(len(rows)), key=lambda i: rows[i]["on_text"])
    row = rows[index]
    mean = mean_over_windows(_by_window(measured, 0, [index]), _files(measured))
    return Tested(
        row["on_text"],
        f"{name(row)} gives the previous token {share(row['on_text'])} of its attention, the most of all heads; "
        f"uniform attention gives {share(measured.metrics['uniform'])}.",
        form=share,
        baseline=measured.metrics["uniform"],
        interval=(mean["low"], mean["high"]),
    )


def _inexact(measured: Measurements[HeadsMetrics]) -> Tested | Untested:
    rows = measured.metrics["heads"]
    heads = [i for i, row in enumerate(rows) if row["on_text"] >= PREVIOUS["partly"]]
    if not heads:
        return Untested(f"No head gives the previous token {PREVIOUS['partly']:.0%} of its attention.")
    if len(measured.arrays["previous"]) < len(POSITIONS):
        return Untested("This model's positions can't be replaced.")
    as_is, in_groups, removed = (_by_window(measured, i, heads) for i in range(len(POSITIONS)))
    retained, low, high = ratio_over_windows(in_groups, as_is, _files(measured))
    without = float(removed.mean() / as_is.mean())
    which = first([name(rows[i]) for i in heads], 4)
    return Tested(
        retained,
        f"With positions in groups of ten, {which} keep{'s' if len(heads) == 1 else ''} {share(retained)} of "
        f"{'its' if len(heads) == 1 else 'their'} attention to the previous token; without positions, "
        f"{share(without)} remains.",
        form=share,
        baseline=without,
        interval=(low, high),
    )


def _foretold(measured: Measurements[HeadsMetrics]) -> Tested | Untested:
    found = measured.metrics["forecast"]
    if found is None:
        return Untested("There is no position embedding, so no kernel by positions alone.")
    if max(row["on_text"] for row in measured.metrics["heads"]) < ATTENDS:
        return Untested(
            f"No head gives the previous token {ATTENDS:.0%} of its attention, so there is nothing to predict."
        )
    return Tested(
        found["rho"],
        "Over heads, the weights on the previous token by positions alone and on text have a rank correlation of "
        f"{found['rho']:+.2f}; heads shuffled within layers would give {found['chance_median']:+.2f} (99th "
        f"percentile {found['chance_limit']:+.2f}).",
        form="{:+.2f}",
        chance=Chance(
            "shufflings of heads within layers", found["chance_median"], found["chance_limit"], found["draws"]
        ),
        interval=(found["low"], found["high"]),
    )


RULES = (
    Rule(
        id="previous-token-on-text",
        short="previous token",
        statement="Some head attends mainly to the previous token.",
        value="largest mean weight on the previous token",
        holds=PREVIOUS["holds"],
        partly=PREVIOUS["partly"],
        unit="of attention",
        test=_previous_token,
    ),
    Rule(
        id="previous-token-inexact",
        short="without exactness",
        statement="Heads that attend to the previous token do not need exact positions.",
        value=f"share of that weight kept in groups of ten, heads with at least {PREVIOUS['partly']:g}",
        holds=RETAINED["holds"],
        partly=RETAINED["partly"],
        unit="kept",
        test=_inexact,
    ),
    Rule(
        id="positions-foretell-heads",
        short="predicted by P",
        statement="Positions alone predict which heads attend to the previous token.",
        value="rank correlation over heads, kernel by positions alone and attention on text",
        holds=0.5,
        unit="rank correlation",
        also="beyond the 99th percentile of shuffled heads",
        over="over heads",
        test=_foretold,
    ),
)
