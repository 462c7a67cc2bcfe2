"""`make bench`: measure all sections, or those named by `--only`; `--write` keeps them in results/bench.json.

Seconds are of the processor, in one thread, unless a section says otherwise: they hold on a busy machine too. What
each section was measured on stands beside it, so that one can be measured again by itself. Timings are read by
people; answers that differ end the run with an error.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from generators.base.files import replace_file
from generators.base.plain import as_json
from tests.benchmark.findings import findings
from tests.benchmark.growth import SECONDS, growth
from tests.benchmark.jobs import side_by_side
from tests.benchmark.others import others
from tests.benchmark.running import runs
from tests.benchmark.timing import CLOCK, ROOT, CannotMeasureError, machine
from tests.benchmark.token_side import token_side
from tests.benchmark.whole import gpt2_side, large_vocabulary

KEPT = ROOT / "results" / "bench.json"
DIGITS = 4
SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {
    "token_side": token_side,
    "findings": findings,
    "others": others,
    "growth": growth,
    "side_by_side": side_by_side,
    "runs": runs,
    "gpt2": gpt2_side,
    "large": large_vocabulary,
}
BY_THE_CLOCK = ("side_by_side", "gpt2", "large")


def measured(section: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a section found, and what it was measured on."""
    about = {**machine(), "clock": "seconds by the clock" if section in BY_THE_CLOCK else CLOCK}
    with threadpool_limits(1):
        return rounded({**about, **measure()})


def rounded(value: Any) -> Any:
    """Return numbers, however nested, with a few digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def keep(section: str, found: dict[str, Any]) -> None:
    """Write a section beside the others."""
    kept = json.loads(KEPT.read_text("utf-8")) if KEPT.is_file() else {}
    replace_file(KEPT, as_json({**kept, section: found}).encode())


def main() -> None:
    """Measure, print, and keep it if asked to."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmark", description=__doc__)
    parser.add_argument("--only", action="append", choices=SECTIONS, help="a section; may be given more than once")
    parser.add_argument("--write", action="store_true", help="keep each section in results/bench.json as it is done")
    parser.add_argument(
        "--growth-seconds", type=float, default=SECONDS, help="of the processor, that each axis of growth may take"
    )
    chosen = parser.parse_args()
    given = {growth: partial(growth, chosen.growth_seconds)}
    for section in chosen.only or SECTIONS:
        print(f"{section} ...", file=sys.stderr, flush=True)
        measure = SECTIONS[section]
        try:
            found = measured(section, given.get(measure, measure))
        except CannotMeasureError as reason:
            print(f"{section} is left out: {reason}", file=sys.stderr)
            continue
        print(json.dumps({section: found}, indent=1), flush=True)
        if chosen.write:
            keep(section, found)


if __name__ == "__main__":
    main()
