"""Channels, heads, tokens and positions as stored results know them: for panels, lists and the search."""

import json
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

from generators.findings import FINDINGS
from generators.findings.facts import EntityKind
from generators.findings.measured import Measurements, Table
from generators.site.addresses import Notable
from generators.site.entities import Entities, entities, entity_files, write_like
from generators.site.search import INDEX, add_entries, entries_of_glossary, write_search
from generators.site.staging import Staging
from tests.site.stand_ins import sections_of

HOSTILE = "<script>alert(1)</script>"
HEAD = ("layer", "head", "peak_offset", "weight_at_1", "previous_token_head")
LAST = (1, 1, 1, 0.3, False)
EXCEPTION = ("id", "readable", "best_id", "best_readable", "norm", "best_norm", "cosine")
PLANTED: dict[str, Measurements[Any]] = {
    "channels": Measurements(
        {"position_std": [0.1, 0.5, 0.3], "token_mean": [1, -2.0, 0.5], "token_std": None, "position_channels": [1]},
        arrays={"position_mean": np.array([0.25, 0, 0.125]), "right_singular_vectors": np.array([[0.6, 0.8, 0]])},
    ),
    "gains": Measurements(
        {"consistent_channel": {"ln2": {"channel": 2, "layers_topped": 2, "n_layers": 2}, "ln1": None}},
        arrays={"ln2_gain": np.array([[1.0, 2, 3], [4, 5, 6]]), "ln2_layers": np.array([0, 1])},
    ),
    "attention": Measurements(
        {
            "positional_kernels": {
                "heads": [
                    dict(zip(HEAD, row, strict=True))
                    for row in ((0, 1, 1, 0.9, True), (0, 0, 1, 0.2, False), (1, 0, 0, 0.1, False), LAST)
                ]
            },
            "token_kernels": None,
        },
        arrays={
            "kernel_offsets": np.array([0, 1]),
            "kernels": np.array([[0.8, 0.2], [0.1, 0.9], [0.9, 0.1], [0.7, 0.3]]),
            "uniform_kernel": np.array([0.5, 0.5]),
        },
    ),
    "outliers": Measurements(
        {"clump": {"members": [4, 5], "radius": 0.5}, "n_tokens": 8, "known_unused": {"count": 1}},
        tables={"known_unused": Table("never", ("id", "readable"), ((5, HOSTILE),))},
        arrays={
            "ids": np.array([0, 4, 7]),
            "norm": np.array([1.5, 2.5, 3.5]),
            "token_name": np.array(["a", "␠b", "c"]),
            "nearest": np.array([0.1, 0.2]),
        },
    ),
    "zero_layer": Measurements(
        {"exceptions": 1, "n_tokens": 8},
        tables={
            "exceptions": Table("exceptions", EXCEPTION, ((4, "␠b", 7, "c", 2.5, 3.5, 0.75),)),
            "hubs": Table("hubs", ("id", "readable", "absorbs"), ((7, "c", 3),)),
        },
    ),
    "helix": Measurements(
        {"n_positions": 3, "outlier_positions": [0]},
        arrays={"norms": np.array([9.0, 1, 2]), "steps": np.array([8.0, 1])},
    ),
}  # fmt: skip


WHY = ("channel", "why", "cost", "low", "high")
SWEPT = ("channel", "cost", "unigram_rho")
VALUE = ("channel", "layer", "token_there", "next_token")
IN_USE: dict[str, Measurements[Any]] = {
    "channel_use": Measurements(
        {"unit": "nats per token", "swept_windows": 32, "ran": {"windows": 32}, "proxy": False},
        tables={
            "channels": Table("held", WHY, ((2, "frequency", 0.5, 0.4, 0.6),)),
            "swept": Table("all held", SWEPT, ((0, 0.1, None), (1, 0, None), (2, 0.5, -0.3))),
            "values": Table("values", VALUE, ((2, 0, -0.1, 0.2), (2, 1, -0.4, None))),
        },
    ),
    "frequency": Measurements(
        {
            "coverage": 1.0,
            "frequency_channel": {"channel": 2, "rho": -0.7},
            "contrast_channel": {"channel": 1, "rho": 0.2},
            "channel_rho": {"frequency": [0.1, 0.2, -0.7], "norm": [0, 0, 0], "index": [0, 0, 0]},
            "n_tokens": 8,
            "n_channels": 3,
            "proxy": False,
            "chance": None,
            "intervals": None,
        }
    ),
}


