"""`make oracle`: compare every case with transformers and PyTorch; writes results/oracle.json.

`--only gpt2 t5` says what comes of the cases of these names, types of model or families alone.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.checkpoint.oracle.cases import CASES
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle
from tests.checkpoint.oracle.table import COLUMNS, table_row

RESULTS = Path(__file__).parents[3] / "results" / "oracle.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", action="extend", default=[], metavar="CASE", help="or a family")
    only, rows, versions = parser.parse_args().only, [], _versions()
    for case in CASES:
        if only and not {case.name, case.type, case.family} & {*only}:
            continue
        oracle = ModelOracle(case)
        rows.append(table_row(case, oracle.compare(), oracle))
        print(rows[-1], file=sys.stderr)
    if not only:
        head = {**versions, "tolerance": TOLERANCE, "columns": list(COLUMNS)}
        RESULTS.write_text(_lines({**head, "rows": rows}), "utf-8")
    return int(any(row["largest_difference"] > TOLERANCE for row in rows))


def _versions() -> dict[str, str]:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    return {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}


def _lines(published: dict[str, Any]) -> str:
    rows = ",\n".join(json.dumps(row) for row in published["rows"])
    head = json.dumps({key: value for key, value in published.items() if key != "rows"}, indent=1)
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{rows}\n]}}\n'


if __name__ == "__main__":
    sys.exit(main())
