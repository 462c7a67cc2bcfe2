"""What every finding keeps to: its metrics, what it declares, its words; and how a rule judges."""

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

import jinja2
import numpy as np
import pytest
from jinja2 import nodes
from pydantic import TypeAdapter, ValidationError

from generators.base.architecture import Architecture
from generators.compute.code import PACKAGE, modules_in
from generators.findings import FINDINGS
from generators.findings.contract import (
    CAPABILITIES,
    FREQUENCIES,
    RUN,
    TOKENS,
    VERDICTS,
    Chance,
    Claim,
    Finding,
    Inputs,
    Measurements,
    Rule,
    Table,
    Tested,
    Untested,
    finite,
    judge,
    roles,
    table_of,
)
from generators.site.words import caption, environment
from generators.tokens.frequency import Frequency
from generators.tokens.vocabulary import Token, Vocabulary, assemble
from tests import synthetic

V, D, LAYERS = 900, 48, 3
CLUMP, LONG = range(100, 140), range(200, 210)  # tokens that huddle, and tokens that other tokens yield
every_finding = pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.name)


# Models without structure, but for what some figures need to be there


def weights_of(seed: int, planted: bool) -> dict[str, np.ndarray]:
    """Return Gaussian weights; planted, some of their tokens huddle and some are long."""
    arch = synthetic.architecture(d_model=D, n_layer=LAYERS)
    rng = np.random.default_rng([seed, 9])
    E = rng.standard_normal((V, D), dtype=np.float32)
    if planted:
        E[CLUMP] = 3.5 * synthetic.orthonormal(D, 1, seed)[:, 0] + 0.05 * E[CLUMP]
        E[LONG] *= 4
    return {**synthetic.gaussian_weights(arch, seed), "token_embedding": E}


def vocabulary() -> Vocabulary:
    marks = np.random.default_rng(3).random(V) < 0.5
    return assemble({i: Token(f"w{i}".encode(), f"w{i}", bool(marks[i]), special=i < 3) for i in range(V)}, V)


def frequencies() -> tuple[Frequency, ...]:
    counts = np.random.default_rng(0).zipf(1.4, V).clip(max=10**6).astype(float)
    counts[CLUMP] = 0
    return (Frequency("counts", "counts", np.log1p(counts), 1.0, False, "0"),)


@cache
def scenes() -> dict[str, Inputs]:
    """Return the inputs to measure from: without structure, with what is planted, with no more than is needed."""
    arch = replace(synthetic.architecture(d_model=D, n_layer=LAYERS), vocab_size=V)
    gaussian = weights_of(0, planted=False)
    untied = {**weights_of(1, planted=True), "unembedding": gaussian["token_embedding"]}
    return {
        "gaussian": Inputs(gaussian, arch, vocabulary(), frequencies()),
        "planted": Inputs(weights_of(1, planted=True), arch, vocabulary(), frequencies()),
        "untied": Inputs(untied, replace(arch, tied=False, causal=False), vocabulary(), frequencies()),
        "bare": Inputs(weights_of(2, planted=False), arch),
    }


@cache
def measured(finding: Finding[Any], scene: str) -> Measurements[Any]:
    inputs = scenes()[scene]
    if scene == "bare":
        needed = roles(finding.needs, LAYERS)
        inputs = replace(inputs, weights={role: inputs.weights[role] for role in needed})
    return finding.measure(inputs)


every_scene = pytest.mark.parametrize("scene", ["gaussian", "planted", "untied", "bare"])


# Metrics and tables


@every_scene
@every_finding
def test_stored_metrics_are_those_that_were_measured(finding, scene):
    metrics = measured(finding, scene).metrics
    stored = json.dumps(metrics, allow_nan=False)
    assert json.loads(stored) == metrics, "lists and not tuples, strings as keys"
    assert TypeAdapter(finding.metrics).validate_json(stored, strict=True) == metrics, "nothing that isn't declared"


@every_finding
def test_metrics_with_a_key_missing_are_refused(finding):
    stored = json.loads(json.dumps(measured(finding, "gaussian").metrics))
    adapter = TypeAdapter(finding.metrics)
    for key in stored:
        with pytest.raises(ValidationError, match=key):
            adapter.validate_python({name: value for name, value in stored.items() if name != key})