def page(measured: dict[str, Measurements[Any]] = PLANTED) -> Any:
    """Return as much of a model's page as entities are made from."""
    model = SimpleNamespace(name="planted", n_layer=2, n_head=2, d_model=3, n_ctx=3, vocab_size=9)
    return SimpleNamespace(
        name="planted",
        title="Planted <b>",
        series_page=None,
        address="models/planted/",
        findings=SimpleNamespace(model=model),
        sections=sections_of(measured),
        claims={},
        named=[],
        measured={name: one.metrics for name, one in measured.items()},
        knows=lambda kind: any(kind in one.facts.entities for one in FINDINGS if one.name in measured),
    )


def notes(found: Entities, index: int) -> str:
    return " ".join(note.says for _, note in found.notes.get(index, []))


def test_a_channel_is_described_by_embeddings_and_gains():
    found = entities(page(), "channel")
    assert found.count == 3
    assert found.columns["standard deviation over positions (P)"].values == [0.1, 0.5, 0.3]
    assert found.columns["mean over positions (P)"].values == [0.25, 0, 0.125]
    assert found.columns["mean over tokens (E)"].values == [1, -2, 0.5]
    leading = "share of P's leading direction, which includes the mean over positions"
    assert found.columns[leading].values == pytest.approx([0.36, 0.64, 0])
    [gains] = found.as_json()["lines"]
    assert (gains["at"], gains["values"], gains["usual"]) == ([0, 1], [[1, 4], [2, 5], [3, 6]], [2, 5])
    assert notes(found, 1) == (
        "The position channel: P varies far more here than in other channels. "
        "Positions vary most in this channel: std 0.5."
    )
    assert notes(found, 2) == "ln2 gives it the largest gain in 2 of 2 layers."
    assert notes(found, 0) == ""
    assert set(dict(found.unknown)) >= {
        "frequency",
        "channel_use",
        "anchor",
        "position_line",
        "rogue",
    }
    assert "The checkpoint lacks it." in found.unknown[0][1]


@pytest.mark.parametrize(("limit", "holds"), [(0.2, True), (0.9, False), (None, False)])
def test_a_channel_is_the_frequency_channel_where_it_tracks_frequency(limit, holds):
    null = {"null": "shuffled", "median": 0.1, "limit": limit, "draws": 100}
    chance = {
        "proxy": False,
        "source": "counts",
        "chance": {"frequency_channel": null, "drift": {**null, "limit": 0.1}},
    }
    intervals = {"frequency_channel": [0.6, 0.8]}
    known = {} if limit is None else {**chance, "intervals": intervals, "probe": None}
    frequency = Measurements({**IN_USE["frequency"].metrics, **known})
    said = notes(entities(page({"frequency": frequency}), "channel"), 2)
    assert ("This is the frequency channel (rank correlation " in said) == holds
    assert ("This is the channel most correlated with frequency (rank correlation " in said) != holds


def test_what_a_channel_costs_and_how_it_goes_with_frequency_in_use_is_known():
    found = entities(page(PLANTED | IN_USE), "channel")
    cost = found.columns["cost of fixing it at its mean (nats per token)"]
    assert (cost.ids, cost.values, cost.stated.order) == ([0, 1, 2], [0.1, 0, 0.5], "largest")
    there, following = (
        next(one for one in found.columns.values() if one.stated.name == name)
        for name in ("token_there", "next_token")
    )
    assert (there.ids, there.values) == ([2], [-0.4])
    assert (following.ids, following.values) == ([2], [0.2])


