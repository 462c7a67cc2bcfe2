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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources import in_folder
from tests.checkpoint.oracle.cases import CASES, OracleCase
from tests.checkpoint.oracle.model import build
from tests.checkpoint.oracle.tokenizers import TOKENIZERS, outcome_of_tokens

Array = np.ndarray
RESULTS = Path(__file__).parents[3] / "results" / "conditions.json"
TOLERANCE = 2e-6  # of a tensor's largest number: what transformers writes anew has the same bits
FAMILIES = (
    *("gpt2", "gpt_neo", "gpt_neox", "llama", "qwen2", "gemma2"),
    *("phi", "opt", "bloom", "bert", "roberta", "albert"),
)
BLOCK = re.compile(r"^(.*?\.)(\d+)\.")
NO_FAMILY = "model_type"  # what a sentence on a type that isn't certain speaks of


@dataclass
class Built:
    """A model of one family, and another one of the same shapes."""

    case: OracleCase

    @cached_property
    def model(self) -> Any:
        return build(self.case)

    @cached_property
    def other(self) -> Any:
        return build(self.case, seed=1)

    @property
    def tensors(self) -> dict[str, Any]:
        """Return the tensors as the model's file names them, those that are tied once."""
        with tempfile.TemporaryDirectory() as name:
            self.model.save_pretrained(name)
            return read(Path(name))

    @cached_property
    def roles(self) -> dict[str, Array]:
        with tempfile.TemporaryDirectory() as name:
            self.model.save_pretrained(name)
            return roles_in(Path(name))


@dataclass(frozen=True)
class Condition:
    """One way in which a model may lie in a folder.

    Args:
        write: writes it.
        refused: words of the refusal; empty where the model must be read.
        said: words of a notice or a note.
        opens: transformers opens the folder, and what it opens is compared; else what was written is.
        part: only what is there is compared.
        without: endings of roles that are not measured.
    """

    name: str
    write: Callable[[Built, Path], None]
    refused: str = ""
    said: str = ""
    opens: bool = False
    part: bool = False
    without: tuple[str, ...] = ()


def read(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return {name: t for path in sorted(folder.glob("*.safetensors")) for name, t in load_file(path).items()}


def write(folder: Path, built: Built, tensors: Mapping[str, Any], **config: Any) -> None:
    from safetensors.torch import save_file

    built.model.config.save_pretrained(folder)
    if config:
        change_config(folder, **config)
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder: Path, **changed: Any) -> None:
    path = folder / "config.json"
    config = {**json.loads(path.read_text("utf-8")), **changed}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}), "utf-8")


# Names


def prefixed(prefix: str) -> Callable[[Built, Path], None]:
    return lambda built, folder: write(folder, built, {prefix + name: t for name, t in built.tensors.items()})


def inside(word: str, outside: str = "") -> Callable[[Built, Path], None]:
    def write_it(built: Built, folder: Path) -> None:
        named = {outside + BLOCK.sub(rf"\1\2.{word}", name): t for name, t in built.tensors.items()}
        write(folder, built, named)

    return write_it


# Files


def whole(built: Built, folder: Path) -> None:
    built.model.save_pretrained(folder)


def sharded(built: Built, folder: Path) -> None:
    built.model.save_pretrained(folder, max_shard_size="20KB")


def over_an_index(built: Built, folder: Path) -> None:
    built.other.save_pretrained(folder, max_shard_size="20KB")
    write(folder, built, built.tensors)


def beside_an_index_alone(built: Built, folder: Path) -> None:
    over_an_index(built, folder)
    for path in folder.glob("model-*"):
        path.unlink()


def pickled(built: Built, folder: Path) -> None:
    import torch

    built.model.config.save_pretrained(folder)
    torch.save(built.tensors, folder / "pytorch_model.bin")


def beside_an_older_pickle(built: Built, folder: Path) -> None:
    import torch

    built.model.save_pretrained(folder)
    torch.save(built.other.state_dict(), folder / "pytorch_model.bin")


def first_shard(built: Built, folder: Path) -> None:
    sharded(built, folder)
    for path in sorted(folder.glob("model-*"))[1:]:
        path.unlink()


def last_shard_gone(built: Built, folder: Path) -> None:
    sharded(built, folder)
    sorted(folder.glob("model-*"))[-1].unlink()


# Ties


