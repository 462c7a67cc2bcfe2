"""A case as a model of transformers: with random weights of which all matter, run once, with what its modules saw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from tests.checkpoint.oracle.cases import SMALL, TOWERS, OracleCase

Array = np.ndarray
TOKENS = 24
HEADS = tuple(
    f"AutoModel{head}" for head in ("ForCausalLM", "ForSeq2SeqLM", "ForSpeechSeq2Seq", "ForMaskedLM", "")
)  # the first is wrong for pairs
PAIRS = ("t5", "mt5", "umt5", "bart", "mbart", "pegasus", "m2m_100", "marian")


def small_config(case: OracleCase) -> Any:
    from transformers import CONFIG_MAPPING

    kind = CONFIG_MAPPING[case.type]
    chosen = _small(kind().to_dict())
    if case.type == "gpt_bigcode":
        chosen.pop("num_key_value_heads")
    given = {key: {**chosen[key], **value} if key in TOWERS else value for key, value in case.config.items()}
    return kind(**{**chosen, **given}, attn_implementation="eager" if case.eager else "sdpa")


def _small(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return small sizes for the settings that a config has, also inside the configs of its parts."""
    chosen = {key: value for key, value in SMALL.items() if key in known}
    if isinstance(known.get("vocab_size"), int):
        chosen["vocab_size"] = min(SMALL["vocab_size"], known["vocab_size"])
    parts = {key: value for key, value in known.items() if isinstance(value, dict) and "model_type" in value}
    return chosen | {key: {"model_type": part["model_type"], **_small(part)} for key, part in parts.items()}


def untrained(case: OracleCase) -> Any:
    import transformers

    config = small_config(case)
    for auto in HEADS[case.type in (*PAIRS, "whisper") :]:
        kind = getattr(transformers, auto)
        if type(config) in kind._model_mapping:
            return kind.from_config(config)
    # a half that no automatic class knows
    return getattr(transformers, type(config).__name__.replace("Config", "Model"))(config)


def build(case: OracleCase, seed: int = 0) -> Any:
    """Return the model with random weights of which all matter: gains away from 1, biases away from 0."""
    import torch

    model = untrained(case)
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad or name.endswith("position_embeddings"):  # those of ViT MAE are fixed, at first 0
            parameter.data = _random(name, parameter, generator, case)
    return model.eval()


def _random(name: str, parameter: Any, generator: Any, case: OracleCase) -> Any:
    import torch

    noise = torch.randn(parameter.shape, generator=generator)
    if parameter.ndim >= 2 and "norm" not in name:
        embeds = "embed" in name or name.endswith(("wte.weight", "wpe.weight", "shared.weight", "w.weight"))
        return noise * (0.7 if embeds else parameter.shape[-1] ** -0.5 * 1.4)
    gain = "norm" in name.lower() or ".ln_" in name or "lambda" in name
    if gain and name.endswith(("weight", "gamma", "lambda1")):
        return 0.3 * noise + (0 if case.type.startswith("gemma") and "vision" not in name else 1)
    return 0.3 * noise


@dataclass
class Trace:
    """What modules were given and gave back, in order of their calls, and the attention that the model reports."""

    given: dict[str, list[Array]] = field(default_factory=dict)
    returned: dict[str, list[Array]] = field(default_factory=dict)
    attention: list[Array] = field(default_factory=list)


def inputs_of(case: OracleCase, model: Any, *, constant: bool) -> dict[str, Any]:
    """Return inputs: random ones, or such that every position holds the same."""
    import torch

    generator = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> Any:
        return torch.zeros(shape) if constant else torch.randn(shape, generator=generator)

    ids = torch.randint(5, 50, (1, TOKENS), generator=generator)
    if constant:
        ids = torch.full_like(ids, 7)
    if case.type == "whisper":
        return {"input_features": drawn(1, 8, 40), "decoder_input_ids": ids}
    if case.type in PAIRS:
        return {"input_ids": ids, "decoder_input_ids": ids}
    image = {"pixel_values": drawn(1, 16, 48) if case.type.startswith("siglip2") else drawn(1, 3, 16, 16)}
    if case.type.startswith("siglip2"):  # is given the pixels of 4 x 4 patches, and which of them are there
        image |= {
            "pixel_attention_mask": torch.ones(1, 16, dtype=torch.long),
            "spatial_shapes": torch.tensor([[4, 4]]),
        }
    if case.type.startswith(("vit", "deit", "dinov2")) or case.type.endswith("vision_model"):
        return image | ({"noise": torch.arange(16.0)[None]} if case.type == "vit_mae" else {})
    return {"input_ids": ids} | (image if case.type in ("clip", "siglip", "siglip2") else {})


def run(case: OracleCase, model: Any, *, constant: bool) -> Trace:
    import torch

    trace = Trace()

    def record(name: str, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        given = args[0] if args else kwargs.get("hidden_states")
        result = output[0] if isinstance(output, tuple | list) else output
        if torch.is_tensor(given) and torch.is_tensor(result):
            trace.given.setdefault(name, []).append(_rows(given))
            trace.returned.setdefault(name, []).append(_rows(result))

    handles = [
        module.register_forward_hook(partial(record, name), with_kwargs=True)
        for name, module in model.named_modules()
    ]
    with torch.no_grad():
        output = model(**inputs_of(case, model, constant=constant), output_attentions=case.eager)
    for handle in handles:
        handle.remove()
    if case.eager:
        trace.attention = [weights[0].double().numpy() for weights in _attentions(case, output)]
    return trace


def _rows(tensor: Any) -> Array:
    """Return what a module saw of the one sequence: (n, channels) where it is that."""
    array = tensor.detach().double().numpy()
    return array[0] if array.ndim == 3 else array


def _attentions(case: OracleCase, output: Any) -> Sequence[Any]:
    of_stack = {half: f"{half}_attentions" for half in ("encoder", "decoder")}
    of_stack |= {half: f"{half}_model_output.attentions" for half in ("text", "vision")}
    return attrgetter(of_stack.get(case.stack, "attentions"))(output)