def test_a_head_is_described_by_its_kernel_whatever_the_order_of_the_rows():
    found = entities(page(), "head")
    assert found.count == 4
    assert found.columns["weight on the previous token, by position alone"].values == [0.2, 0.9, 0.1, 0.3]
    assert notes(found, 1) == "A previous-token head by position alone (weight 90\u00a0%)."
    [kernel] = found.as_json()["lines"]
    assert (kernel["at"], kernel["values"][1], kernel["usual"]) == ([0, 1], [0.1, 0.9], [0.5, 0.5])
    assert set(dict(found.unknown)) >= {
        "position_reading",
        "rotary_use",
        "heads",
        "distance",
        "anchor",
    }


def test_a_token_is_described_by_norm_cluster_neighbors_and_what_it_returns():
    found = entities(page(), "token")
    assert found.count == 8
    assert found.names == {0: "a", 4: "␠b", 5: HOSTILE, 7: "c"}
    norms = found.columns["norm of its embedding"]
    assert dict(zip(norms.ids, norms.values, strict=True)) == {0: 1.5, 4: 2.5, 7: 3.5}
    nearest = found.columns["distance to the nearest other token"]
    assert dict(zip(nearest.ids, nearest.values, strict=True)) == {0: 0.1, 7: 0.2}, "spread over the ids"
    yielded = found.columns["next token without layers"]
    assert (yielded.ids, yielded.values, yielded.stated.leads) == ([4], [7], "token")
    groups = {finding + str(group.ids): (group.says, group.otherwise) for finding, group in found.groups}
    assert groups["outliers[4, 5]"][1].startswith("Not in the cluster of 2 tokens")
    assert groups["zero_layer[4]"][1] == "Without layers, the model repeats it."
    assert groups["outliers[5]"][0] == "It never occurs in the training text."
    assert notes(found, 7) == "Without layers, the model predicts this token after each of 3 different tokens."


def test_numbers_that_several_findings_know_are_put_together_once():
    svd = Measurements({"n_tokens": 8}, arrays={"token_id": np.array([7, 6]), "token_norm": np.array([9.0, 4.5])})
    norms = entities(page(PLANTED | {"token_svd": svd}), "token").columns["norm of its embedding"]
    assert dict(zip(norms.ids, norms.values, strict=True)) == {0: 1.5, 4: 2.5, 6: 4.5, 7: 9.0}, "the first is kept"
    assert (norms.finding, norms.stated.figure) == ("outliers", "outlier-norms"), "whichever has a figure of them"
    gains = Measurements(PLANTED["gains"].metrics, arrays={"position_std": np.array([0.1, 0.6, 0.3])})
    for others, values, finding in (({}, [0.1, 0.6, 0.3], "gains"), (PLANTED, [0.1, 0.5, 0.3], "channels")):
        std = entities(page({**others, "gains": gains}), "channel").columns["standard deviation over positions (P)"]
        assert (std.values, std.finding) == (values, finding)


def test_nothing_is_said_of_all_tokens_from_a_table_that_is_not_whole():
    cut = Measurements({"exceptions": 2, "n_tokens": 8}, PLANTED["zero_layer"].tables)
    assert not entities(page({"zero_layer": cut}), "token").groups


def test_a_position_is_described_by_norm_and_step():
    found = entities(page(), "position")
    assert found.columns["norm of its embedding"].values == [9, 1, 2]
    steps = found.columns["distance to the next position"]
    assert (steps.ids, steps.values) == ([0, 1], [8, 1])
    assert notes(found, 0) == "It is far from the curve of the other positions."
    assert notes(found, 1) == ""


@pytest.mark.parametrize("kind", get_args(EntityKind))
def test_of_a_model_without_results_every_finding_says_why(kind):
    found = entities(page({}), kind)
    assert not found.columns
    assert not found.lines
    assert found.unknown
    json.dumps(found.as_json(), allow_nan=False)


def test_entities_that_results_name_are_listed_with_their_addresses():
    files, named = entity_files(page())
    assert [(one.called, one.address) for one in named] == [
        ("Channel 1", "?channel=1#things"),
        ("Channel 2", "?channel=2#things"),
        ("Head L0H1", "?head=0.1#things"),
        ("Token 7 c", "?token=7#things"),
    ]
    known = json.loads(files["data/planted/things.json"])
    assert set(known) == {"model", "findings", "channel", "head", "position"}
    assert known["channel"]["notes"]["2"][0]["finding"] == "gains"
    written = json.loads(files["data/planted/things-tokens.json"])["token"]
    assert written["names"][written["ids"].index(5)] == HOSTILE
    ids = written["id_lists"][next(c["ids"] for c in written["columns"] if c["says"].startswith("norm of its"))]
    assert ids == [0, 4, 7]