def types_in(annotation: Any) -> set[Any]:
    """Return every type that an annotation is made of, and what the keys of its typed dicts are made of."""
    if typing.is_typeddict(annotation) or hasattr(annotation, "__total__"):
        inner = [*typing.get_type_hints(annotation).values()]
    else:
        inner = [a for a in typing.get_args(annotation) if isinstance(a, type | types.GenericAlias | types.UnionType)]
        inner += [a for a in typing.get_args(annotation) if typing.get_origin(a) is not None or a is Any]
    return {annotation}.union(*(types_in(part) for part in inner)) if inner else {annotation}


@every_finding
def test_no_metric_is_of_any_type(finding):
    found = types_in(finding.metrics)
    assert Any not in found
    assert object not in found
    assert dict not in found, "what is in it?"
    assert list not in found, "what is in it?"


@every_scene
@every_finding
def test_tables_are_plain_and_rectangular(finding, scene):
    for name, table in measured(finding, scene).tables.items():
        json.dumps(table.rows, allow_nan=False)
        assert len(set(table.columns)) == len(table.columns), name
        assert all(len(row) == len(table.columns) for row in table.rows), name
        assert table.title, name


@every_scene
@every_finding
def test_arrays_are_arrays_of_numbers_or_text(finding, scene):
    for name, array in measured(finding, scene).arrays.items():
        assert isinstance(array, np.ndarray), name
        assert array.dtype.kind in "fiubU", name
        if array.dtype.kind == "f":
            assert array.itemsize <= 4, f"{name} is shown, not calculated with"


# What a finding declares


class Declared(Mapping):
    """Tensors of which a finding may ask for those that it declares; `asked` are those that it did."""

    def __init__(self, weights: Mapping[str, np.ndarray], declared: list[str]) -> None:
        self.weights, self.declared = weights, declared
        self.asked: set[str] = set()

    def __getitem__(self, role: str) -> np.ndarray:
        assert role in self.declared, f"{role} is read and not declared"
        self.asked.add(role)
        return self.weights[role]

    def __contains__(self, role: object) -> bool:
        assert role in self.declared, f"{role} is looked for and not declared"
        self.asked.add(str(role))
        return role in self.weights

    def __iter__(self):
        return iter([role for role in self.declared if role in self.weights])

    def __len__(self) -> int:
        return len(list(iter(self)))


class Fields:
    """An architecture of which only what is declared can be read; `asked` is what was."""

    def __init__(self, architecture: Architecture, declared: tuple[str, ...]) -> None:
        self._architecture, self._declared = architecture, declared
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        assert name in self._declared, f"{name} of the config is read and not declared"
        self.asked.add(name)
        return getattr(self._architecture, name)


@dataclass
class Watched:
    """Inputs of which a finding may read what it declares; `asked` are the capabilities that it asked for."""

    finding: Finding[Any]
    inputs: Inputs
    asked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        declared = roles((*self.finding.needs, *self.finding.uses), self.inputs.architecture.n_layer)
        self.weights = Declared(self.inputs.weights, declared)
        self.architecture = Fields(self.inputs.architecture, self.finding.config)

    @property
    def vocabulary(self) -> Any:
        return self._capability(TOKENS, self.inputs.vocabulary)

    @property
    def frequencies(self) -> Any:
        return self._capability(FREQUENCIES, self.inputs.frequencies)

    @property
    def run(self) -> Any:
        return self._capability(RUN, self.inputs.run)

    def _capability(self, name: str, what: Any) -> Any:
        assert self.finding.can_use(name), f"{name} are read and not declared"
        self.asked.add(name)
        return what


@every_finding
def test_what_is_read_is_declared_and_what_is_declared_is_read(finding):
    watched = [Watched(finding, inputs) for name, inputs in scenes().items() if name != "bare"]
    for each in watched:
        finding.measure(typing.cast(Inputs, each))
    assert set().union(*(each.architecture.asked for each in watched)) == set(finding.config)
    declared = {name for name in (*finding.needs, *finding.uses) if name in CAPABILITIES}
    assert set().union(*(each.asked for each in watched)) == declared
    there = {role for role in watched[0].weights.declared if any(role in each.inputs.weights for each in watched)}
    assert set().union(*(each.weights.asked for each in watched)) >= there


