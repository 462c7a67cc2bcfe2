"""Checkpoints of nanochat: no table describes its model, which changes often, but its tokens can be measured."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from generators.checkpoint.sources.dialects import Dialect
from generators.checkpoint.sources.formats import Header

QUERIES = re.compile(r"(^|\.)transformer\.h\.(\d+)\.attn\.c_q\.weight$")
TOKENS = "transformer.wte.weight"


def nanochat(
    names: Sequence[str], header: Callable[[str], Header], said_in: Callable[[str], Mapping[str, Any]], stem: str
) -> Dialect | None:
    """Return how to read a checkpoint of nanochat; None where it is none.

    `said_in` reads a file beside it, whose own name has the `stem` model_STEP.
    """
    layers = [match for name in names if (match := QUERIES.search(name))]
    tokens = next((name for name in names if name.endswith(TOKENS)), None)
    if not layers or tokens is None or not header(tokens).shape:
        return None
    said = said_in(f"meta_{stem.rpartition('_')[2]}.json").get("model_config")
    sizes = said if isinstance(said, Mapping) else {}
    config = {"model_type": "nanochat", "n_layer": len(layers), "vocab_size": header(tokens).shape[0]}
    config |= {ours: sizes[key] for ours, key in (("n_head", "n_head"), ("n_ctx", "sequence_len")) if key in sizes}
    return Dialect("nanochat", config)
