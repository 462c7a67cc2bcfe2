"""`python -m tests.checkpoint.oracle`: compare every case, write results/oracle.json."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.checkpoint.oracle.cases import CASES
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle
from tests.checkpoint.oracle.table import COLUMNS, table_row


def main() -> int:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    rows = []
    for case in CASES:
        oracle = ModelOracle(case)
        row = table_row(case, oracle.compare(), oracle)
        rows.append(row)
        print(f"{case.name}: {'agrees' if row['largest_difference'] <= TOLERANCE else 'DIFFERS'}", file=sys.stderr)
    published = {
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "tolerance": TOLERANCE,
        "columns": list(COLUMNS),
        "rows": rows,
    }
    target = Path(__file__).parents[3] / "results" / "oracle.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(_lines(published), "utf-8")
    return int(any(row["largest_difference"] > TOLERANCE for row in rows))


def _lines(published: dict[str, Any]) -> str:
    """Return JSON with one row of the table on a line."""
    rows = ",\n".join(json.dumps(row) for row in published["rows"])
    head = json.dumps({key: value for key, value in published.items() if key != "rows"}, indent=1)
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{rows}\n]}}\n'


if __name__ == "__main__":
    sys.exit(main())
