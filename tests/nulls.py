"""`make nulls`: how often each claim holds where there is nothing to find, over at least 200 draws of every null.

Writes `results/nulls.json`, with date and commit, which the site's About page shows. A null is weights without the
structure that claims speak of but with something that could be taken for it: smoothness, low rank, heavy tails,
order. Everything that a null doesn't speak of is Gaussian. `tests/running_nulls.py` has those of findings that run
the model. `tests/test_nulls.py` runs a few draws of each.
"""

import argparse
import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded; draws run side by side

import numpy as np
import scipy.stats

from generators.base.files import replace_file
from generators.findings import FINDINGS
from generators.findings.contract import Finding
from generators.findings.inputs import RUN, Inputs
from generators.findings.plantings import E, P, V, controls_of
from generators.tokens.frequency import TokenFrequency
from generators.tokens.vocabulary import ModelVocabulary
from tests import synthetic
from tests.running_nulls import EXCHANGES, before_training
from tests.stand_in_nulls import STAND_INS, seed_of
from tests.test_stored_numbers import opened

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "nulls.json"
DRAWS = 200
CHUNK = 10  # draws that are counted, and kept, together
SHARE = 0.01  # of a null's draws that may hold
SIZES = synthetic.architecture(n_ctx=256, d_model=64, n_layer=6, n_head=4, vocab_size=V)
Array = np.ndarray
N, D = SIZES.n_ctx or 0, SIZES.d_model
ROWS = {P: N, E: V}


@dataclass(frozen=True)
class Null:
    """Models in which there is nothing to find.

    `verdicts` returns those of a finding's claims in the draw of a seed, none where it isn't about that finding.
    `excused` has the claims that such models fulfill, each with why; findings' `planted.py` have others.
    """

    name: str
    verdicts: Callable[[Finding[Any], int], Mapping[str, str]]
    excused: Mapping[str, str] = field(default_factory=dict, hash=False)


def noise(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape)


def low_rank(rng: np.random.Generator, rows: int, d: int, rank: int) -> Array:
    return noise(rng, rows, rank) @ noise(rng, rank, d)


def trained(role: str) -> Array:
    """Return P or E of the atlas's own model, rows in their order."""
    return opened("stdlib-gpt2").checkpoint[role].astype(np.float64)


def drifting(rng: np.random.Generator, rows: int, d: int) -> Array:
    """Return rows that drift from the first id to the last, in a random direction, by as much as they vary."""
    along = np.linspace(-1.7, 1.7, rows)[:, None]
    direction = noise(rng, 1, d)
    return noise(rng, rows, d) + along * direction / np.linalg.norm(direction) * np.sqrt(d) / 4


def token_facts(rng: np.random.Generator) -> tuple[ModelVocabulary, tuple[TokenFrequency, ...]]:
    """Return a vocabulary whose tokens mark a space at random, and counts that fall with the id as they do."""
    words = tuple(f"t{i}" for i in range(V))
    counts = np.sort(rng.zipf(1.4, V).clip(max=10**6))[::-1] * rng.lognormal(0, 0.5, V)
    vocabulary = ModelVocabulary(
        raw_bytes=tuple(word.encode() for word in words),
        readable=words,
        groups=("mixed",) * V,
        marks_space=rng.random(V) < 0.5,
        special=np.zeros(V, bool),
    )
    return vocabulary, (TokenFrequency("counts", "made-up counts", np.log1p(counts), 1.0, False),)


def of_weights(name: str, roles: tuple[str, ...], draw: Callable[[np.random.Generator], dict[str, Array]]) -> Null:
    """Return weights of which `draw` makes some, about `roles`; all others are Gaussian."""

    @lru_cache(1)
    def inputs(seed: int) -> Inputs:
        rng = np.random.default_rng([seed, len(name), sum(map(ord, name))])
        weights = synthetic.gaussian_weights(SIZES, seed, vocab_size=V)
        weights |= {role: rows.astype(np.float32) for role, rows in draw(rng).items()}
        return Inputs(weights, SIZES, *token_facts(rng))

    def verdicts(finding: Finding[Any], seed: int) -> Mapping[str, str]:
        about = controls_of(finding.name).about
        read = (*finding.needs, *finding.uses) if about is None else about
        if RUN in finding.needs or not ("*" in roles or set(roles) & set(read)):
            return {}
        return synthetic.verdicts_on(finding, inputs(seed))

    return Null(name, verdicts)