@every_finding
def test_declarations_mean_something(finding):
    known = {f.name for f in fields(Architecture)}
    assert set(finding.config) <= known
    wanted = (*finding.needs, *finding.uses)
    assert len(set(wanted)) == len(wanted)
    there = set().union(*(inputs.weights for inputs in scenes().values()))
    for role in wanted:
        assert role in CAPABILITIES or set(roles((role,), LAYERS)) & there, role


@every_finding
def test_measuring_knows_no_disk_no_page_and_no_drawing(finding):
    ours = ("generators.base.", "generators.maths.", f"generators.findings.{finding.name}.")
    shared = {"generators.findings.contract", "generators.findings.token_cells"}
    for module in modules_in(PACKAGE, finding.measure.__module__):
        assert module in shared or module.startswith(ours), module


def test_findings_are_told_apart():
    assert [f.name for f in FINDINGS] == [f.name for f in sorted(FINDINGS, key=lambda f: f.order)]
    for unique in (
        [finding.order for finding in FINDINGS],
        [finding.name for finding in FINDINGS],
        [finding.title for finding in FINDINGS],
        [rule.id for finding in FINDINGS for rule in finding.rules],
        [rule.short for finding in FINDINGS for rule in finding.rules],
    ):
        assert len(set(unique)) == len(unique)


# Rules and claims


@every_finding
def test_rules_are_told_in_full(finding):
    for rule in finding.rules:
        assert rule.id
        assert rule.short
        assert rule.value
        assert rule.statement.endswith(".")
        assert (rule.holds is None) == bool(rule.holds_as), "a number or, where it depends on chance, words"
        if rule.holds is not None and rule.partly is not None:
            assert rule.reached(rule.holds, rule.partly), "what holds must hold partly"


@every_scene
@every_finding
def test_every_rule_gives_a_claim(finding, scene):
    claims = finding.claims(measured(finding, scene))
    assert [claim.id for claim in claims] == [rule.id for rule in finding.rules]
    for claim in claims:
        assert claim.finding == finding.name
        assert claim.verdict in VERDICTS
        assert (claim.value is None) or claim.verdict != "untested"
        assert claim.answer.endswith("."), claim.answer
        assert "nan" not in claim.answer
        assert "None" not in claim.answer
    json.dumps([[claim.value, claim.threshold, claim.baseline, claim.interval] for claim in claims], allow_nan=False)


@every_scene
@every_finding
def test_claims_and_figures_need_no_more_than_what_is_stored(finding, scene):
    fresh = measured(finding, scene)
    tables = {
        name: Table(t.title, t.columns, tuple(map(tuple, json.loads(json.dumps(t.rows)))))
        for name, t in fresh.tables.items()
    }
    stored = Measurements(json.loads(json.dumps(fresh.metrics)), tables, fresh.arrays)
    assert finding.claims(stored) == finding.claims(fresh)
    assert [figure.name for figure in finding.figures(stored)] == [figure.name for figure in finding.figures(fresh)]


# Figures and their words


def template(finding: Finding[Any]) -> nodes.Template:
    made = environment()
    assert made.loader is not None
    return made.parse(made.loader.get_source(made, f"findings/{finding.name}.md.j2")[0])


def macros(finding: Finding[Any]) -> dict[str, tuple[str, ...]]:
    """Return the macros of a finding's template with their arguments."""
    return {m.name: tuple(a.name for a in m.args) for m in template(finding).find_all(nodes.Macro)}


def macros_of_pages() -> set[str]:
    """Return what pages ask of a finding's words."""
    made = environment()
    asked: set[str] = set()
    for name in made.list_templates(filter_func=lambda name: name.endswith(".j2") and "/" not in name):
        page = made.parse(typing.cast(jinja2.BaseLoader, made.loader).get_source(made, name)[0])
        attributes = [node for node in page.find_all(nodes.Getattr) if isinstance(node.node, nodes.Name)]
        asked |= {node.attr for node in attributes if typing.cast(nodes.Name, node.node).name == "words"}
    return asked


@cache
def figure_names(finding: Finding[Any]) -> set[str]:
    return {figure.name for scene in scenes() for figure in finding.figures(measured(finding, scene))}


