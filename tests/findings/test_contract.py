"""What every finding keeps to: its metrics, what it declares, its claims, its words."""

import io
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, get_args

import numpy as np
import pytest
from jinja2 import nodes
from pydantic import TypeAdapter, ValidationError
from typing_extensions import get_type_hints, is_typeddict

from generators.base.architecture import Architecture, Buckets, Rotary
from generators.base.plain import plain
from generators.compute.judged import read_metrics
from generators.findings import FINDINGS, plantings
from generators.findings.contract import Finding, roles
from generators.findings.facts import EntityNote, Fact
from generators.findings.inputs import CAPABILITIES, FREQUENCIES, RUN, TOKENS, Inputs, NotApplicableError
from generators.findings.judging import VERDICTS
from generators.findings.measured import Measurements, Table
from generators.site.words import caption, environment
from generators.tokens.frequency import TokenFrequency
from generators.tokens.readable import readable_form
from generators.tokens.vocabulary import ModelVocabulary, Token, assemble
from tests import synthetic
from tests.conftest import ROOT
from tests.findings.by_reference import attention_to
from tests.findings.stand_in import StandIn

V, D, LAYERS = 900, 48, 3
CLUMP, LONG = range(100, 140), range(200, 210)  # tokens that huddle, and tokens that other tokens yield
UNSAID = {"nan", "inf", "None", "True", "False"}  # what numbers that are absent look like in a sentence
ROTARY = "rotary"  # a scene for findings that don't apply to the others
NOT_MEASURED = {
    "induction": {"untied"},  # which looks both ways
    "rotary_use": {"gaussian", "planted", "untied"},  # which don't rotate
    "rotation_check": {"gaussian", "planted", "untied"},
    "attention": {"bare"},  # which has neither tokens nor positions
    "undertrained": {"gaussian", "bare", ROTARY},  # in which no tokens lie in one spot
}
every_finding = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)


# Models without structure, but for what some figures need to be there


def weights_of(seed: int, planted: bool) -> dict[str, np.ndarray]:
    """Return Gaussian weights; planted, some of their tokens huddle, two of these equal, and some are long."""
    arch = synthetic.architecture(d_model=D, n_layer=LAYERS)
    rng = np.random.default_rng([seed, 9])
    E = rng.standard_normal((V, D), dtype=np.float32)
    if planted:
        E[CLUMP] = 3.5 * plantings.orthonormal(D, 1, seed)[:, 0] + 0.05 * E[CLUMP]
        E[CLUMP[0]] = E[CLUMP[1]]
        E[LONG] *= 4
    norm = {"final_norm.gain": 1 + 0.2 * rng.standard_normal(D), "final_norm.bias": 0.1 * rng.standard_normal(D)}
    return {**synthetic.gaussian_weights(arch, seed), **norm, "token_embedding": E}


def vocabulary() -> ModelVocabulary:
    """Return words, but texts that break pages and figures for all tokens that huddle or are long, and for others."""
    marks, hostile = np.random.default_rng(3).random(V) < 0.5, synthetic.HOSTILE
    texts = [hostile[i % len(hostile)] if i % 5 == 0 or i in CLUMP or i in LONG else f"w{i}" for i in range(V)]
    raw = [text.encode() for text in texts]
    return assemble({i: Token(t, readable_form(t), bool(marks[i]), special=i < 3) for i, t in enumerate(raw)}, V)


def frequencies() -> tuple[TokenFrequency, ...]:
    counts = np.random.default_rng(0).zipf(1.4, V).clip(max=10**6).astype(float)
    counts[CLUMP] = 0
    return (TokenFrequency("counts", "counts", np.log1p(counts), 1.0, False),)