def of_rows(name: str, roles: tuple[str, ...], rows: Callable[[np.random.Generator, int], Array]) -> Null:
    return of_weights(name, roles, lambda rng: {role: rows(rng, ROWS[role]) for role in roles})


Draws = Mapping[str, tuple[Callable[[np.random.Generator], Mapping[str, str]], ...]]


def of_findings(name: str, draws: Draws) -> Null:
    """Return a null whose verdicts are drawn by functions of each finding's own."""

    def verdicts(finding: Finding[Any], seed: int) -> Mapping[str, str]:
        drawn = (draw(np.random.default_rng([seed, len(finding.name)])) for draw in draws.get(finding.name, ()))
        return dict(pair for found in drawn for pair in found.items())

    return Null(name, verdicts)


NULLS = (
    of_weights("Gaussian", ("*",), lambda rng: {}),
    of_rows("random walk", (P,), lambda rng, n: synthetic.random_walk(n, D, seed_of(rng))),
    of_rows("AR(1) at 0.9", (P,), lambda rng, n: synthetic.autoregressive(n, D, seed_of(rng), 0.9)),
    of_rows("AR(1) at 0.99", (P,), lambda rng, n: synthetic.autoregressive(n, D, seed_of(rng), 0.99)),
    of_rows("noise smoothed over 5", (P,), lambda rng, n: synthetic.smoothed_noise(n, D, seed_of(rng), 5)),
    of_rows("noise smoothed over 30", (P,), lambda rng, n: synthetic.smoothed_noise(n, D, seed_of(rng), 30)),
    of_rows("noise smoothed over 60", (P,), lambda rng, n: synthetic.smoothed_noise(n, D, seed_of(rng), 60)),
    of_rows("permuted rows of a trained P", (P,), lambda rng, n: rng.permutation(trained(P), axis=0)[:, :D]),
    of_rows("low-rank pairs", (P, E), lambda rng, n: low_rank(rng, n, D, 4 if n == N else 12)),
    of_rows("rank-1 pairs", (P, E), lambda rng, n: low_rank(rng, n, D, 1)),
    of_rows("Cauchy rows", (P, E), lambda rng, n: noise(rng, n, D) * np.abs(rng.standard_cauchy((n, 1)))),
    of_rows("lognormal channel scales", (P, E), lambda rng, n: noise(rng, n, D) * rng.lognormal(0, 1, D)),
    of_rows("tokens drifting over ids", (E,), lambda rng, n: drifting(rng, n, D)),
    of_rows("permuted rows of a trained E", (E,), lambda rng, n: rng.permutation(trained(E), axis=0)[:n, :D]),
)
RUNNING_NULLS = (
    Null(
        "a model before its training",
        before_training,
        {
            "positions-last": "The residual stream carries P, which is initialized as large as the token embedding.",
            "positions-foretell-heads": "Attention on text includes what positions alone contribute, trained or not.",
            "needs-the-mean": "The unembedding is the token embedding, so the mean embedding favors frequent tokens, "
            "trained or not.",
        },
    ),
    of_findings("a trained model, the tested part exchanged", EXCHANGES),
    of_findings("a stand-in, the tested part drawn at random", STAND_INS),
)
ALL_NULLS = (*NULLS, *RUNNING_NULLS)


def excused() -> dict[str, dict[str, str]]:
    """Return nulls that keep what a claim speaks of: claim -> null -> why. They are measured and published too."""
    found = {claim: dict(why) for f in FINDINGS for claim, why in controls_of(f.name).preserved_by.items()}
    for null in RUNNING_NULLS:
        for claim, why in null.excused.items():
            found.setdefault(claim, {})[null.name] = why
    return found


def verdicts(null: Null, seed: int, findings: Iterable[Finding[Any]] = FINDINGS) -> Iterator[tuple[str, str]]:
    """Yield (claim, verdict) for one draw of a null."""
    for finding in findings:
        yield from null.verdicts(finding, seed).items()


Counts = dict[str, Counter[str]]  # of draws in which a claim holds, and in which it is tested


