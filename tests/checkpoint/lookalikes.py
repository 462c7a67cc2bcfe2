"""`make lookalikes`: read models of every type by the tables of other families, write results/lookalikes.json.

A pair of a model and a table (`--family`) is *refused* with a sentence, *right* where everything that the oracle
compares agrees with the model as transformers runs it, and *wrong* otherwise. There must be no wrong pair.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from generators.base.errors import InputError
from generators.checkpoint.checkpoint import Checkpoint, open_checkpoint
from generators.checkpoint.families import families
from generators.checkpoint.sources import in_folder
from tests.checkpoint.oracle.__main__ import _lines, _versions
from tests.checkpoint.oracle.cases import CASES, OracleCase
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle
from tests.checkpoint.oracle.model import build
from tests.checkpoint.oracle.table import not_seen, table_row
from tests.nulls import today

RESULTS = Path(__file__).parents[2] / "results" / "lookalikes.json"
MOST_NUMBERS = 3_000_000  # of a small model; a type that stays larger has sizes that the small config doesn't name
ACTIVATIONS = ("hidden_activation", "hidden_act", "activation_function", "activation", "dense_act_fn", "afn")
NO_TYPE = "(none)"
LAYERS = 7
USUAL_HEAD = 8  # 32 channels of the stream, 4 heads
LAYER_KEYS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers")


@dataclass
class Outcome:
    case: OracleCase
    right: list[str] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def without_tables() -> list[OracleCase]:
    """Return a case for each type of language model in transformers that no table of ours names."""
    from transformers.models.auto import modeling_auto as auto

    known = {kind for family in families() for kind in family.model_types}
    mappings = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM")
    found = {kind for name in mappings for kind in getattr(auto, f"MODEL_FOR_{name}_MAPPING_NAMES")}
    return [OracleCase(NO_TYPE, kind) for kind in sorted(found - known)]


def deeper(case: OracleCase) -> OracleCase:
    """Return a case with more layers, as some tables treat every fourth or sixth in another way.

    Where no table of ours names its type, its heads share the stream's width: other widths would have tables refuse
    a model by its shapes.
    """
    from transformers import CONFIG_MAPPING

    known = CONFIG_MAPPING[case.type]().to_dict()
    config = {key: LAYERS for key in LAYER_KEYS if key in known} | dict(case.config)
    if case.family == NO_TYPE and known.get("head_dim"):
        config["head_dim"] = USUAL_HEAD
    return replace(case, config=config)


def small(case: OracleCase) -> OracleCase | None:
    """Return a case as it can be built, with more layers if it can; None if its type can't be made small."""
    import torch
    from transformers import AutoModel

    from tests.checkpoint.oracle.model import small_config

    for attempt in (deeper, lambda case: case):
        try:
            made = attempt(case)
            with torch.device("meta"):
                model = AutoModel.from_config(small_config(made))
        except Exception:  # whatever a config of such sizes makes transformers raise
            continue
        if sum(one.numel() for one in model.parameters()) <= MOST_NUMBERS:
            return made
    return None


def outcome(case: OracleCase, tables: Iterable[str]) -> Outcome:
    found, compared = Outcome(case), {}
    with tempfile.TemporaryDirectory() as folder:
        model = build(case)
        model.save_pretrained(folder)
        config = getattr(model.config, "text_config", model.config)
        act = next((key for key in ACTIVATIONS if hasattr(config, key)), case.act)
        for table in tables:
            try:
                checkpoint = open_checkpoint(in_folder(Path(folder)), table)
                reading = _reading(checkpoint)
                if reading not in compared:
                    dict(checkpoint)  # every tensor can be read, or it is refused
                    compared[reading] = _differs(replace(case, family=table, model_type=case.type, act=act), table)
            except InputError as error:
                found.refused[table] = str(error)
                continue
            if compared[reading]:
                found.wrong[table] = compared[reading]
            else:
                found.right.append(table)
    return found


def _reading(checkpoint: Checkpoint) -> str:
    """Return all that distinguishes one reading of a checkpoint from another."""
    bare = checkpoint.family.bare_norms
    return repr((replace(checkpoint.architecture, family=""), sorted(checkpoint._slots.items()), bare))


def _differs(case: OracleCase, table: str) -> str:
    """Return what differs from the model or can't be compared; empty where all agrees."""
    try:
        oracle = ModelOracle(case, lambda folder: open_checkpoint(in_folder(folder), table))
        found = oracle.compare()
        seen = table_row(case, found, oracle)
    except Exception as error:  # the oracle can't follow such a model: what isn't shown to be right isn't right
        return f"can't be compared: {type(error).__name__} {error}"
    off = {what: worst for what, worst in found.items() if worst > TOLERANCE}
    if off:
        what = max(off, key=lambda name: off[name])
        return f"{what}: {off[what]:.2g}"
    unseen = not_seen(case, seen, oracle)
    return f"not compared: {', '.join(unseen)}" if unseen else ""


def chosen(only: Iterable[str]) -> Iterator[OracleCase]:
    """Yield the models that are read: every case of the oracle, and every type without a table that can be made."""
    wanted = set(only)
    for case in (*CASES, *without_tables()):
        if wanted and case.type not in wanted:
            continue
        made = small(case) or (case if case in CASES else None)
        if made is not None:
            yield made


def others(case: OracleCase) -> list[str]:
    return [table.name for table in families() if case.type not in table.model_types]


def row(found: Outcome) -> dict[str, Any]:
    """Return one row of the published table; the tables that refuse are all others."""
    tables = len(found.right) + len(found.wrong) + len(found.refused)
    whose = {"model_type": found.case.type, "variant": found.case.note or None}
    return {**whose, "tables": tables, "right": found.right, "wrong": found.wrong}


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="TYPE", help="say what comes of these types alone")
    only = parser.parse_args().only
    versions = _versions()
    torch.set_num_threads(1)
    rows = []
    for case in chosen(only):
        found = outcome(case, others(case))
        rows.append(row(found))
        said = f"right {', '.join(found.right) or 'none'}; wrong {found.wrong or 'none'}"
        print(f"{case.name}: refused {len(found.refused)}; {said}", file=sys.stderr, flush=True)
    head = {**today(), **versions, "tolerance": TOLERANCE, "families": len(families())}
    pairs = sum(one["tables"] for one in rows)
    right, wrong = (sum(len(one[came]) for one in rows) for came in ("right", "wrong"))
    print(f"{pairs} pairs: {right} right, {pairs - right - wrong} refused, {wrong} wrong", file=sys.stderr)
    if not only:
        RESULTS.write_text(_lines({**head, "rows": rows}), "utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
