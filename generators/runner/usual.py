"""Models that transformers builds in ways of their own, put into the form in which the runner follows all others.

What they compute stays the same.
"""

import copy
from typing import Any

import torch
from torch.nn import ModuleList, Parameter, Sequential

from generators.runner import modules

LONG = "longrope"
SILENCE = -1.5  # what Whisper's own preprocessing makes of it: (log10(1e-10) + 4) / 4 in every band


def hearing_silence(pair: Any) -> Any:
    """Return Whisper's decoder as a model of its own that hears 30 seconds of silence."""
    from transformers import WhisperForCausalLM

    config = pair.config
    with torch.no_grad():
        sound = torch.full((1, config.num_mel_bins, 2 * config.max_source_positions), SILENCE)
        heard = pair.model.encoder(sound).last_hidden_state

    def hear(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ids = kwargs["input_ids"]
        return args, {**kwargs, "encoder_hidden_states": heard.to(ids.device).expand(len(ids), -1, -1)}

    with torch.device("meta"):
        alone = WhisperForCausalLM(config)
    alone.model.decoder, alone.proj_out = pair.model.decoder, pair.proj_out
    alone.model.decoder.register_forward_pre_hook(hear, with_kwargs=True)
    return alone


def in_usual_form(model: Any) -> None:
    _end_in_the_stream(model)
    _return_tuples(model)
    _give_each_layer_a_block(model)
    _make_long_rotations(model)


def _end_in_the_stream(model: Any) -> None:
    """Make what comes after the stream a part of the head.

    OPT-350m multiplies its last hidden states by `project_out`: they are 512 wide then, and 1,024 everywhere before.
    """
    if model.config.model_type != "opt":
        return
    ending = next(part for part in model.modules() if hasattr(part, "project_out"))
    projection, ending.project_out = ending.project_out, None
    head = model.get_output_embeddings()
    if projection is not None and head is not None:
        model.set_output_embeddings(Sequential(projection, head))


def _return_tuples(model: Any) -> None:
    """Have blocks return what is beside the stream in a tuple: those of GPT return a list."""
    if model.config.model_type == "openai-gpt":
        for block in modules.find_blocks(model, model.config.n_layer):
            block.register_forward_hook(lambda _, args, output: tuple(output))


def _give_each_layer_a_block(model: Any) -> None:
    """Have every layer of ALBERT call a block of its own on the weights that all share.

    Each use of the one block can then be followed and changed by itself.
    """
    if model.config.model_type != "albert":
        return
    (shared,) = model.base_model.encoder.albert_layer_groups
    numbers = list(shared.parameters())

    def block() -> Any:
        return copy.deepcopy(shared, {id(each): Parameter(each.data, requires_grad=False) for each in numbers})

    count = model.config.num_hidden_groups = model.config.num_hidden_layers
    model.base_model.encoder.albert_layer_groups = ModuleList(block() for _ in range(count))


def _make_long_rotations(model: Any) -> None:
    """Have frequencies for long texts (LongRoPE) made now.

    transformers makes them when the model is first run; in inference mode, they could not be changed later.
    """
    for rotation in modules.find_rotations(model):
        kinds = getattr(rotation, "rope_type", None)  # one for all, or one per layer type
        for layer, kind in kinds.items() if isinstance(kinds, dict) else [(None, kinds)]:
            if kind == LONG:
                first = torch.zeros((1, 1), dtype=torch.int64, device=model.device)
                rotation(first.float(), first, *([] if layer is None else [layer]))
