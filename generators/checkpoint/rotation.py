"""What config.json says of rotations and windows, in the words of several generations of software."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from generators.base.architecture import Rotary
from generators.base.errors import InputError
from generators.checkpoint.config import ModelConfig, is_number
from generators.checkpoint.positions import BASE, rotary
from generators.checkpoint.roles import Fields

FULL, SLIDING = "full_attention", "sliding_attention"
PART = "partial_rotary_factor"


def same_in_all_layers(
    settings: ModelConfig,
    fields: Fields,
    kinds: Sequence[str] | None = None,
    adjacent: bool = False,
    part_key: str | None = None,
) -> Fields:
    """Return one rotation for all layers, and windows; `kinds` are those of layers where config.json doesn't say."""
    turns = rotation(settings, fields, adjacent=adjacent, part_key=part_key)
    return {"rotary": (turns,) * fields["n_layer"], "windows": windows(settings, fields["n_layer"], kinds)}


part_of_each_head = partial(same_in_all_layers, part_key=PART)
neighbors = partial(same_in_all_layers, adjacent=True)


def in_turn(settings: ModelConfig, fields: Fields) -> Fields:
    """Return the same for a model in which every second layer sees all keys."""
    return same_in_all_layers(settings, fields, all_keys_every(2, fields["n_layer"]))


def rotation(
    settings: ModelConfig,
    fields: Fields,
    *,
    kind: str | None = None,
    base_key: str = "rope_theta",
    part_key: str | None = None,
    scaled: bool = True,
    adjacent: bool = False,
) -> Rotary:
    """Return the rotation that config.json describes, under `rope_parameters` (of a kind of layer) or at the top.

    `base_key` and `part_key` are what older files call the base and the share of a head's channels that turn. Without
    a `part_key`, all of them turn: the software of such a family never reads a share. `scaled`: whether
    `rope_scaling` is meant for this kind of layer.
    """
    rules = _rules(settings, kind)
    old_scaling = settings.get("rope_scaling")
    if rules is None and scaled and isinstance(old_scaling, Mapping):
        rules = old_scaling
    rules = dict(rules or {})
    base = rules.get("rope_theta") or settings.get(base_key) or BASE
    part = rules.get(PART) or settings.get(part_key or PART) or 1.0
    settings.ignore("rope_theta", PART, "original_max_position_embeddings")
    original = settings.get("original_max_position_embeddings")
    if original is not None:
        rules.setdefault("original_max_position_embeddings", original)
    if not is_number(base) or not is_number(part) or not 0 < part <= 1:
        raise InputError(f"config.json says that {part!r} of a head's channels turn, with base {base!r}.")
    part = 1.0 if part_key is None else part
    return rotary(int(fields["d_head"] * part), base, fields["n_ctx"], rules, adjacent)


def _rules(settings: ModelConfig, kind: str | None) -> Mapping[str, Any] | None:
    rules = settings.get("rope_parameters")
    if rules is None:
        return None
    if kind is not None and isinstance(rules, Mapping) and {FULL, SLIDING} & {*rules}:
        return rules.get(kind) or {}
    if kind is not None or not isinstance(rules, Mapping) or FULL in rules:
        raise InputError("config.json gives rope_parameters that the atlas can't read.")
    return rules


def layer_kinds(settings: ModelConfig, n_layer: int, otherwise: Sequence[str]) -> list[str]:
    """Return which attention each layer has: all keys, or a window. Raises InputError: another kind."""
    kinds = settings.get("layer_types")
    if kinds is None:
        return list(otherwise)
    if not isinstance(kinds, list) or len(kinds) < n_layer or not {*map(str, kinds)} <= {FULL, SLIDING}:
        raise InputError(f"config.json gives layer_types that are not {n_layer} times {FULL} or {SLIDING}.")
    return kinds[:n_layer]


def by_kind(settings: ModelConfig, fields: Fields, turns: Mapping[str, Rotary | None], nth: int) -> Fields:
    """Return rotations and windows; every nth layer sees all keys, unless config.json says which do."""
    n_layer = fields["n_layer"]
    kinds = layer_kinds(settings, n_layer, all_keys_every(nth, n_layer))
    return {"rotary": tuple(turns[kind] for kind in kinds), "windows": windows(settings, n_layer, kinds)}


def all_keys_every(nth: int, n_layer: int) -> list[str]:
    return [SLIDING if (i + 1) % nth else FULL for i in range(n_layer)]


def windows(settings: ModelConfig, n_layer: int, otherwise: Sequence[str] | None = None) -> tuple[int | None, ...]:
    """Return how many keys a query sees in each layer, None where it sees all; empty if it sees all everywhere."""
    size = settings.get("sliding_window")
    switched_off = settings.get("use_sliding_window") is False
    kinds = layer_kinds(settings, n_layer, otherwise or [SLIDING] * n_layer)
    if size is None or switched_off or SLIDING not in kinds:
        return ()
    width = settings.size("sliding_window")
    return tuple(width if kind == SLIDING else None for kind in kinds)