@cache
def scenes() -> dict[str, Inputs]:
    """Return the inputs to measure from: without structure, with what is planted, with no more than is needed."""
    arch = replace(synthetic.architecture(d_model=D, n_layer=LAYERS), vocab_size=V)
    gaussian = weights_of(0, planted=False)
    untied = {**weights_of(1, planted=True), "unembedding": gaussian["token_embedding"]}
    untied["token_type_embedding"] = gaussian["token_embedding"][:2]
    untied |= {f"blocks.{i}.attn.relative_bias": gaussian["token_embedding"][:32, :2] for i in range(LAYERS)}
    planted, encoder = weights_of(1, planted=True), replace(arch, tied=False, causal=False, post_norm=True)
    planted |= {"embedding_norm.gain": np.ones(D, np.float32), "embedding_norm.bias": np.zeros(D, np.float32)}
    planted |= {"embedding_projection": np.eye(D), "embedding_projection.bias": np.zeros(D)}
    biased = replace(encoder, buckets=Buckets(32, 128, both_ways=True))
    falling = replace(arch, positions="alibi", slopes=(0.5, 0.0625), score_cap=20.0)
    turns = Rotary(8, (6.3, 20.0, 63.0, 200.0))
    turning = replace(arch, positions="rotary", rotary=(turns, None, turns), windows=(32, None, 32))
    spinning = replace(arch, positions="rotary", rotary=(turns,) * LAYERS)
    attended = {role: array for role, array in gaussian.items() if role != "position_embedding"}
    streams = np.random.default_rng(4).standard_normal((64, D))
    reading = {
        "states": lambda stage, ids: np.broadcast_to(streams, (len(ids), *streams.shape)),
        "attend": lambda layer, ids, _: np.stack([attention_to(streams, attended, spinning, layer)] * len(ids)),
        "compare": lambda layer, ids: np.random.default_rng(layer).standard_normal((3, len(ids), 2, 64, 8)),
    }
    log_frequency = frequencies()[0].log_frequency
    looks, shares = (0.9, 0.4, 0.0), (0.5, 0.6, 0.3, 0.0)

    def run(weights: Mapping[str, np.ndarray], arch: Architecture, **given: Any) -> StandIn:
        return StandIn(arch, weights["position_embedding"], log_frequency=log_frequency, **given)

    seen = {"looks": looks, "shares": shares, "never": CLUMP}
    seen["mlps"] = lambda layer, ids: np.random.default_rng(layer).standard_normal((*ids.shape, D))
    return {
        "gaussian": Inputs(gaussian, arch, vocabulary(), frequencies(), run(gaussian, arch)),
        "planted": Inputs(planted, falling, vocabulary(), frequencies(), run(planted, falling, **seen)),
        "untied": Inputs(untied, biased, vocabulary(), frequencies(), run(untied, biased)),
        "bare": Inputs(weights_of(2, planted=False), turning, run=StandIn(turning, None, kind="rotary")),
        ROTARY: Inputs(attended, spinning, run=StandIn(spinning, None, kind="rotary", pairs=(0.5,) * 4, **reading)),
    }


@cache
def found(finding: Finding[Any], scene: str) -> Measurements[Any] | None:
    """Return what is measured in a scene; None where the finding says that it doesn't apply there."""
    inputs = scenes()[scene]
    if scene == ROTARY and found(finding, "gaussian") is not None:
        return None  # what applies to other models is seen there
    if scene == "bare":
        needed = roles(finding.needs, LAYERS)
        inputs = replace(inputs, weights={role: inputs.weights[role] for role in needed})
    try:
        return finding.measure(inputs)
    except NotApplicableError:
        return None


def by_scene(finding: Finding[Any]) -> dict[str, Measurements[Any]]:
    """Return what is measured in the scenes that a finding applies to: the rotary one if it isn't in the first."""
    elsewhere = NOT_MEASURED.get(finding.name, set())
    applicable = {scene: result for scene in scenes() if (result := found(finding, scene)) is not None}
    assert [*applicable] == [
        one for one in scenes() if one not in elsewhere and (one != ROTARY or "gaussian" in elsewhere)
    ]
    return applicable


def all_measured(finding: Finding[Any]) -> list[Measurements[Any]]:
    return list(by_scene(finding).values())