def tally(index: int, seeds: range, preserved: Path, only: tuple[str, ...]) -> Counts:
    """Count verdicts over draws of one null; kept in a file, so that a run that is stopped goes on."""
    file = preserved / "-".join([str(index), str(seeds.start), str(seeds.stop), *only])
    if not file.is_file():
        findings = [finding for finding in FINDINGS if not only or finding.name in only]
        counts: Counts = {}
        for claim, verdict in (pair for seed in seeds for pair in verdicts(ALL_NULLS[index], seed, findings)):
            found = {"holds": int(verdict == "holds"), "tested": int(verdict != "untested")}
            counts.setdefault(claim, Counter()).update(found)
        replace_file(file, json.dumps(counts).encode())
    return {claim: Counter(found) for claim, found in json.loads(file.read_text("utf-8")).items()}


def table(draws: int, jobs: int, preserved: Path, only: tuple[str, ...] = ()) -> dict[str, Counts]:
    """Return {null: {claim: {holds, tested}}}, measured in several processes."""
    work = [
        (index, range(start, min(start + CHUNK, draws)))
        for start in range(0, draws, CHUNK)
        for index in range(len(ALL_NULLS))
    ]
    total: dict[str, Counts] = {null.name: {} for null in ALL_NULLS}
    with ProcessPoolExecutor(jobs) as pool:
        found = pool.map(tally, *zip(*work, strict=True), [preserved] * len(work), [only] * len(work))
        for (index, seeds), counts in zip(work, found, strict=True):
            name = ALL_NULLS[index].name
            for claim, count in counts.items():
                total[name].setdefault(claim, Counter()).update(count)
            print(f"{name}: {seeds.stop} of {draws}", flush=True)
    return total


def most(draws: int) -> int:
    """Return in how many draws a claim may hold: 1 %, or what 99 % of rules that let through 1 % stay below.

    The latter only of more than `DRAWS` draws, which tell a rate from its accidents.
    """
    return int(SHARE * draws) if draws <= DRAWS else int(scipy.stats.binom.ppf(1 - SHARE, draws, SHARE))


def commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def today() -> dict[str, str]:
    """Return when, and of which commit, something is measured now."""
    return {"date": datetime.now(UTC).date().isoformat(), "commit": commit()}


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")


def add_only(parser: argparse.ArgumentParser) -> None:
    """Have a command take `--only gains helix`, `--only gains,helix` and `--only` more than once."""
    parser.add_argument(
        "--only",
        nargs="*",
        action="extend",
        default=[],
        metavar="FINDING",
        help="measure the claims of these findings anew; what is stored of the others stays",
    )


def chosen(only: Iterable[str]) -> tuple[str, ...]:
    """Return the findings that are named, each once.

    Raises:
        SystemExit: there is none of that name that claims something.
    """
    known = [finding.name for finding in FINDINGS if finding.rules]
    named = tuple(dict.fromkeys(name for given in only for name in given.split(",") if name))
    if unknown := [name for name in named if name not in known]:
        raise SystemExit(f"No finding with claims: {', '.join(unknown)}. There are {', '.join(known)}.")
    return named


def renewed(record: Mapping[str, Any], only: Iterable[str]) -> dict[str, str]:
    """Return at which commit each finding was measured anew after all of them were."""
    return {**record.get("renewed", {}), **dict.fromkeys(only, commit())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    add_only(parser)
    arguments = parser.parse_args()
    only = chosen(arguments.only)
    preserved = ROOT / ".cache" / "nulls" / commit()
    preserved.mkdir(parents=True, exist_ok=True)
    measured = table(arguments.draws, arguments.jobs, preserved, only)
    if only:
        record = json.loads(RESULTS.read_text("utf-8"))
        for null, claims in measured.items():
            record["nulls"].setdefault(null, {}).update(claims)
        record["renewed"] = renewed(record, only)
    else:
        record = {
            **today(),
            "draws": arguments.draws,
            "sizes": {"positions": N, "channels": D, "tokens": V, "layers": SIZES.n_layer},
            "nulls": measured,
        }
    record["not_opposite"] = excused()
    write_record(RESULTS, record)
    for null, claims in record["nulls"].items():
        for claim, count in claims.items():
            if count["holds"] > most(max(record["draws"], count["tested"])):
                print(f"{null}: {claim} holds in {count['holds']} of {count['tested']}")


if __name__ == "__main__":
    main()
