"""Damaged results are found and made again; a report takes the place of nothing else."""

import re
from pathlib import Path

import pytest

from generators import findings as all_findings
from generators.checkpoint.registry import Registry
from generators.compute.results import Store
from generators.site import report
from generators.site.build import Made
from generators.site.pages import Rendered
from tests.cli.conftest import BAD_INPUT, SOME_FAILED, is_a_sentence, refused, results_of
from tests.compute.harness import raising
from tests.compute.test_results import damage
from tests.toy_findings import toy

REPORT = "report", "./good", "--jobs", "1"  # another process has no toy findings

HARM = [b"", b"{}", b"{\xff", b"[" * 100_000]


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize(("name", "code"), [("helix", SOME_FAILED), ("model", BAD_INPUT)])
def test_damaged_results_are_a_sentence_and_made_anew(atlas, project, harm, name, code):
    whole = results_of(project)
    (project / "results" / "good" / f"{name}.json").write_bytes(harm)
    shown = atlas("show", "good")
    assert f"{name}.json are damaged" in refused(shown, code)
    listed, again = atlas("models"), atlas("compute", "good")
    assert (listed.code, again.code) == (0, 0)
    if name == "model":
        assert listed.out.splitlines()[0].split("\t")[3] == "damaged"
    else:
        assert "helix: missing: The stored results" in shown.out
        assert "The first norm turns position channels down" in shown.out  # the other findings are shown
        assert "good: helix is computed again: The stored results" in again.err
        assert re.search(r"^good: computed helix; already stored: ", again.err, re.MULTILINE)
    assert results_of(project) == whole
    assert atlas("verify").out == "All results in results/ are intact.\n"


def test_results_that_cannot_be_written_are_a_sentence(atlas, project):
    (project / "taken").write_text("a file, not a folder")
    assert "can't be written" in refused(atlas("compute", "good", "--results", "taken"), SOME_FAILED)


@pytest.fixture
def only_computed(monkeypatch) -> list[tuple[Registry, Path]]:
    """Have two findings computed, of which one breaks, and nothing drawn; note what would be made into pages."""
    noted: list[tuple[Registry, Path]] = []

    def make_pages(registry, store, *_, **__):
        assert store.finding("good", "whole").status == "computed"
        noted.append((registry, store.root))
        return Made(Rendered([], [], ["A figure is damaged."]), [])

    broken = toy("broken", measure=raising(ZeroDivisionError("a bug")))
    monkeypatch.setattr(all_findings, "FINDINGS", (broken, toy("whole")))
    monkeypatch.setattr(report, "make_pages", make_pages)
    monkeypatch.setattr(report, "run_mkdocs", lambda *_, **__: None)
    return noted


def test_a_report_is_replaced_unless_somebody_put_a_file_there(atlas, project, only_computed):
    for said in ("A figure is damaged.", "A figure is damaged.", "holds notes.md, which is no part of a report"):
        assert said in atlas(*REPORT, "--output", "there").err
        (project / "there" / "notes.md").write_text("mine") if only_computed[1:] else None
    assert (project / "there" / "notes.md").read_text() == "mine"


def test_a_report_that_lacks_something_says_so_and_is_exit_1(atlas, project, only_computed):
    run = atlas(*REPORT, "--output", "there")
    assert run.code == SOME_FAILED
    assert "atlas: broken failed: ZeroDivisionError: a bug\natlas: A figure is damaged.\n" in run.err
    assert run.out == "The report is in there/; open there/index.html in a browser.\n"


def test_a_report_needs_no_registry_and_keeps_its_results_to_itself(atlas, unharmed, only_computed):
    (unharmed / "models.yml").unlink()
    assert "report/" in atlas(*REPORT).out
    ((registry, root),) = only_computed
    assert [model.name for model in registry.models] == ["good"]
    assert root == Path("report") / ".results"
    assert sorted(path.name for path in (root / "good").glob("*.json")) == ["broken.json", "model.json", "whole.json"]


def the_arrays_of(project: Path, finding: str) -> Path:
    (path,) = (project / "results" / "good").glob(f"{finding}.*.npz")
    return path


def test_verify_names_everything_that_is_wrong(atlas, project):
    store = Store(project / "results")
    for finding in store.finding_names("good"):
        store.save_finding("headless", *store.load("good", finding))
    helix, gains, model = (project / "results" / "good" / f"{name}.json" for name in ("helix", "gains", "model"))
    helix.write_text(helix.read_text().replace('"status": "computed"', '"status": "missing"'))
    damage(the_arrays_of(project, "channels"), "bit")
    the_arrays_of(project, "attention").unlink()
    gains.write_bytes(gains.read_bytes()[:100])
    model.write_text(model.read_text().replace("Good model", "Better model"))
    run = atlas("verify")
    assert (run.code, run.out) == (SOME_FAILED, "")
    lines = sorted(run.err.splitlines())
    assert all(is_a_sentence(line) for line in lines)
    wrong = [
        "The stored arrays results/good/attention.*.npz can't be read: No such file or directory.",
        "The stored arrays results/good/channels.*.npz are damaged: their digest is another one.",
        "The stored results results/good/gains.json are damaged: they aren't JSON.",
        "The stored results results/good/helix.json are damaged: their digest is another one.",
        "The stored results results/good/model.json are damaged: their digest is another one.",
        "results/headless has results but does not say of which model.",
    ]
    assert [re.sub(r"\.[0-9a-f]{16}\.npz", ".*.npz", line).removeprefix("atlas: ") for line in lines] == wrong
