"""config.json: its settings by dotted keys, with what its software takes where the file is silent."""

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from generators.base.errors import InputError

T = TypeVar("T")
CONFIG = "config.json"
WEIGHTS, PICKLED = "model.safetensors", "pytorch_model.bin"  # unsharded weight files next to config.json
LARGEST_SIZE = 10_000_000  # no width or vocabulary is larger; a config that says so is damaged
MOST_LAYERS = 10_000  # every role of every layer is looked up: with more, a damaged config would take minutes

# ModelConfig whose names say that they may change how positions are read or scores are scaled.
DECIDING = re.compile(
    r"position|rope|rotary|alibi|relative|scal|multiplier|softcap|window|sink|causal|is_decoder|"
    r"bidirectional|qk_|clip_qkv|norm_before|norm_after|post_?layer|parallel|attention_types|layer_types"
)
# ... and those of them that can't, in any family: training, initial values, other stacks, how fast.
HARMLESS = (
    *("initializer_factor", "logit_scale_init_value", "layer_scale_init_value", "max_window_layers"),
    *("max_position_embeddings", "original_max_position_embeddings", "n_positions", "position_ids"),
    *("pretraining_tp", "scale_attention_softmax_in_fp32", "reorder_and_upcast_attn", "is_encoder_decoder"),
)

# Settings that change no tensor's meaning in any family: training, tokens, outputs, how text is generated, sizes that
# tensors have.
CHANGES_NOTHING = re.compile(
    r"dropout|pdrop|layerdrop|_drop$|initializer|init_std|^_|dtype|use_cache|^output_|return_dict|architectures|"
    r"transformers_version|auto_map|label|task_specific|finetuning_task|problem_type|chunk_size_feed_forward|"
    r"_token_ids?$|^vocab|^summary_|_loss|loss_coef|tokenizer|attn_implementation|gradient_checkpointing|^tie_|"
    r"intermediate_size$|ffn_dim$|^ffn_hidden_size$|type_vocab_size|num_logits_to_keep|classifier_|softmax_in_fp32$|"
    r"_penalty$|^(model_type|n_inner|d_ff|dff|hidden_act|hidden_activation|activation_function|activation|act_fn|afn|"
    r"act|num_local_experts|num_experts|num_experts_per_tok|norm_topk_prob|pruned_heads|add_cross_attention|n_ctx|"
    r"max_position_embeddings|use_bfloat16|torchscript|quantization_config|n_special|predict_special_tokens|"
    r"directionality|pooler_\w+|min_length|max_length|num_beams|num_beam_groups|no_repeat_ngram_size|early_stopping|"
    r"num_return_sequences|temperature|top_k|top_p|do_sample|typical_p|bad_words_ids|prefix)$"
)


def parse_object(content: bytes, place: str) -> dict[str, Any]:
    try:
        parsed = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{place} can't be read: {error}.") from error
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, or a number of thousands of digits
        raise InputError(f"{place} isn't valid JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise InputError(f"{place} must hold a JSON object, not {type(parsed).__name__}.")
    return parsed


SILENT = object()  # a file that says null says something


class ModelConfig:
    """The settings of one model in config.json, and a record of which were read.

    `at` is the dotted key that they are under (`text_config`), empty at the top. `defaults` are what the model's
    own software takes where the file is silent. `second_names`: a key -> what older files call it.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        at: str = "",
        defaults: Mapping[str, Any] = MappingProxyType({}),
        second_names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        inner = _at(config, at) if at else config
        self._settings: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
        self._defaults = defaults
        self._second_names = second_names
        self._asked: set[str] = set()
        self.read: dict[str, Any] = {}  # key -> what was taken

    def get(self, key: str) -> Any:
        """Return a setting by its dotted key; its default or None if the file lacks it."""
        self._asked.add(key.split(".")[0])
        value = _at(self._settings, key)
        if value is SILENT and key in self._second_names:
            value = _at(self._settings, self._second_names[key])
        self.read[key] = self._defaults.get(key) if value is SILENT else value
        return self.read[key]

    def size(self, key: str, largest: int = LARGEST_SIZE) -> int:
        """Return a setting that is a whole number above 0. Raises InputError: it isn't."""
        value = self.get(key)
        if not is_number(value, int) or not 0 < value <= largest:
            raise InputError(f"config.json gives {value!r} as {key}, not a whole number from 1 to {largest}.")
        return value

    def number(self, key: str, at_most: float = 1e12) -> float:
        """Return a setting that is a number, 0 or more. Raises InputError: it isn't."""
        value = self.get(key)
        if not is_number(value) or not 0 <= value < at_most:
            kind = "a small number" if at_most <= 1 else "a number that can be"
            raise InputError(f"config.json gives {value!r} as {key}, not {kind}.")
        return float(value)

    def optional(self, read: Callable[[str], T], key: str) -> T | None:
        """Return what `read`, such as `size`, makes of a setting; None where nothing says it."""
        return None if self.get(key) is None else read(key)

    def flag(self, key: str) -> bool:
        """Return a switch, off where nothing says it. Raises InputError: it is neither true nor false."""
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            raise InputError(f"config.json gives {value!r} as {key}, neither true nor false.")
        return bool(value)

    def one_of(self, key: str, known: Mapping[Any, Any] | tuple[Any, ...]) -> Any:
        """Return a setting that must be one of `known`, else raise InputError."""
        value = self.get(key)
        if value not in tuple(known):
            words = ", ".join(repr(word) for word in known)
            raise InputError(f"config.json gives {value!r} as {key}; the atlas knows {words}.")
        return value

    def must_be(self, key: str, *known: Any) -> None:
        self.one_of(key, known)

    def ignore(self, *keys: str) -> None:
        """Mark settings as known to have no effect on the table."""
        self._asked.update(keys)

    def refuse_silence(self, family: str) -> None:
        """Raise InputError if the file lacks a number for which the family's own software has a default."""
        for key in sorted(self._asked & self._defaults.keys()):
            number = isinstance(self._defaults[key], int | float) and not isinstance(self._defaults[key], bool)
            places = (key, self._second_names.get(key, key), f"rope_parameters.{key}", f"rope_scaling.{key}")
            if number and all(_at(self._settings, place) is SILENT for place in places):
                raise InputError(
                    f"config.json gives no {key}. Models of the family {family!r} then have {self._defaults[key]!r}; "
                    "that can't be assumed for a model of another type, so it is not read."
                )

    def refuse_unread(self, family: str, *, strictly: bool = False) -> None:
        """Refuse switches that nothing read, though they may change how positions are read or scores scaled.

        `strictly`: any other setting may, too, unless it is known to change nothing.
        """
        for key, value in self._settings.items():
            off = value is None or value is False or value == "" or value == [] or value == {}
            if off or key in self._asked or key in HARMLESS:
                continue
            if not DECIDING.search(key) and not (strictly and not CHANGES_NOTHING.search(key)):
                continue
            raise InputError(
                f"config.json sets {key} to {_short(value)}, which the table of the family {family!r} does not know; "
                "it may change how positions are read or attention is scaled, so the model is not read."
            )


def is_number(value: Any, *kinds: type) -> bool:
    return isinstance(value, kinds or (int, float)) and not isinstance(value, bool)


def _at(settings: Mapping[str, Any], key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = value.get(part, SILENT) if isinstance(value, Mapping) else SILENT
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