@every_scene
@every_finding
def test_every_figure_has_words(finding, scene):
    result = measured(finding, scene)
    figures = finding.figures(result)
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        words = caption(finding.name, figure.name, result)
        for text in (words.how_to_read, words.alt):
            assert text.endswith("."), text
            assert not {"nan", "None", "inf"} & set(text.replace(",", " ").replace(".", " ").split()), text
        assert figure.title
        assert not figure.title.endswith(".")


@every_finding
def test_no_words_are_left_over(finding):
    """Every macro is a caption or alt text of a figure, or asked for by a page, or used by another one."""
    wanted = {f"{kind}_{name.replace('-', '_')}" for name in figure_names(finding) for kind in ("caption", "alt")}
    found = macros(finding)
    about_figures = {name for name, arguments in found.items() if arguments == ("metrics", "arrays")}
    about_figures = {name for name in about_figures if name.startswith(("caption_", "alt_"))}
    assert about_figures == wanted
    called = {call.node.name for call in template(finding).find_all(nodes.Call) if isinstance(call.node, nodes.Name)}
    assert set(found) - wanted - macros_of_pages() <= called
    assert {"question", "observation", "definition", "change_mind", "details"} <= set(found)


def test_no_template_is_left_over():
    names = environment().list_templates(filter_func=lambda name: name.startswith("findings/"))
    assert sorted(names) == sorted(f"findings/{finding.name}.md.j2" for finding in FINDINGS)


@every_finding
def test_the_signature_is_a_figure(finding):
    assert finding.signature in figure_names(finding)


def test_figures_of_all_findings_have_names_of_their_own():
    names = [name for finding in FINDINGS for name in figure_names(finding)]
    assert len(set(names)) == len(names)


# How a rule judges

NOTHING: Measurements[dict[str, float]] = Measurements({})
ANSWERS = {"holds": "Yes.", "partly": "Somewhat.", "fails": "No."}


def rule_of(tested: Tested | Untested, **changed: Any) -> Rule[dict[str, float]]:
    plain = Rule("one", "short", "It is so.", "the number", "at least", lambda _: tested, 2.0, 1.0, "units")
    return replace(plain, **changed)


def judged(tested: Tested | Untested, **changed: Any) -> Claim:
    return judge("some", rule_of(tested, **changed), NOTHING)


@pytest.mark.parametrize(("sense", "value", "verdict"), [
    ("at least", 2.0, "holds"), ("at least", 1.999, "partly"), ("at least", 1.0, "partly"),
    ("at least", 0.999, "fails"), ("at least", 1e9, "holds"), ("at least", -5, "fails"),
    ("at most", 1.0, "holds"), ("at most", 1.001, "partly"), ("at most", 2.0, "partly"),
    ("at most", 2.001, "fails"), ("at most", -5, "holds"), ("at most", 1e9, "fails"),
])  # fmt: skip
def test_a_threshold_itself_is_reached(sense, value, verdict):
    holds, partly = (2.0, 1.0) if sense == "at least" else (1.0, 2.0)
    claim = judged(Tested(value, ANSWERS), sense=sense, holds=holds, partly=partly)
    assert (claim.verdict, claim.value, claim.threshold) == (verdict, value, holds)
    assert claim.answer == ANSWERS[verdict]


@pytest.mark.parametrize(("also", "also_partly", "value", "verdict"), [
    (True, None, 3.0, "holds"), (False, None, 3.0, "fails"), (False, True, 3.0, "partly"),
    (False, False, 3.0, "fails"), (True, False, 3.0, "holds"), (True, False, 1.5, "fails"),
    (False, True, 1.5, "partly"), (False, None, 1.5, "fails"), (True, True, 0.5, "fails"),
])  # fmt: skip
def test_a_further_condition_must_be_met(also, also_partly, value, verdict):
    assert judged(Tested(value, ANSWERS, also=also, also_partly=also_partly)).verdict == verdict


@pytest.mark.parametrize(("value", "verdict"), [(9.0, "fails"), (10.0, "partly"), (19.0, "partly"), (20.0, "holds")])
def test_thresholds_relative_to_chance_replace_those_of_the_rule(value, verdict):
    claim = judged(Tested(value, ANSWERS, holds_at=20.0, partly_at=10.0))
    assert (claim.verdict, claim.threshold) == (verdict, 20.0)