@every_finding
def test_stored_metrics_are_those_that_were_measured(finding):
    for scene, measured in by_scene(finding).items():
        stored = json.dumps(measured.metrics, allow_nan=False)
        assert json.loads(stored) == measured.metrics, f"{scene}: lists and not tuples, strings as keys"
        again = TypeAdapter(finding.metrics).validate_json(stored, strict=True)
        assert again == measured.metrics, f"{scene}: nothing that isn't declared"


@every_finding
def test_missing_renamed_and_dropped_numbers(finding):
    stored = json.loads(json.dumps(all_measured(finding)[0].metrics))
    assert read_metrics(finding.metrics, {**stored, "no_longer_measured": [1.0]}) == (stored, ())
    for key in stored:
        there = {name: value for name, value in stored.items() if name != key}
        assert read_metrics(finding.metrics, there) == (there, ((key,),))
        with pytest.raises(ValidationError, match=f"old_{key}"):
            read_metrics(finding.metrics, {**there, f"old_{key}": stored[key]})


def types_in(annotation: Any) -> set[Any]:
    """Return every type that an annotation is made of, keys of typed dicts included."""
    inner = get_type_hints(annotation).values() if is_typeddict(annotation) else get_args(annotation)
    return {annotation}.union(*(types_in(part) for part in inner))


@every_finding
def test_no_metric_is_of_any_type(finding):
    assert not {Any, object, dict, list, tuple} & types_in(finding.metrics)


@every_finding
def test_tables_and_arrays_are_plain(finding):
    for name, table in (each for one in all_measured(finding) for each in one.tables.items()):
        json.dumps(plain(table.rows), allow_nan=False)
        assert len(set(table.columns)) == len(table.columns), name
        assert all(len(row) == len(table.columns) for row in table.rows), name
        assert table.title, name
    for name, array in (each for one in all_measured(finding) for each in one.arrays.items()):
        assert isinstance(array, np.ndarray), name
        assert array.dtype.kind in "fiubU", name
        if array.dtype.kind == "f":
            assert array.itemsize <= 4, f"{name} is shown, not calculated with"


class Seen(Mapping):
    """A mapping that notes which keys are asked for, of those that may be (None: all)."""

    def __init__(self, known: Mapping[str, Any], declared: Collection[str] | None = None) -> None:
        self.declared = declared
        self.known = {key: value for key, value in known.items() if declared is None or key in declared}
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        assert self.declared is None or key in self.declared, f"{key} is asked for and not declared"
        self.asked.add(key)
        return self.known[key]

    def __iter__(self):
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


class Fields:
    """An object of which only declared attributes can be read; `asked` are those that were, `own` are others."""

    def __init__(self, known: object, declared: Collection[str], **own: object) -> None:
        self.__dict__.update(own, _known=known, _declared=declared, asked=set())

    @property
    def __class__(self) -> type:  # what it stands in for
        return type(self._known)

    def __getattr__(self, name: str) -> Any:
        assert name in self._declared, f"{name} is read and not declared"
        self.asked.add(name)
        return getattr(self._known, name)


CAPABILITY = {"vocabulary": TOKENS, "frequencies": FREQUENCIES, "run": RUN}  # by the field of inputs


def watched(finding: Finding[Any], inputs: Inputs) -> Any:
    given = [name for name, capability in CAPABILITY.items() if finding.can_use(capability)]
    declared = roles((*finding.needs, *finding.uses), inputs.architecture.n_layer)
    architecture = Fields(inputs.architecture, finding.config)
    return Fields(inputs, given, weights=Seen(inputs.weights, declared), architecture=architecture)