def test_an_entity_with_a_role_leads_to_those_of_other_models(tmp_path):
    pages = [page(), page()]
    for name, one in zip(("a", "b"), pages, strict=True):
        one.name, one.named = name, entity_files(one)[1]
    staging = Staging(tmp_path, tmp_path / "cache")
    write_like(pages, staging)
    like = json.loads((tmp_path / "data/like.json").read_text())
    assert [(one["model"], one["index"]) for one in like["ln2"]] == [("a", 2), ("b", 2)]
    assert [one["index"] for one in like["positions"]] == [1, 1]
    assert not any("verdict" in one for one in like["ln2"])
    pages[1].claims = {"ln2-one-channel": SimpleNamespace(verdict="fails")}
    write_like(pages, staging)
    like = json.loads((tmp_path / "data/like.json").read_text())
    assert [one.get("verdict") for one in like["ln2"]] == [None, "fails"]


def test_words_that_readers_type_lead_to_the_glossary():
    entries = {one["location"]: f"{one['title']} {one['text']}".lower() for one in entries_of_glossary()}
    for word, place in (
        ("layernorm", "layer-norm"),
        ("rotary", "rotary"),
        ("rope", "rotary"),
        ("induction", "induction-heads"),
        ("positional encoding", "position-embedding"),
        ("glitch token", "cluster"),
        ("clump", "cluster"),
        ("glitch token", "candidate"),
    ):
        assert word in entries[f"glossary/#{place}"], word


def test_entities_join_the_index_of_the_search_as_text(tmp_path):
    staging = Staging(tmp_path / "pages", tmp_path / "cache")
    one = Notable("token", 5, HOSTILE, "?token=5#things", "It never occurs.")
    write_search([SimpleNamespace(**{**vars(page()), "named": [one]})], [], staging)
    index = tmp_path / "site" / INDEX
    index.parent.mkdir(parents=True)
    before = [
        {"location": "models/planted/#things", "title": "old", "text": ""},
        {"location": "", "title": "Home", "text": ""},
    ]
    index.write_text(json.dumps({"config": {"lang": ["en"]}, "docs": before}))
    add_entries(tmp_path / "pages", tmp_path / "site")
    content = json.loads(index.read_text())
    docs = {one["location"]: one for one in content["docs"]}
    assert content["config"] == {"lang": ["en"]}
    assert len(docs) == len(content["docs"])
    assert docs[""]["title"] == "Home"
    assert docs["models/planted/#things"]["title"] != "old"
    assert docs["models/planted/?token=5"]["title"] == (  # the theme loses entries with a place behind a query
        "Token 5 &lt;script&gt;alert(1)&lt;/script&gt; of Planted &lt;b&gt;"
    )


@pytest.mark.parametrize(("windows", "said"), [(4, ", on 4 of 32 windows"), (32, "")])
def test_what_holding_a_channel_costs_is_shown_with_its_unit(windows, said):
    tables = {
        "channels": Table("held", WHY, ((7, "position", 0.5, 0.25, 0.75),)),
        "swept": Table("all held", SWEPT, ((3, 0.125, None), (7, 0.4, None))),
    }
    use = Measurements({"unit": "1 - cosine", "swept_windows": windows, "ran": {"windows": 32}}, tables)
    found = entities(page({"channel_use": use}), "channel")
    assert (
        "Fixing it at its mean costs 0.5 in cosine with the unchanged states (95 % interval 0.25 to 0.75). "
        "We tested it because positions vary most in it."
    ) in notes(found, 7)
    assert found.notes[7][0][1].named
    cost = found.columns[f"cost of fixing it at its mean{said} (1 - cosine)"]
    assert (cost.ids, cost.values) == ([3, 7], [0.125, 0.4])
    assert 3 not in found.notes, "one of all, not found to stand out"