def test_without_a_threshold_nothing_reaches_it():
    assert judged(Tested(1e9, ANSWERS), holds=None, partly=None).verdict == "fails"
    assert judged(Tested(1e9, ANSWERS), holds=None).verdict == "partly"
    assert judged(Tested(1.5, ANSWERS), partly=None).verdict == "fails"


def test_what_has_no_value_fails_whatever_else_is_met():
    claim = judged(Tested(None, ANSWERS))
    assert (claim.verdict, claim.value, claim.threshold, claim.answer) == ("fails", None, 2.0, "No.")


def test_a_value_of_0_is_a_value():
    assert judged(Tested(0.0, ANSWERS), holds=0.0, partly=None).verdict == "holds"
    assert judged(Tested(3.0, ANSWERS, holds_at=0.0)).threshold == 0.0


def test_answers_that_are_not_given_are_those_of_failing():
    assert judged(Tested(3.0, {"fails": "No."})).answer == "No."
    assert judged(Tested(1.5, {"holds": "Yes.", "fails": "No."})).answer == "No."
    assert judged(Tested(3.0, "One for all.")).answer == "One for all."


def test_untested_claims_say_why_and_nothing_else():
    claim = judged(Untested("There are none."))
    assert (claim.verdict, claim.answer, claim.threshold) == ("untested", "There are none.", 2.0)
    assert (claim.value, claim.interval, claim.baseline, claim.chance) == (None, None, None, None)


@every_finding
def test_a_finding_that_was_not_measured_leaves_every_claim_untested(finding):
    claims = finding.untested("The weights aren't here.")
    assert [claim.id for claim in claims] == [rule.id for rule in finding.rules]
    assert {(claim.verdict, claim.answer) for claim in claims} <= {("untested", "The weights aren't here.")}


def test_a_claim_carries_what_its_rule_says():
    claim = judged(Tested(3.0, ANSWERS, baseline=0.5))
    assert (claim.id, claim.finding, claim.statement, claim.unit) == ("one", "some", "It is so.", "units")
    assert (claim.baseline, claim.chance) == (0.5, None)


def test_the_median_of_what_was_drawn_is_the_baseline():
    chance = Chance("shuffled", median=0.25, limit=0.75, draws=100)
    claim = judged(Tested(3.0, ANSWERS, baseline=0.5, chance=chance))
    assert (claim.baseline, claim.chance) == (0.25, chance)


@pytest.mark.parametrize(("interval", "close"), [
    ((1.9, 2.1), True), ((2.1, 2.3), False), ((1.0, 1.9), False), ((2.0, 2.5), False), (None, False),
])  # fmt: skip
def test_a_verdict_is_close_when_its_interval_holds_the_threshold(interval, close):
    assert judged(Tested(2.05, ANSWERS, interval=interval)).close is close
    assert judged(Tested(2.05, ANSWERS, interval=interval), holds=None).close is False


# What findings are made with


def test_roles_stand_for_every_layer_and_capabilities_for_none():
    patterns = ("position_embedding", TOKENS, "blocks.*.ln1.gain", FREQUENCIES, RUN)
    assert roles(patterns, 2) == ["position_embedding", "blocks.0.ln1.gain", "blocks.1.ln1.gain"]


def test_a_table_is_read_by_the_names_of_its_columns():
    table = table_of("Two", ("b", "a"), [{"a": 1, "b": 2, "c": 3}, {"a": 4, "b": 5, "c": 6}])
    assert (table.columns, table.rows) == (("b", "a"), ((2, 1), (5, 4)))
    assert table.named() == [{"b": 2, "a": 1}, {"b": 5, "a": 4}]
    assert table.column("a") == [1, 4]
    with pytest.raises(ValueError, match="not in"):
        table.column("c")
    with pytest.raises(KeyError):
        table_of("One", ("b", "a"), [{"b": 2}])


@pytest.mark.parametrize(
    ("value", "stored"), [(1.5, 1.5), (np.float32(0.5), 0.5), (np.nan, None), (np.inf, None), (0, 0.0)]
)
def test_what_is_not_finite_is_stored_as_absent(value, stored):
    found = finite(value)
    assert found == stored
    assert found is None or type(found) is float
