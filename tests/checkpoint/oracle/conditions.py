"""Models as people have them, beside what transformers opens; part of `make oracle`, writes results/conditions.json.

A small model of each of twelve families is written in many conditions: wrapped, sharded, with what an older save left
behind, tied under one name, with adapters, layers or tensors too many, without a type, with tokenizers of all kinds.
Either every tensor is that of the model which transformers opens (or, where it opens none, of the one that was
written), or the atlas refuses with the words that name the condition. So are tokens by id, or they have no names.
"""

import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources import in_folder
from tests.checkpoint.oracle.__main__ import _versions
from tests.checkpoint.oracle.cases import CASES
from tests.checkpoint.oracle.model import build
from tests.checkpoint.oracle.tokenizers import TOKENIZERS, outcome_of_tokens
from tests.nulls import write_record

Array = np.ndarray
RESULTS = Path(__file__).parents[3] / "results" / "conditions.json"
TOLERANCE = 2e-6  # of a tensor's largest number: what transformers writes anew has the same bits
FAMILIES = (
    *("gpt2", "gpt_neo", "gpt_neox", "llama", "qwen2", "gemma2"),
    *("phi", "opt", "bloom", "bert", "roberta", "albert"),
)
NO_FAMILY = "model_type"  # what a sentence on a type that isn't certain speaks of
BLOCK = re.compile(r"^(.*?\.)(\d+)\.")


@dataclass(frozen=True)
class Built:
    """A model of one family, and another one of the same shapes; `tensors` as its file names them, tied ones once."""

    model: Any
    other: Any
    tensors: Mapping[str, Any]
    roles: Mapping[str, Array]


Step = Callable[[Built, Path], None]


@dataclass(frozen=True)
class Condition:
    """One way in which a model may lie in a folder.

    Args:
        steps: what is written, one after another.
        refused: words of the refusal; empty where the model must be read.
        said: words of a notice or a note.
        opens: transformers opens the folder, and what it opens is compared; else what was written is.
        part: only what is there is compared.
        without: endings of roles that are not measured.
    """

    name: str
    steps: Sequence[Step]
    refused: str = ""
    said: str = ""
    opens: bool = False
    part: bool = False
    without: tuple[str, ...] = ()


# Tensors in one file


def stored(tensors: Callable[[Built], Mapping[str, Any]] = attrgetter("tensors")) -> Step:
    def write(built: Built, folder: Path) -> None:
        from safetensors.torch import save_file

        built.model.config.save_pretrained(folder)
        found = {name: tensor.contiguous().clone() for name, tensor in tensors(built).items()}
        save_file(found, folder / "model.safetensors", metadata={"format": "pt"})

    return write


def renamed(*changes: tuple[str | re.Pattern[str], str]) -> Step:
    def name(tensor: str) -> str:
        for pattern, by in changes:
            tensor = re.sub(pattern, by, tensor)
        return tensor

    return stored(lambda built: {name(tensor): t for tensor, t in built.tensors.items()})


def prefixed(prefix: str) -> Step:
    return renamed(("^", prefix))


def inside(word: str, outside: str = "") -> Step:
    return renamed((BLOCK, rf"\1\2.{word}"), ("^", outside))


def with_adapter(*suffixes: str) -> Step:
    def adapted(built: Built) -> dict[str, Any]:
        import torch

        inner = next(name for name in built.tensors if BLOCK.match(name) and name.endswith(".weight"))
        return built.tensors | {inner.removesuffix("weight") + suffix: torch.randn(4, 4) for suffix in suffixes}

    return stored(adapted)


def one_layer_more(built: Built) -> dict[str, Any]:
    """Return a layer beyond those of config.json, too, as models have that predict several tokens."""
    blocks = {name: found for name in built.tensors if (found := BLOCK.match(name))}
    last = max(int(found[2]) for found in blocks.values())
    more = {name: found for name, found in blocks.items() if int(found[2]) == last}
    return built.tensors | {f"{f[1]}{last + 1}.{name[f.end() :]}": built.tensors[name] for name, f in more.items()}


def norm_of_its_own(built: Built) -> dict[str, Any]:
    import torch

    begins = sorted({found[0] for name in built.tensors if (found := BLOCK.match(name))})
    return built.tensors | {f"{begin}inner_sub_ln.weight": 1 + torch.randn(8) for begin in begins}


# Other files


def saved(kind: str = "model", **how: Any) -> Step:
    return lambda built, folder: getattr(built, kind).save_pretrained(folder, **how)


def without(pattern: str, part: slice = slice(None)) -> Step:
    def remove(built: Built, folder: Path) -> None:
        for path in sorted(folder.glob(pattern))[part]:
            path.unlink()

    return remove


