"""`make lookalikes`: models of types without a table, by every table and by none; writes results/lookalikes.json.

A pair of a model of language and a table (`--family`) is *refused* with a sentence, *right* where everything that
the oracle compares agrees with the model as transformers runs it, and *wrong* otherwise. Without `--family` the token
side of a model is right or refused, and nothing is said of positions and masks. Nothing may be wrong.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from generators.base.errors import AtlasError, InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.families import families, has_table
from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places, in_folder
from generators.compute.plan import open_model, prepare
from generators.findings import FINDINGS
from generators.findings.inputs import FREQUENCIES, TOKENS
from tests.checkpoint.oracle.__main__ import _lines, _versions
from tests.checkpoint.oracle.cases import OracleCase
from tests.checkpoint.oracle.comparison import TOLERANCE, ModelOracle
from tests.checkpoint.oracle.model import build, untrained
from tests.checkpoint.oracle.table import not_seen, table_row
from tests.nulls import today

RESULTS = Path(__file__).parents[2] / "results" / "lookalikes.json"
MOST_NUMBERS = 20_000_000  # of a small model; a type that stays larger has sizes that the small config doesn't name
NO_TYPE = "(none)"
LAYERS = 7
USUAL_HEAD = 8  # 32 channels of the stream, 4 heads
LAYER_KEYS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers", "decoder_layers")
ABOUT_TOKENS = {
    finding.name
    for finding in FINDINGS
    if {*finding.needs}.difference((TOKENS, FREQUENCIES)) == {"token_embedding"} and "unembedding" not in finding.uses
}


@dataclass
class Outcome:
    """What came of a model of one type by tables, and `alone`: without one."""

    model_type: str
    alone: str | None = None  # "read" or "refused"; None: what is saved names a type with a table
    right: list[str] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@cache
def language_models() -> frozenset[str]:
    from transformers.models.auto import modeling_auto as auto

    mappings = ("CAUSAL_LM", "MASKED_LM", "SEQ_TO_SEQ_CAUSAL_LM")
    return frozenset(kind for name in mappings for kind in getattr(auto, f"MODEL_FOR_{name}_MAPPING_NAMES"))


@cache
def known_types() -> frozenset[str]:
    return frozenset(kind for family in families() for kind in family.model_types)


def deeper(kind: str) -> OracleCase:
    """Return a case with more layers, as some tables treat every fourth or sixth in another way.

    Its heads share the stream's width: other widths would have tables refuse a model by its shapes.
    """
    from transformers import CONFIG_MAPPING

    known = CONFIG_MAPPING[kind]().to_dict()
    config = {key: LAYERS for key in LAYER_KEYS if key in known}
    return OracleCase(NO_TYPE, kind, config=config | ({"head_dim": USUAL_HEAD} if known.get("head_dim") else {}))


def saved(kind: str, folder: Path) -> tuple[OracleCase, Any] | None:
    """Save a small model, with more layers if it can be so; None if its type can't be made small."""
    import torch

    for attempt in (deeper, partial(OracleCase, NO_TYPE)):
        with suppress(Exception):  # whatever a config of such sizes makes transformers raise
            case = attempt(kind)
            with torch.device("meta"):
                size = sum(parameter.numel() for parameter in untrained(case).parameters())
            if size <= MOST_NUMBERS:
                model = build(case)
                model.save_pretrained(folder)
                return case, model
    return None


def outcome(kind: str, tables: Iterable[str]) -> Outcome | None:
    """Return what comes of a type of model by these tables, and by none; None if it can't be made small."""
    with tempfile.TemporaryDirectory() as name:
        made, found = saved(kind, Path(name)), Outcome(kind)
        if made is None:
            return None
        case, model = made
        _by_tables(found, case, Path(name), tables)
        if model.config.model_type not in known_types():
            try:
                found.alone = _alone(Path(name), model)
            except AssertionError as error:
                found.wrong[NO_TYPE] = str(error)
    return found


def _by_tables(found: Outcome, case: OracleCase, folder: Path, tables: Iterable[str]) -> None:
    for table in tables:
        try:
            dict(open_checkpoint(in_folder(folder), table))  # every tensor can be read, or it is refused
        except InputError as error:
            found.refused[table] = str(error)
            continue
        if differs := _differs(replace(case, family=table, model_type=case.type), table):
            found.wrong[table] = differs
        else:
            found.right.append(table)


def _alone(folder: Path, model: Any) -> str:
    """Return what comes of a model without a table. Raises AssertionError: something is read wrongly, or claimed."""
    try:
        opened = open_model(Model(name="small", title="small", sources=(FolderSource(folder=folder),)), Places())
    except AtlasError as sentence:
        assert str(sentence).endswith("."), sentence
        return "refused"
    checkpoint = opened.checkpoint
    assert not has_table(checkpoint.family), "has a table"
    assert list(checkpoint) == ["token_embedding"], list(checkpoint)
    read, name = checkpoint["token_embedding"], checkpoint.record("token_embedding").name
    same = (np.array_equal(read, embedding.weight.detach().float().numpy()) for embedding in _embeddings(model))
    assert any(same), f"{name} embeds no tokens"
    prepared = prepare(opened, FINDINGS)
    for planned in prepared.plans:
        if planned.finding.name in ABOUT_TOKENS:
            assert planned.key is not None, f"{planned.finding.name}: {planned.reason}"
        else:
            assert planned.status == "not_applicable", f"{planned.finding.name} is {planned.status}"
            assert "no table for models of type" in (planned.reason or ""), planned.reason
    said = prepared.record
    assert (said.causal, said.post_norm) == (None, None), said
    return "read"


def _embeddings(model: Any) -> list[Any]:
    """Return what transformers calls the token embedding; where it calls nothing so, those of all parts."""
    import torch

    with suppress(NotImplementedError, AttributeError):
        named = model.get_input_embeddings()
        if named.weight.ndim == 2:
            return [named]
    return [part for part in model.modules() if isinstance(part, torch.nn.Embedding)]


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


def row(found: Outcome) -> dict[str, Any]:
    """Return one row of the published table; the tables that refuse are all others."""
    tables = len({*found.right, *found.wrong, *found.refused} - {NO_TYPE})
    return {key: value for key, value in vars(found).items() if key != "refused"} | {"tables": tables}


def main() -> int:
    import torch
    from transformers import CONFIG_MAPPING

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="TYPE", help="say what comes of these types alone")
    only = parser.parse_args().only
    versions = _versions()
    torch.set_num_threads(1)
    rows = []
    tables = [table.name for table in families()]
    for kind in only or sorted({*CONFIG_MAPPING} - known_types()):
        found = outcome(kind, tables if kind in language_models() else [])
        if found is not None:
            rows.append(row(found))
            print({**rows[-1], "refused": len(found.refused)}, file=sys.stderr, flush=True)
    if not only:
        head = {**today(), **versions, "tolerance": TOLERANCE, "families": len(families())}
        RESULTS.write_text(_lines({**head, "rows": rows}), "utf-8")
    return int(any(one["wrong"] for one in rows))


if __name__ == "__main__":
    sys.exit(main())
