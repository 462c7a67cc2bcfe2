"""Every model of the registry is read by the config.json that its repository publishes (configs/SOURCES.md)."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from generators.base.architecture import Architecture
from generators.base.errors import InputError
from generators.checkpoint.config import parse_object
from generators.checkpoint.families import choose_family
from generators.checkpoint.reading import understood
from generators.checkpoint.registry import HubSource, load_registry
from generators.checkpoint.roles import Family
from tests.conftest import ROOT

CONFIGS = Path(__file__).parent / "configs"
MODELS = {
    model.name: model
    for model in load_registry(ROOT / "models.yml").models
    if any(isinstance(source, HubSource) for source in model.sources)
}
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \| (?P<hub>\S+) \| (?P<kind>\w+) \| (?P<place>[^|]*)\|", re.MULTILINE)

# Keys of published files that transformers never reads for this type of model, whatever they are set to.
UNREAD_BY_TRANSFORMERS = [
    ("albert-base-v2", "down_scale_factor"),
    ("bloom-560m", "offset_alibi"),
    ("codegen-350m-mono", "scale_attn_weights"),
    ("gpt-j-6b", "rotary"),
    ("gpt-j-6b", "scale_attn_weights"),
    ("modernbert-base", "position_embedding_type"),
    ("opus-mt-en-de--decoder", "static_position_embeddings"),
    ("opus-mt-en-de--encoder", "static_position_embeddings"),
]


def published(name: str) -> dict[str, Any]:
    return parse_object((CONFIGS / f"{name}.json").read_bytes(), f"{name}.json")


def read(name: str, config: dict[str, Any]) -> tuple[Family, Architecture]:
    model = MODELS[name]
    return understood(config, choose_family(config, model.family, model.stack))


def test_every_model_of_the_hub_has_its_config_with_its_source():
    there = {path.stem for path in CONFIGS.glob("*.json")}
    wanted = "fetch config.json from the hub into tests/checkpoint/configs, with a row in its SOURCES.md"
    assert sorted(MODELS.keys() - there) == [], wanted
    assert sorted(there - MODELS.keys()) == []
    rows = {row["name"]: row for row in ROW.finditer((CONFIGS / "SOURCES.md").read_text("utf-8"))}
    assert sorted(rows) == sorted(MODELS)
    for name, row in rows.items():
        assert row["hub"] in {source.hub for source in MODELS[name].sources if isinstance(source, HubSource)}
        assert row["kind"] in ("copy", "rewritten", "unverified")
        assert bool(row["place"].strip()) == (row["kind"] != "unverified"), name
    wholes: dict[str, set[str]] = {}
    for name, model in MODELS.items():
        wholes.setdefault(model.whole or name, set()).add((CONFIGS / f"{name}.json").read_text("utf-8"))
    assert {whole for whole, texts in wholes.items() if len(texts) > 1} == set()


@pytest.mark.parametrize("name", MODELS)
def test_every_published_config_is_read_and_a_setting_that_no_table_knows_is_refused(name):
    config = published(name)
    family, architecture = read(name, config)
    assert architecture.family == family.name
    assert {role for role, _ in family.roles(architecture.n_layer)} >= {"blocks.0.attn.q", "blocks.0.attn.o"}
    place = config.setdefault(family.at, {}) if family.at else config
    place["rotary_scaling_of_tomorrow"] = 2
    with pytest.raises(InputError, match="rotary_scaling_of_tomorrow to 2, which the table"):
        read(name, config)


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "key"), UNREAD_BY_TRANSFORMERS)
def test_a_key_that_transformers_never_reads_changes_nothing(name, key):
    config = published(name)
    with_it = read(name, config)[1]
    del config[key]
    assert read(name, config)[1] == with_it
    package = importlib.util.find_spec(f"transformers.models.{config['model_type']}")
    assert package is not None and package.origin is not None
    sources = {path.name: path.read_text("utf-8") for path in Path(package.origin).parent.glob("*.py")}
    assert [file for file in sources if file.startswith(("configuration_", "modeling_"))]
    reads = re.compile(rf"config\.{key}\b|['\"]{key}['\"]|^    {key}\s*:", re.MULTILINE)
    assert [file for file, text in sources.items() if reads.search(text)] == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", MODELS)
def test_sizes_are_those_that_transformers_reads(name):
    import transformers

    config = published(name)
    whole = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(config)
    family, architecture = read(name, config)
    settings = getattr(whole, family.at) if family.at else whole
    for field in ("n_layer", "n_head", "d_model", "vocab_size", "d_embedding"):
        if field in family.config:
            assert getattr(architecture, field) == getattr(settings, family.config[field]), field
    assert architecture.d_head == (getattr(settings, "head_dim", None) or architecture.d_head)
    heads_of_keys = architecture.n_kv_head or architecture.n_head
    assert heads_of_keys == (getattr(settings, "num_key_value_heads", None) or heads_of_keys)


@pytest.mark.parametrize("kernel", [-3, 2.5, "3", True])
def test_a_convolution_of_no_size_is_refused(kernel):
    with pytest.raises(InputError, match="conv_kernel_size"):
        read("deberta-v2-xlarge", {**published("deberta-v2-xlarge"), "conv_kernel_size": kernel})


@pytest.mark.parametrize(
    "name", ["all-minilm-l6-v2", "gpt2", "llama-2-7b", "pythia-160m", "qwen2-7b", "roberta-base"]
)
def test_a_type_without_a_table_may_have_the_settings_that_are_usual(name):
    config = published(name)
    assert understood(config, choose_family(config, None), strictly=True)
