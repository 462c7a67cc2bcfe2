"""`make untabled`: types of model that no table describes, made small by transformers, through the atlas.

Of each, the token side is right or refused with a sentence, and nothing is said of positions and masks.
`results/untabled.json` keeps what became of which type.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from generators.base.errors import AtlasError
from generators.checkpoint.families import families, has_table
from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.plan import open_model, prepare
from generators.findings import FINDINGS
from generators.findings.inputs import CAPABILITIES, RUN
from tests.checkpoint.oracle.cases import SMALL
from tests.nulls import today, write_record

RESULTS = Path(__file__).parents[3] / "results" / "untabled.json"
HEADS = ("AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSeq2SeqLM", "AutoModel")
TOKENS = 300  # enough for findings about tokens
MOST_NUMBERS = 20_000_000  # of a model that is small
SECONDS = 20  # for one type
ABOUT_TOKENS = frozenset(
    finding.name
    for finding in FINDINGS
    if RUN not in finding.needs
    and "unembedding" not in finding.uses
    and {role for role in finding.needs if role not in CAPABILITIES} == {"token_embedding"}
)
# In a part: of text and images, say, where transformers names no token embedding of the whole.
OUTCOMES = ("read", "read_in_a_part", "refused", "not_built")


def untabled() -> list[str]:
    from transformers import CONFIG_MAPPING

    known = {kind for family in families() for kind in family.model_types}
    return sorted(kind for kind, config in CONFIG_MAPPING.items() if not {kind, config.model_type} & known)


def outcome(kind: str, folder: Path) -> str:
    """Return one of `OUTCOMES`. Raises AssertionError: something is read wrongly, or claimed; names it."""
    try:
        with _limited():
            model = small_model(kind)
            model.save_pretrained(folder / kind)
    except Exception:  # transformers raises whatever it meets
        return "not_built"
    embeddings, in_a_part = _embeddings(model)
    came = _through_atlas(kind, folder, [module.weight.detach().float().numpy() for module in embeddings])
    return "read_in_a_part" if came == "read" and in_a_part else came


def small_model(kind: str) -> Any:
    import torch
    import transformers

    config = transformers.CONFIG_MAPPING[kind]
    settings = small_settings(config().to_dict())
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in _built(config(**settings)).parameters())
    if size > MOST_NUMBERS:
        raise ValueError(f"{kind} has {size} numbers.")
    torch.manual_seed(0)
    model = _built(config(**settings))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.normal_(0, 0.1)
    return model


def small_settings(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return small sizes for the settings that a config has, also inside the configs of its parts."""
    parts = {key: value for key, value in known.items() if key.endswith("config") and isinstance(value, dict)}
    small = {key: value for key, value in SMALL.items() if key in known}
    if isinstance(known.get("vocab_size"), int):
        small["vocab_size"] = min(TOKENS, known["vocab_size"])
    return small | {
        key: {"model_type": part.get("model_type"), **small_settings(part)} for key, part in parts.items()
    }


def _built(config: Any) -> Any:
    import transformers

    kinds = (getattr(transformers, name) for name in HEADS)
    return next(kind for kind in kinds if type(config) in kind._model_mapping).from_config(config)


def _embeddings(model: Any) -> tuple[list[Any], bool]:
    """Return what transformers calls the token embedding; where it calls nothing so, those of all parts, and True."""
    import torch

    with suppress(NotImplementedError, AttributeError):
        named = model.get_input_embeddings()
        if named.weight.ndim == 2:
            return [named], False
    return [part for part in model.modules() if isinstance(part, torch.nn.Embedding)], True


def _through_atlas(kind: str, folder: Path, embeddings: list[np.ndarray]) -> str:
    model = Model(name="untabled", title=kind, sources=(FolderSource(folder=folder / kind),))
    try:
        opened = open_model(model, Places())
    except AtlasError as sentence:
        assert str(sentence).endswith("."), f"{kind}: {sentence}"
        return "refused"
    checkpoint = opened.checkpoint
    assert not has_table(checkpoint.family), f"{kind} has a table"
    assert list(checkpoint) == ["token_embedding"], f"{kind}: {list(checkpoint)}"
    read, name = checkpoint["token_embedding"], checkpoint.record("token_embedding").name
    assert any(np.array_equal(read, embedding) for embedding in embeddings), f"{kind}: {name} embeds no tokens"
    prepared = prepare(opened, FINDINGS)
    for planned in prepared.plans:
        if planned.finding.name in ABOUT_TOKENS:
            assert planned.key is not None, f"{kind}: {planned.finding.name}: {planned.reason}"
        else:
            assert planned.status == "not_applicable", f"{kind}: {planned.finding.name} is {planned.status}"
            assert "no table for models of type" in (planned.reason or ""), f"{kind}: {planned.reason}"
    said = prepared.record
    assert (said.causal, said.post_norm) == (None, None), f"{kind}: {said}"
    return "read"


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def tried(kinds: Sequence[str]) -> dict[str, Any]:
    import transformers

    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    found: dict[str, Any] = {name: [] for name in OUTCOMES} | {"wrong": {}}
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                came = outcome(kind, Path(folder))
                found[came].append(kind)
            except AssertionError as error:
                found["wrong"][kind], came = str(error), "WRONG"
        print(f"{kind}: {came}", file=sys.stderr)
    return {"transformers": transformers.__version__, **found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", action="extend", default=[], metavar="TYPE")
    only = parser.parse_args().only
    found = tried(only or untabled())
    if not only:
        write_record(RESULTS, {**today(), **found})
    print({name: len(types) for name, types in found.items() if name != "transformers"}, found["wrong"])
    return int(bool(found["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
