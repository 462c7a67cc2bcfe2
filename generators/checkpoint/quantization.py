"""Which tool quantized a checkpoint, and what of it can no longer be measured."""

from collections.abc import Mapping
from typing import Any

from generators.checkpoint.roles import Family, changed
from generators.checkpoint.sources import Files

RECIPE = "recipe.yaml"  # of llm-compressor
FOLDING = ("AWQ", "SmoothQuant")  # move scales of channels from matrices into the norms in front of them
GAINS = ("ln1.gain", "ln2.gain")


def tool(config: Mapping[str, Any]) -> str:
    said = config.get("quantization_config")
    if isinstance(said, Mapping) and said:
        return str(said.get("quant_method") or said.get("quant_algo") or "a tool that config.json doesn't name")[:40]
    if config.get("quantization"):  # older MLX says it so
        return "MLX"
    return "BitNet's training" if config.get("weight_bits") else ""


def folds_scales(config: Mapping[str, Any], files: Files) -> str:
    if tool(config).lower() == "awq":
        return "AWQ"
    recipe = (files.content(RECIPE) or b"").decode("utf-8", "replace").lower()
    return next((method for method in FOLDING if method.lower() in recipe), "")


def without_gains(family: Family, method: str) -> Family:
    """Return a family's table without the gains that a method has changed, and why."""
    why = f"{method} has folded scales into the gains of norms: they are no longer the model's own."
    reasons = {f"blocks.*.{role}": why for role in GAINS}
    gone = dict.fromkeys(GAINS)
    return changed(family, block_slots=gone, first_block_slots=gone, without=reasons)
