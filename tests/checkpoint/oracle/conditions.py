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
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from generators.base import notices
from generators.base.errors import InputError
from generators.checkpoint.checkpoint import open_checkpoint
from generators.checkpoint.sources import in_folder
from tests.checkpoint.oracle.__main__ import _versions
from tests.checkpoint.oracle.cases import CASES, OracleCase
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
        tensors: what its file holds.
        config: settings that differ; None leaves one out.
        files: writes it, in place of these two.
        refused: words of the refusal; empty where the model must be read.
        said: words of a notice or a note.
        opens: transformers opens the folder, and what it opens is compared; else what was written is.
        part: only what is there is compared.
        without: endings of roles that are not measured.
    """

    name: str
    tensors: Callable[[Built], Mapping[str, Any]] = attrgetter("tensors")
    config: Mapping[str, Any] = field(default_factory=dict)
    files: Callable[[Built, Path], None] | None = None
    refused: str = ""
    said: str = ""
    opens: bool = False
    part: bool = False
    without: tuple[str, ...] = ()

    def write(self, built: Built, folder: Path) -> None:
        if self.files is not None:
            self.files(built, folder)
        else:
            write(folder, built, self.tensors(built))
            if self.config:
                change_config(folder, **self.config)


def read(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return {name: t for path in sorted(folder.glob("*.safetensors")) for name, t in load_file(path).items()}


def write(folder: Path, built: Built, tensors: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file

    built.model.config.save_pretrained(folder)
    tensors = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def change_config(folder: Path, **changed: Any) -> None:
    path = folder / "config.json"
    config = {**json.loads(path.read_text("utf-8")), **changed}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}), "utf-8")


# Tensors


def prefixed(prefix: str) -> Callable[[Built], dict[str, Any]]:
    return lambda built: {prefix + name: t for name, t in built.tensors.items()}


def inside(word: str, outside: str = "") -> Callable[[Built], dict[str, Any]]:
    return lambda built: {outside + BLOCK.sub(rf"\1\2.{word}", name): t for name, t in built.tensors.items()}


def stored_twice(built: Built) -> dict[str, Any]:
    return dict(built.model.state_dict())


def with_adapter(*suffixes: str) -> Callable[[Built], dict[str, Any]]:
    def adapted(built: Built) -> dict[str, Any]:
        import torch

        tensors = built.tensors
        inner = next(name for name in tensors if BLOCK.match(name) and name.endswith(".weight"))
        return tensors | {inner.removesuffix("weight") + suffix: torch.randn(4, 4) for suffix in suffixes}

    return adapted


def base_layers(built: Built) -> dict[str, Any]:
    return {re.sub(r"\.(weight|bias)$", r".base_layer.\1", name): t for name, t in built.tensors.items()}


def one_layer_more(built: Built) -> dict[str, Any]:
    """Return a layer beyond those of config.json, too, as models have that predict several tokens."""
    tensors = built.tensors
    blocks = {name: found for name in tensors if (found := BLOCK.match(name))}
    last = max(int(found[2]) for found in blocks.values())
    more = {name: found for name, found in blocks.items() if int(found[2]) == last}
    return tensors | {f"{found[1]}{last + 1}.{name[found.end() :]}": tensors[name] for name, found in more.items()}


def norm_of_its_own(built: Built) -> dict[str, Any]:
    import torch

    tensors = built.tensors
    begins = sorted({found[0] for name in tensors if (found := BLOCK.match(name))})
    return tensors | {f"{begin}inner_sub_ln.weight": 1 + torch.randn(8) for begin in begins}


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


def shards_left(part: slice) -> Callable[[Built, Path], None]:
    def files(built: Built, folder: Path) -> None:
        sharded(built, folder)
        paths = sorted(folder.glob("model-*"))
        for path in set(paths) - set(paths[part]):
            path.unlink()

    return files


def by_save_model(built: Built, folder: Path) -> None:
    from safetensors.torch import save_model

    built.model.config.save_pretrained(folder)
    save_model(built.model, str(folder / "model.safetensors"))


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


MINE = {"architectures": ["MineForCausalLM"]}
CONDITIONS = (
    Condition("as it is saved", files=whole, opens=True),
    Condition("in shards", files=sharded, opens=True),
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
    Condition("over an older index", files=over_an_index, opens=True, said="as transformers does"),
    Condition("beside an index alone", files=beside_an_index_alone, opens=True, said="as transformers does"),
    Condition("a pickle", files=pickled, opens=True),
    Condition("beside an older pickle", files=beside_an_older_pickle, opens=True),
    Condition("its first shard", files=shards_left(slice(0, 1)), part=True, said="shards"),
    Condition("all shards but the last", files=shards_left(slice(0, -1)), part=True, said="shards"),
    Condition("tied, saved by save_model", files=by_save_model, opens=True),
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
    Condition("beside an adapter", files=beside_an_adapter, refused="beside the weights of its base"),
    Condition("an adapter alone", files=adapter_alone, refused="a LoRA adapter alone"),
    Condition("one layer more", one_layer_more, said="in the file are"),
    Condition("norms that it has not", norm_of_its_own, opens=True, said="not used by this architecture"),
    Condition("scales that it has not", with_adapter("scales"), opens=True, said="not used by this architecture"),
    Condition(
        "another class with norms of its own",
        norm_of_its_own,
        config=MINE | {"auto_map": {"AutoModel": "modeling_mine.MineForCausalLM"}},
        refused="names the class MineForCausalLM",
    ),
    Condition("another class", config=MINE, said="names the class MineForCausalLM"),
    Condition("no type, a class", config={"model_type": None}, said="has no model_type"),
    Condition("no type, no class", config={"model_type": None, "architectures": None}, refused=NO_FAMILY),
    Condition(
        "quantized by AWQ",
        config={"quantization_config": {"quant_method": "awq", "bits": 4}},
        without=("ln1.gain", "ln2.gain"),
    ),
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
    head = {**_versions(), "tolerance": TOLERANCE, "families": FAMILIES}
    write_record(RESULTS, {**head, "counts": counts, "conditions": by_condition})
    print(f"{sum(counts.values())} combinations: {dict(counts)}", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