def by_save_model(built: Built, folder: Path) -> None:
    from safetensors.torch import save_model

    built.model.config.save_pretrained(folder)
    save_model(built.model, str(folder / "model.safetensors"))


def stored_twice(built: Built, folder: Path) -> None:
    """Write all that the model's state has, tied matrices under each of their names."""
    write(folder, built, built.model.state_dict())


# Adapters


def with_adapter(*suffixes: str) -> Callable[[Built, Path], None]:
    def write_it(built: Built, folder: Path) -> None:
        import torch

        tensors = built.tensors
        inner = next(name for name in tensors if BLOCK.match(name) and name.endswith(".weight"))
        more = {inner.removesuffix("weight") + suffix: torch.randn(4, 4) for suffix in suffixes}
        write(folder, built, {**tensors, **more})

    return write_it


def beside_an_adapter(built: Built, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    built.model.save_pretrained(folder)
    save_file({"base_model.model.x.lora_A.weight": torch.randn(4, 4)}, folder / "adapter_model.safetensors")
    said = {"peft_type": "LORA", "base_model_name_or_path": "someone/base"}
    (folder / "adapter_config.json").write_text(json.dumps(said), "utf-8")


def adapter_alone(built: Built, folder: Path) -> None:
    beside_an_adapter(built, folder)
    (folder / "model.safetensors").unlink()
    (folder / "config.json").unlink()


def base_layers(built: Built, folder: Path) -> None:
    named = {re.sub(r"\.(weight|bias)$", r".base_layer.\1", name): t for name, t in built.tensors.items()}
    write(folder, built, named)


# Too many, too few, unknown


def one_layer_more(built: Built, folder: Path) -> None:
    """Write a layer beyond those of config.json, as models have that predict several tokens."""
    tensors = built.tensors
    layers = max(int(found[2]) for name in tensors if (found := BLOCK.match(name)))
    last = {name: found for name in tensors if (found := BLOCK.match(name)) and int(found[2]) == layers}
    more = {f"{found[1]}{layers + 1}.{name[found.end() :]}": tensors[name] for name, found in last.items()}
    write(folder, built, {**tensors, **more})


def norm_of_its_own(**config: Any) -> Callable[[Built, Path], None]:
    def write_it(built: Built, folder: Path) -> None:
        import torch

        tensors = built.tensors
        begins = sorted({found[0] for name in tensors if (found := BLOCK.match(name))})
        more = {f"{begin}inner_sub_ln.weight": 1 + torch.randn(8) for begin in begins}
        write(folder, built, {**tensors, **more}, **config)

    return write_it


def without_type(**config: Any) -> Callable[[Built, Path], None]:
    return lambda built, folder: write(folder, built, built.tensors, model_type=None, **config)


def other_class(built: Built, folder: Path) -> None:
    write(folder, built, built.tensors, architectures=["MineForCausalLM"])


def quantized_by_awq(built: Built, folder: Path) -> None:
    write(folder, built, built.tensors, quantization_config={"quant_method": "awq", "bits": 4})


CONDITIONS = (
    Condition("as it is saved", whole, opens=True),
    Condition("in shards", sharded, opens=True),
    Condition("torch.compile", prefixed("_orig_mod."), said="_orig_mod"),
    Condition("torch.compile in every block", inside("_orig_mod."), said="_orig_mod"),
    Condition("checkpointing in every block", inside("_checkpoint_wrapped_module."), said="activation"),
    Condition("FSDP", inside("_fsdp_wrapped_module.", "_fsdp_wrapped_module."), said="FSDP"),
    Condition("Lightning's strategy", prefixed("_forward_module.model."), said="Lightning"),
    Condition("Opacus", prefixed("_module."), said="Opacus"),
    Condition("DataParallel", prefixed("module."), said="DataParallel"),
    Condition("a module that holds it", prefixed("model."), said="holds it"),
    Condition("DataParallel of a module that holds it", prefixed("module.model."), said="DataParallel"),
    Condition("PEFT, merged", prefixed("base_model.model."), said="PEFT"),
    Condition("TRL's policy", prefixed("policy."), said="TRL"),
    Condition("TRL's value head", prefixed("pretrained_model."), said="TRL"),
    Condition("over an older index", over_an_index, opens=True, said="as transformers does"),
    Condition("beside an index alone", beside_an_index_alone, opens=True, said="as transformers does"),
    Condition("a pickle", pickled, opens=True),
    Condition("beside an older pickle", beside_an_older_pickle, opens=True),
    Condition("its first shard", first_shard, part=True, said="shards"),
    Condition("all shards but the last", last_shard_gone, part=True, said="shards"),
    Condition("tied, saved by save_model", by_save_model, opens=True),
    Condition("tied, stored twice", stored_twice, opens=True),
    Condition("LoRA of peft", with_adapter("lora_A.weight", "lora_B.weight"), refused="LoRA"),
    Condition("LoRA of peft, named", with_adapter("lora_A.default.weight", "lora_B.default.weight"), refused="LoRA"),
    Condition("LoRA of loralib", with_adapter("lora_A", "lora_B"), refused="LoRA"),
    Condition("LoRA as a module", with_adapter("lora.down.weight", "lora.up.weight"), refused="LoRA"),
    Condition("LoRA of kohya", with_adapter("lora_down.weight", "lora_up.weight", "alpha"), refused="LoRA"),
    Condition("DoRA", with_adapter("lora_magnitude_vector"), refused="LoRA"),
    Condition("IA3", with_adapter("ia3_l"), refused="adapter"),
    Condition("LoHa", with_adapter("hada_w1_a", "hada_w1_b"), refused="adapter"),
    Condition("LoKr", with_adapter("lokr_w1", "lokr_w2"), refused="adapter"),
    Condition("OFT", with_adapter("oft_r"), refused="adapter"),
    Condition("prompts", with_adapter("prompt_embeddings"), refused="adapter"),
    Condition("layers around layers", base_layers, refused="adapter"),
    Condition("beside an adapter", beside_an_adapter, refused="beside the weights of its base"),
    Condition("an adapter alone", adapter_alone, refused="a LoRA adapter alone"),
    Condition("one layer more", one_layer_more, said="in the file are"),
    Condition("norms that it has not", norm_of_its_own(), opens=True, said="not used by this architecture"),
    Condition("scales that it has not", with_adapter("scales"), opens=True, said="not used by this architecture"),
    Condition(
        "another class with norms of its own",
        norm_of_its_own(architectures=["MineForCausalLM"], auto_map={"AutoModel": "modeling_mine.MineForCausalLM"}),
        refused="names the class MineForCausalLM",
    ),
    Condition("another class", other_class, said="names the class MineForCausalLM"),
    Condition("no type, a class", without_type(), said="has no model_type"),
    Condition("no type, no class", without_type(architectures=None), refused=NO_FAMILY),
    Condition("quantized by AWQ", quantized_by_awq, without=("ln1.gain", "ln2.gain")),
)


# Comparing


def roles_in(folder: Path) -> dict[str, Array]:
    opened = open_checkpoint(in_folder(folder))
    return {role: opened[role].copy() for role in opened}


@cache
def built_for(family: str) -> Built:
    return Built(next(case for case in CASES if case.family == family and not case.note))


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
        condition.write(built, folder)
        try:
            opened = open_checkpoint(in_folder(folder))
            found = {role: opened[role].copy() for role in opened}
        except InputError as error:
            return _judged_refusal(condition, str(error))
        if condition.refused and condition.refused != NO_FAMILY:
            return "read, and had to be refused"
        wanted = as_transformers_opens_it(built, folder) if condition.opens else built.roles
    heard.append(opened.note or "")
    if condition.said and not any(condition.said in sentence for sentence in heard):
        return f"not said: {condition.said}"
    return _difference(condition, found, wanted) or "same"


def _judged_refusal(condition: Condition, said: str) -> str:
    if condition.refused and condition.refused in said:
        return "refused"
    return f"refused: {said}"


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
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    counts: Counter[str] = Counter()
    by_condition: dict[str, Counter[str]] = {}
    wrong = []
    for family, condition, ask in combinations():
        found = ask()
        kind = found if found in RIGHT else "wrong"
        counts[kind] += 1
        by_condition.setdefault(condition, Counter())[kind] += 1
        if kind == "wrong":
            wrong.append(f"{family}, {condition}: {found}")
            print(wrong[-1], file=sys.stderr)
    RESULTS.write_text(
        json.dumps(
            {
                "torch": torch.__version__.split("+")[0],
                "transformers": transformers.__version__,
                "tolerance": TOLERANCE,
                "families": FAMILIES,
                "counts": counts,
                "conditions": by_condition,
            },
            indent=1,
        )
        + "\n",
        "utf-8",
    )
    print(f"{sum(counts.values())} combinations: {dict(counts)}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
