"""`make planted`: where each claim about weights switches when what it speaks of is planted ever more weakly.

Writes `results/planted.json`, with date and commit, which the site's About page shows. What is planted stands in the
findings' folders (`planted.py`); `--only gains` measures the claims of one finding anew and keeps the others.
`tests/test_planted.py` looks at both ends of every scale.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import Inputs
from generators.findings.plantings import D, N, Planting, Scene, V, controls_of
from generators.tokens.frequency import TokenFrequency
from tests import nulls, synthetic

SIZES = synthetic.architecture(n_ctx=N, d_model=D, n_layer=6, n_head=4, vocab_size=V)
RESULTS = nulls.RESULTS.with_name("planted.json")
SEEDS = range(3)
ORDER = ("fails", "untested", "partly", "holds")  # of several draws, the worst is told
PLANTINGS = [(finding, planting) for finding in FINDINGS for planting in controls_of(finding.name).plantings]


def scene(seed: int) -> Scene:
    rng = np.random.default_rng([seed, 77])
    weights = synthetic.gaussian_weights(SIZES, 500 + seed, vocab_size=V)
    z = rng.standard_normal(V)
    return Scene(weights, SIZES, (z - z.mean()) / z.std(), rng.random(V) < 0.5, rng, seed)


def inputs(planted: Scene) -> Inputs:
    vocabulary, _ = nulls.token_facts(np.random.default_rng(planted.seed))
    vocabulary = replace(vocabulary, marks_space=planted.marks_space)
    known = (TokenFrequency("counts", "made-up counts", 5 + planted.z, 1.0, False),)
    weights = {role: values.astype(np.float32) for role, values in planted.weights.items()}
    return Inputs(weights, SIZES, vocabulary, known)


def verdict(finding: Finding[Any], planting: Planting, strength: float, seed: int) -> str:
    at = scene(seed)
    planting.plant(at, strength)
    return synthetic.verdicts_on(finding, inputs(at))[planting.claim]


def worst(finding: Finding[Any], planting: Planting, strength: float) -> str:
    return min((verdict(finding, planting, strength, seed) for seed in SEEDS), key=ORDER.index)


def row(finding: Finding[Any], planting: Planting) -> Mapping[str, Any]:
    scale = [{"strength": s, "verdict": worst(finding, planting, s)} for s in planting.strengths]
    print(planting.claim, *(f"{one['strength']:g} {one['verdict']}" for one in scale), sep=", ", flush=True)
    return {"claim": planting.claim, "what": planting.what, "scale": scale}


def record(only: Sequence[str]) -> dict[str, Any]:
    """Return what is written; with `only`, the rows of other findings' claims are those that are there."""
    measured = [row(finding, planting) for finding, planting in PLANTINGS if not only or finding.name in only]
    if not only:
        return {**nulls.today(), "draws": len(SEEDS), "plantings": measured}
    there = json.loads(RESULTS.read_text("utf-8"))
    rows = {one["claim"]: one for one in (*there["plantings"], *measured)}
    return {
        **there,
        "plantings": [rows[planting.claim] for _, planting in PLANTINGS if planting.claim in rows],
        "renewed": nulls.renewed(there, only),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    nulls.add_only(parser)
    nulls.write_record(RESULTS, record(nulls.chosen(parser.parse_args().only)))


if __name__ == "__main__":
    main()
