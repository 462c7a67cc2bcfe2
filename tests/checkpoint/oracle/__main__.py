"""`make oracle`: compare every case with transformers and PyTorch, and ask every finding about weights of it.

It writes results/oracle.json. A finding that raises an exception ends it.

`--only gpt2 t5` compares the cases of these names, types of model or families, and keeps the rows of the others.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.checkpoint.oracle.cases import CASES, OracleCase
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle
from tests.checkpoint.oracle.findings import ABOUT_WEIGHTS, outcomes_of
from tests.checkpoint.oracle.table import COLUMNS, table_row

Name = tuple[str, str, str | None]
RESULTS = Path(__file__).parents[3] / "results" / "oracle.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", action="extend", default=[], metavar="CASE", help="or a family")
    cases = chosen(parser.parse_args().only)
    versions = _versions()
    rows = saved(cases, versions)
    for case in cases:
        oracle = ModelOracle(case)
        row = table_row(case, oracle.compare(), oracle, outcomes_of(case))
        rows[which(row)] = row
        print(f"{case.name}: {'agrees' if row['largest_difference'] <= TOLERANCE else 'DIFFERS'}", file=sys.stderr)
    in_order = [rows[named(case)] for case in CASES if named(case) in rows]
    head = {**versions, "tolerance": TOLERANCE, "findings": len(ABOUT_WEIGHTS), "columns": list(COLUMNS)}
    RESULTS.write_text(_lines({**head, "rows": in_order}), "utf-8")
    return int(any(row["largest_difference"] > TOLERANCE for row in in_order))


def _versions() -> dict[str, str]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    return {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}


def chosen(only: Iterable[str]) -> list[OracleCase]:
    """Return the cases that are named by their own name, their type of model or their family; all if none is.

    Raises:
        SystemExit: a name means no case.
    """
    wanted = {name for given in only for name in given.split(",") if name}
    found = [case for case in CASES if not wanted or wanted & {case.name, case.type, case.family}]
    if unknown := wanted - {name for case in found for name in (case.name, case.type, case.family)}:
        raise SystemExit(f"No case, type of model or family of this name: {', '.join(sorted(unknown))}.")
    return found


def named(case: OracleCase) -> Name:
    return case.family, case.type, case.note or None


def which(row: dict[str, Any]) -> Name:
    return row["family"], row["model_type"], row["variant"]


def saved(cases: Sequence[OracleCase], versions: dict[str, str]) -> dict[Name, dict[str, Any]]:
    """Return the stored rows that aren't compared anew.

    Raises:
        SystemExit: they were compared with other versions, so that one table would speak of two.
    """
    if len(cases) == len(CASES):
        return {}
    there = json.loads(RESULTS.read_text("utf-8"))
    if (measured := {name: there[name] for name in versions}) != versions:
        raise SystemExit(f"The other rows were compared with {measured}, and here is {versions}: compare all.")
    anew = {named(case) for case in cases}
    kept = [row for row in there["rows"] if which(row) not in anew]
    return {which(row): {**row, "asked": row.get("asked", there["findings"])} for row in kept}


def _lines(published: dict[str, Any]) -> str:
    rows = ",\n".join(json.dumps(row) for row in published["rows"])
    head = json.dumps({key: value for key, value in published.items() if key != "rows"}, indent=1)
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{rows}\n]}}\n'


if __name__ == "__main__":
    sys.exit(main())
