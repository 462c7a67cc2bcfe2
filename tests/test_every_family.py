"""One command in an empty folder with no more than a model's id on the hub: results and a page, by kind of family."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from generators import cli
from generators.checkpoint.families import families
from generators.checkpoint.registry import Registry
from generators.checkpoint.roles import Family
from generators.compute.records import ModelFindings
from generators.compute.results import Store
from generators.findings import FINDINGS
from generators.findings.helix import chance
from generators.findings.inputs import RUN
from generators.site.build import Workshop, make_pages, run_mkdocs
from generators.site.locations import packaged
from generators.site.pages import Rendered
from generators.site.questions import questions
from tests.checkpoint.fake_hub import COMMIT, at_hub, serving
from tests.checkpoint.oracle import cases
from tests.checkpoint.oracle.cases import CASES, OracleCase
from tests.conftest import Run, without_figures

UNKNOWN_FAMILIES = (OracleCase("mamba"), OracleCase("blenderbot"))  # no table knows these types


def _kind(family: Family) -> tuple[object, ...]:
    """Return what commands and pages may treat differently: the roles of a family and how positions enter."""
    weights = frozenset(role for role in (*family.slots, *family.block_slots) if not role.endswith(".bias"))
    return weights, family.positions, family.norm, family.causal, family.post_norm, family.stack, bool(family.at)


# The first family of each kind, and its first case.
TABLES = {family.name: family for family in families()}
KINDS = {_kind(TABLES[case.family]): case.family for case in reversed(CASES)}
FIRST = {case.family: case for case in reversed(CASES) if case.family in KINDS.values()}
FAMILIES = {case.family: case for case in UNKNOWN_FAMILIES} | FIRST
TOKENS = 300  # enough for findings about tokens
FEW = 99  # draws, of which one is the 99th percentile
NO_NUMBER = re.compile(r"\b(None(?! holds more)|nan|NaN|inf|undefined)\b|\{\{|\{%")


@dataclass(frozen=True)
class World:
    """What became of all models: what the command said of each, what is stored, which pages there are."""

    folder: Path
    told: Mapping[str, Run]
    rendered: Rendered

    def findings(self, name: str) -> ModelFindings:
        return next(page.findings for page in self.rendered.pages if page.name == name)

    def page(self, name: str) -> str:
        return (self.folder / "pages" / "models" / f"{name}.md").read_text("utf-8")


def hub_id(case: OracleCase) -> str:
    return f"owner/{case.type}" + (f"--{case.stack}" if case.stack else "")


def name_of(case: OracleCase) -> str:
    return hub_id(case).replace("/", "--")


def command(*arguments: str) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["atlas", *arguments])
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                cli.main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
    return Run(code, said.getvalue(), "")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pytest.importorskip("torch", reason="PyTorch isn't installed here")
    transformers = pytest.importorskip("transformers", reason="transformers isn't installed here")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    from tests.checkpoint.oracle.model import build

    folder = tmp_path_factory.mktemp("empty")
    with serving(tmp_path_factory.mktemp("hub")) as hub, pytest.MonkeyPatch.context() as patch:
        at_hub(hub, tmp_path_factory.mktemp("caches"), patch)
        patch.chdir(folder)
        for name in ("vocab_size", "decoder_vocab_size"):
            patch.setitem(cases.SMALL, name, TOKENS)
        patch.setattr(chance, "DRAWS", FEW)
        told = {}
        for case in FAMILIES.values():
            repository = hub.repository(f"owner/{case.type}")
            if not repository.exists():
                build(case).save_pretrained(repository)
            told[name_of(case)] = command("compute", hub_id(case), "--skip-runs")
        without_figures(patch)  # tests/site draws them
        store, workshop = Store(folder / "results"), _workshop(folder)
        made = make_pages(Registry(models=()), store, workshop, whole=False)
        yield World(folder, told, made.rendered)


def _workshop(folder: Path) -> Workshop:
    pages, cache, site = (folder / name for name in ("pages", "cache", "site"))
    return Workshop(packaged("site_src"), packaged("mkdocs.yml"), pages, cache, site)


@pytest.mark.parametrize("case", FAMILIES.values(), ids=lambda case: case.family)
def test_one_command_gives_results(world, case):
    told = world.told[name_of(case)]
    assert told.code == 0, told.out
    found = world.findings(name_of(case))
    source = {"kind": "hub", "place": f"owner/{case.type}", "revision": "main", "commit": COMMIT}
    assert found.model.source.model_dump() == source
    assert {record.status for record in found.findings.values()} <= {"computed", "not_applicable", "missing"}
    assert "computed" in {record.status for record in found.findings.values()}
    for record in found.findings.values():
        if record.status == "computed":
            assert record.metrics is not None
        elif record.status == "missing":
            assert record.reason == "It runs the model, which was left out (--skip-runs)."
        else:
            assert re.fullmatch(r"[A-Z].*\.", record.reason or ""), record.reason


@pytest.mark.parametrize("case", FAMILIES.values(), ids=lambda case: case.family)
def test_a_page_of_it_is_written_and_nothing_on_it_is_absent(world, case):
    page = world.page(name_of(case))
    assert [line for line in page.splitlines() if NO_NUMBER.search(line)] == []
    assert all(f"{{ #{one.name} }}" in page or f'<p id="{one.name}">' in page for one in questions())


@pytest.mark.parametrize("case", UNKNOWN_FAMILIES, ids=lambda case: case.family)
def test_of_a_type_without_a_table_what_the_token_embedding_tells_is_there(world, case):
    found = world.findings(name_of(case))
    family = f"{case.type} (read without a table)"
    assert found.model.family == family
    names = {"backbone.embeddings.weight", "model.decoder.embed_tokens.weight"}
    assert {entry.name for entry in found.tensors.values()} <= names
    assert f"{family}</dd>" in world.page(name_of(case))  # neither encoder nor decoder
    statuses = {name: record.status for name, record in found.findings.items()}
    assert {statuses[name] for name in ("frequency", "outliers", "token_svd")} == {"computed"}
    absent = ("position_scheme", "stream", "undertrained", "zero_layer")
    assert {statuses[name] for name in absent} == {"not_applicable"}


def test_of_a_rotary_decoder_the_token_side_is_computed_in_full(world):
    name = name_of(FAMILIES["llama"])
    found = world.findings(name).findings
    about_tables = {finding.name for finding in FINDINGS if "position_embedding" in finding.needs}
    without_run = {finding.name for finding in FINDINGS if RUN not in finding.needs}
    assert {one for one, record in found.items() if record.status == "not_applicable"} == about_tables
    assert {one for one, record in found.items() if record.status == "computed"} == without_run - about_tables
    assert found["helix"].reason.startswith("Positions enter as rotations")
    assert f"figures/{name}/helix" not in world.page(name)


def test_no_page_was_left_out_and_all_build_into_a_site(world):
    assert world.rendered.damaged == []
    assert {page.name for page in world.rendered.pages} == {name_of(case) for case in FAMILIES.values()}
    run_mkdocs(_workshop(world.folder), from_disk=True)
    for case in FAMILIES.values():
        page = (world.folder / "site" / "models" / name_of(case) / "index.html").read_text("utf-8")
        assert f'href="../../data/{name_of(case)}/findings.json"' in page