def pickled(built: Built, folder: Path) -> None:
    import torch

    torch.save(built.tensors, folder / "pytorch_model.bin")


def older_pickle(built: Built, folder: Path) -> None:
    import torch

    torch.save(built.other.state_dict(), folder / "pytorch_model.bin")


def by_save_model(built: Built, folder: Path) -> None:
    from safetensors.torch import save_model

    built.model.config.save_pretrained(folder)
    save_model(built.model, str(folder / "model.safetensors"))


def adapter(built: Built, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({"base_model.model.x.lora_A.weight": torch.randn(4, 4)}, folder / "adapter_model.safetensors")
    said = {"peft_type": "LORA", "base_model_name_or_path": "someone/base"}
    (folder / "adapter_config.json").write_text(json.dumps(said), "utf-8")


def saying(**changed: Any) -> Step:
    return lambda built, folder: change_config(folder, **changed)


def change_config(folder: Path, **changed: Any) -> None:
    """Change settings of config.json; None leaves one out."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text("utf-8")), **changed}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}), "utf-8")


MINE = {"architectures": ["MineForCausalLM"]}
SHARDS = saved(max_shard_size="20KB")
OVER_AN_INDEX = (saved("other", max_shard_size="20KB"), stored())
CONDITIONS = (
    Condition("as it is saved", [saved()], opens=True),
    Condition("in shards", [SHARDS], opens=True),
    Condition("torch.compile", [prefixed("_orig_mod.")], said="_orig_mod"),
    Condition("torch.compile in every block", [inside("_orig_mod.")], said="_orig_mod"),
    Condition("checkpointing in every block", [inside("_checkpoint_wrapped_module.")], said="activation"),
    Condition("FSDP", [inside("_fsdp_wrapped_module.", "_fsdp_wrapped_module.")], said="FSDP"),
    Condition("Lightning's strategy", [prefixed("_forward_module.model.")], said="Lightning"),
    Condition("Opacus", [prefixed("_module.")], said="Opacus"),
    Condition("DataParallel", [prefixed("module.")], said="DataParallel"),
    Condition("a module that holds it", [prefixed("model.")], said="holds it"),
    Condition("DataParallel of a module that holds it", [prefixed("module.model.")], said="DataParallel"),
    Condition("PEFT, merged", [prefixed("base_model.model.")], said="PEFT"),
    Condition("TRL's policy", [prefixed("policy.")], said="TRL"),
    Condition("TRL's value head", [prefixed("pretrained_model.")], said="TRL"),
    Condition("over an older index", OVER_AN_INDEX, opens=True, said="as transformers does"),
    Condition("beside an index alone", [*OVER_AN_INDEX, without("model-*")], opens=True, said="as transformers does"),
    Condition("a pickle", [saved(), without("*.safetensors"), pickled], opens=True),
    Condition("beside an older pickle", [saved(), older_pickle], opens=True),
    Condition("its first shard", [SHARDS, without("model-*", slice(1, None))], part=True, said="shards"),
    Condition("all shards but the last", [SHARDS, without("model-*", slice(-1, None))], part=True, said="shards"),
    Condition("tied, saved by save_model", [by_save_model], opens=True),
    Condition("tied, stored twice", [stored(lambda built: built.model.state_dict())], opens=True),
    Condition("LoRA of peft", [with_adapter("lora_A.weight", "lora_B.weight")], refused="LoRA"),
    Condition(
        "LoRA of peft, named", [with_adapter("lora_A.default.weight", "lora_B.default.weight")], refused="LoRA"
    ),
    Condition("LoRA of loralib", [with_adapter("lora_A", "lora_B")], refused="LoRA"),
    Condition("LoRA as a module", [with_adapter("lora.down.weight", "lora.up.weight")], refused="LoRA"),
    Condition("LoRA of kohya", [with_adapter("lora_down.weight", "lora_up.weight", "alpha")], refused="LoRA"),
    Condition("DoRA", [with_adapter("lora_magnitude_vector")], refused="LoRA"),
    Condition("IA3", [with_adapter("ia3_l")], refused="adapter"),
    Condition("LoHa", [with_adapter("hada_w1_a", "hada_w1_b")], refused="adapter"),
    Condition("LoKr", [with_adapter("lokr_w1", "lokr_w2")], refused="adapter"),
    Condition("OFT", [with_adapter("oft_r")], refused="adapter"),
    Condition("prompts", [with_adapter("prompt_embeddings")], refused="adapter"),
    Condition("layers around layers", [renamed((r"\.(weight|bias)$", r".base_layer.\1"))], refused="adapter"),
    Condition("beside an adapter", [saved(), adapter], refused="beside the weights of its base"),
    Condition("an adapter alone", [adapter], refused="a LoRA adapter alone"),
    Condition("one layer more", [stored(one_layer_more)], said="in the file are"),
    Condition("norms that it has not", [stored(norm_of_its_own)], opens=True, said="not used by this architecture"),
    Condition("scales that it has not", [with_adapter("scales")], opens=True, said="not used by this architecture"),
    Condition(
        "another class with norms of its own",
        [stored(norm_of_its_own), saying(**MINE, auto_map={"AutoModel": "modeling_mine.MineForCausalLM"})],
        refused="names the class MineForCausalLM",
    ),
    Condition("another class", [stored(), saying(**MINE)], said="names the class MineForCausalLM"),
    Condition("no type, a class", [stored(), saying(model_type=None)], said="has no model_type"),
    Condition("no type, no class", [stored(), saying(model_type=None, architectures=None)], refused=NO_FAMILY),
    Condition(
        "quantized by AWQ",
        [stored(), saying(quantization_config={"quant_method": "awq", "bits": 4})],
        without=("ln1.gain", "ln2.gain"),
    ),
)


# Comparing


def roles_in(folder: Path) -> dict[str, Array]:
    opened = open_checkpoint(in_folder(folder))
    return {role: opened[role].copy() for role in opened}


@cache
def built_for(family: str) -> Built:
    from safetensors.torch import load_file

    case = next(case for case in CASES if case.family == family and not case.note)
    model, other = build(case), build(case, seed=1)
    with tempfile.TemporaryDirectory() as name:
        model.save_pretrained(name)
        return Built(model, other, load_file(Path(name) / "model.safetensors"), roles_in(Path(name)))


def as_transformers_opens_it(built: Built, folder: Path) -> dict[str, Array]:
    """Return the roles of the model that transformers opens, by way of a copy that it saves."""
    opened = type(built.model).from_pretrained(folder)
    with tempfile.TemporaryDirectory() as name:
        opened.save_pretrained(name)
        return roles_in(Path(name))


def outcome(family: str, condition: Condition) -> str:
    """Return "same", "refused" or what is wrong."""
    built, heard = built_for(family), list[str]()
    notices.forget()
    with tempfile.TemporaryDirectory() as name, notices.heard_by(heard.append):
        folder = Path(name) / "model"
        folder.mkdir()
        for step in condition.steps:
            step(built, folder)
        try:
            opened = open_checkpoint(in_folder(folder))
            found = {role: opened[role].copy() for role in opened}
        except InputError as error:
            return "refused" if condition.refused and condition.refused in str(error) else f"refused: {error}"
        if condition.refused and condition.refused != NO_FAMILY:
            return "read, and had to be refused"
        wanted = as_transformers_opens_it(built, folder) if condition.opens else built.roles
    heard.append(opened.note or "")
    if condition.said and not any(condition.said in sentence for sentence in heard):
        return f"not said: {condition.said}"
    return _difference(condition, found, wanted) or "same"


def _difference(condition: Condition, found: Mapping[str, Array], wanted: Mapping[str, Array]) -> str:
    gone = {role for role in wanted if role.endswith(condition.without)} if condition.without else set()
    missing = wanted.keys() - found.keys() - gone
    if (missing and not condition.part) or found.keys() & gone or not found:
        return f"other roles: {sorted(missing | (found.keys() & gone))[:3]}"
    for role, tensor in found.items():
        off = np.abs(tensor - wanted[role]).max() if tensor.shape == wanted[role].shape else np.inf
        if not off <= TOLERANCE * max(np.abs(wanted[role]).max(), 1e-6):
            return f"silently different: {role}"
    return ""


def combinations() -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Yield family, condition, and what says how the two come out."""
    for family in FAMILIES:
        for condition in CONDITIONS:
            yield family, condition.name, lambda f=family, c=condition: outcome(f, c)  # type: ignore[misc]
        for kind in TOKENIZERS:
            yield family, kind, lambda f=family, k=kind: outcome_of_tokens(built_for(f).model.config, k)  # type: ignore[misc]


RIGHT = ("same", "refused", "no names")


def main() -> int:
    import transformers

    transformers.utils.logging.disable_progress_bar()
    by_condition: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for family, condition, ask in combinations():
        found = ask()
        by_condition[condition][found if found in RIGHT else "wrong"] += 1
        if found not in RIGHT:
            print(f"{family}, {condition}: {found}", file=sys.stderr)
    counts = sum(by_condition.values(), Counter())
    head = {**_versions(), "tolerance": TOLERANCE, "families": FAMILIES}
    write_record(RESULTS, {**head, "counts": counts, "conditions": by_condition})
    print(f"{counts.total()} combinations: {dict(counts)}", file=sys.stderr)
    return int("wrong" in counts)


if __name__ == "__main__":
    sys.exit(main())