@every_finding
def test_what_is_read_is_declared_and_what_is_declared_is_read(finding):
    applicable = {scene: one for scene, one in by_scene(finding).items() if scene != "bare"}
    given = [watched(finding, scenes()[scene]) for scene in applicable]
    for each, once in zip(given, applicable.values(), strict=True):
        assert finding.measure(each).metrics == once.metrics, "the same every time"
    assert set().union(*(each.architecture.asked for each in given)) == set(finding.config)
    wanted = (*finding.needs, *finding.uses)
    assert len(set(wanted)) == len(wanted)
    capabilities = {CAPABILITY[name] for each in given for name in each.asked}
    assert capabilities == {name for name in wanted if name in CAPABILITIES}
    assert set().union(*(each.weights.asked for each in given)) >= set().union(*(each.weights for each in given))
    there = set().union(*(inputs.weights for inputs in scenes().values()))
    for role in set(wanted) - capabilities:
        assert set(roles((role,), LAYERS)) & there, role


def test_findings_are_distinguished():
    for unique in (
        [finding.order for finding in FINDINGS],
        [finding.name for finding in FINDINGS],
        [finding.title for finding in FINDINGS],
        [rule.id for finding in FINDINGS for rule in finding.rules],
        [rule.short for finding in FINDINGS for rule in finding.rules],
        [name for finding in FINDINGS for name in figure_names(finding)],
    ):
        assert len(set(unique)) == len(unique)


def words_in(sentence: str) -> set[str]:
    return set(re.findall(r"\w+", sentence))


@every_finding
def test_rules_are_shown_in_full_and_unmeasured_ones_untested(finding):
    for rule in finding.rules:
        assert rule.id
        assert rule.short
        assert rule.value
        assert rule.statement.endswith(".")
        assert (rule.holds is None) == bool(rule.holds_as), "a number or, where it depends on chance, words"
        assert rule.holds is None or rule.why.endswith("."), "why the number is this one"
        assert len(rule.why.split()) <= 18
        if rule.holds is not None and rule.partly is not None:
            assert rule.reached(rule.holds, rule.partly), "what holds must hold partly"
    claims = finding.untested("The weights aren't here.")
    assert [claim.id for claim in claims] == [rule.id for rule in finding.rules]
    assert {(claim.verdict, claim.answer) for claim in claims} <= {("untested", "The weights aren't here.")}


@every_finding
def test_every_rule_gives_a_claim(finding):
    for claims in map(finding.claims, all_measured(finding)):
        assert [claim.id for claim in claims] == [rule.id for rule in finding.rules]
        for claim in claims:
            assert claim.finding == finding.name
            assert claim.verdict in VERDICTS
            assert (claim.value is None) or claim.verdict != "untested"
            assert claim.answer.endswith("."), claim.answer
            assert not UNSAID & words_in(claim.answer), claim.answer
            json.dumps([claim.value, claim.threshold, claim.baseline, claim.interval], allow_nan=False)


@every_finding
def test_claims_and_figures_need_no_more_than_what_is_stored(finding):
    for fresh in all_measured(finding):
        tables = {key: Table(t.title, t.columns, tuple(map(tuple, plain(t.rows)))) for key, t in fresh.tables.items()}
        stored = Measurements(json.loads(json.dumps(fresh.metrics)), tables, fresh.arrays)
        assert finding.claims(stored) == finding.claims(fresh)
        figures = finding.figures(stored)
        assert [figure.name for figure in figures] == [figure.name for figure in finding.figures(fresh)]
        for figure in figures:
            figure.draw()
            if figure.interactive is not None:
                json.dumps(figure.interactive().as_json(), allow_nan=False)


def parsed(name: str) -> nodes.Template:
    made = environment()
    return made.parse(made.loader.get_source(made, name)[0])


@cache
def asked_by_templates() -> set[str]:
    """Return what templates ask of a finding's words: by the names under which they import them, or as `added`."""
    read = [parsed(name) for name in environment().list_templates()]
    attributes = [node for template in read for node in template.find_all(nodes.Getattr)]
    of = {(node.node.name, node.attr) for node in attributes if isinstance(node.node, nodes.Name)}
    calls = [node for template in read for node in template.find_all(nodes.Call) if isinstance(node.node, nodes.Name)]
    added = {f"add_{node.args[0].as_const()}" for node in calls if node.node.name == "added"}
    answers = re.findall(r"import (\w+) %", (ROOT / "templates" / "questions.yml").read_text("utf-8"))
    return {attr for name, attr in of if name in ("words", "use", "of_curves")} | added | {*answers}


@cache
def figure_names(finding: Finding[Any]) -> set[str]:
    return {figure.name for known in all_measured(finding) for figure in finding.figures(known)}


@every_finding
def test_every_figure_has_words(finding, recwarn):
    for scene, measured in by_scene(finding).items():
        figures = finding.figures(measured)
        assert len({figure.name for figure in figures}) == len(figures)
        for figure in figures:
            if scene == "planted":
                figure.draw().savefig(io.BytesIO(), format="svg")  # with names of tokens in it
            words = caption(finding.name, figure.name, measured)
            for text in (words.how_to_read, words.alt):
                assert text.endswith("."), text
                assert not UNSAID & words_in(text), text
            assert figure.title
            assert not figure.title.endswith(".")
    assert [str(w.message) for w in recwarn if "lyph" in str(w.message)] == []


@every_finding
def test_no_words_are_left_over(finding):
    """Every macro is a caption or alt text of a figure, or asked for by a page, or used by another one."""
    wanted = {f"{kind}_{name.replace('-', '_')}" for name in figure_names(finding) for kind in ("caption", "alt")}
    words = parsed(f"findings/{finding.name}.md.j2")
    macros = {macro.name: [argument.name for argument in macro.args] for macro in words.find_all(nodes.Macro)}
    about_figures = {name for name, arguments in macros.items() if arguments == ["metrics", "arrays"]}
    assert {name for name in about_figures if name.startswith(("caption_", "alt_"))} == wanted
    calls = [call for call in words.find_all(nodes.Call) if isinstance(call.node, nodes.Name)]
    called = {one.name for call in calls for one in (call.node, *call.args) if isinstance(one, nodes.Name)}
    assert set(macros) - wanted - asked_by_templates() <= called
    assert {"question", "observation", "definition", "change_mind"} <= set(macros)


def test_no_template_is_left_over():
    names = environment().list_templates(filter_func=lambda name: name.startswith("findings/"))
    assert sorted(names) == sorted(f"findings/{finding.name}.md.j2" for finding in FINDINGS)


@every_finding
def test_facts_on_entities(finding):
    """An array or a table is asked for by a string: one that no model has would go unnoticed."""
    asked: set[str] = set()
    said: list[Fact] = []
    counts = {"channel": D, "head": LAYERS * synthetic.architecture(d_model=D).n_head, "position": None, "token": V}
    for known in all_measured(finding):
        tables, arrays = Seen(known.tables), Seen(known.arrays)
        read = Measurements(json.loads(json.dumps(known.metrics)))
        stored = Fields(read, ("metrics", "model"), tables=tables, arrays=arrays)
        for kind, says in finding.facts.entities.items():
            said += says(stored, counts[kind])
        asked |= tables.asked | arrays.asked
    assert bool(said) == bool(finding.facts.entities)
    assert asked <= {name for known in all_measured(finding) for name in (*known.arrays, *known.tables)} | {""}
    figures = {getattr(fact, "figure", None) for fact in said} - {None}
    assert figures <= figure_names(finding)
    for fact in said:
        if isinstance(fact, EntityNote):
            assert fact.says.endswith(".")
            assert not UNSAID & words_in(fact.says), fact.says


@every_finding
def test_what_other_pages_take_is_made_from_stored_metrics(finding):
    known = all_measured(finding)
    facts = finding.facts
    assert all(word == word.strip() for word in finding.words.search)
    assert finding.signature in figure_names(finding)
    assert facts.curve is None or facts.curve.figure in figure_names(finding)
    for story in facts.stories:
        assert story.claim in {rule.id for rule in finding.rules}
        assert story.figure in figure_names(finding)
    assert 1 <= finding.question <= 8
    if facts.loss is not None:
        losses = [facts.loss(one.metrics) for one in known]
        assert all(one.interval[0] <= one.mean <= one.interval[1] for one in losses)
