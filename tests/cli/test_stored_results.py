"""Damaged results are found and made again; a report takes the place of nothing else."""

import re
import shutil
from pathlib import Path

import pytest

from generators import findings as all_findings
from generators.checkpoint.registry import Registry
from tests.cli.conftest import BAD_INPUT, SOME_FAILED, is_a_sentence, refused, results_of
from tests.toy_findings import toy

HARM = [b"", b"{}", b"{\xff", b"[" * 100_000]


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_finding_is_a_sentence_and_computed_anew(atlas, project, harm):
    whole = results_of(project)
    (project / "results" / "good" / "helix.json").write_bytes(harm)
    shown = atlas("show", "good")
    assert shown.code == SOME_FAILED
    assert is_a_sentence(shown.err)
    assert "helix.json are damaged" in shown.err
    assert "helix: missing: The stored results" in shown.out
    assert "The first norm dials positions down." in shown.out  # the other findings are shown
    assert atlas("models").code == 0
    again = atlas("compute", "good")
    assert again.code == 0
    assert "good: helix is computed again: The stored results" in again.err
    assert re.search(r"^good: computed helix; already stored: ", again.err, re.MULTILINE)
    assert results_of(project) == whole


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_header_is_a_sentence_and_written_anew(atlas, project, harm):
    whole = results_of(project)
    (project / "results" / "good" / "model.json").write_bytes(harm)
    shown = atlas("show", "good")
    assert shown.code == BAD_INPUT
    assert is_a_sentence(shown.err)
    listed = atlas("models")
    assert listed.code == 0
    assert listed.out.splitlines()[0].split("\t")[3] == "damaged"
    assert atlas("compute", "good").code == 0
    assert results_of(project) == whole


def test_results_that_cannot_be_written_are_a_sentence(atlas, project):
    (project / "taken").write_text("a file, not a folder")
    refused(atlas("compute", "good", "--results", "taken"), SOME_FAILED)


# A report on one model; tests/site/test_report.py looks at it


@pytest.fixture
def nothing_made(monkeypatch) -> None:
    """Have no report made: bad input is found before anything is."""
    from generators.site import report

    for work in ("compute_model", "make_pages", "run_mkdocs"):
        monkeypatch.setattr(report, work, lambda *_, **__: pytest.fail("something was made"))


@pytest.mark.parametrize("model", ["nonsense", "./nowhere", "<script>"])
def test_a_report_on_what_is_no_model_is_a_sentence(atlas, project, nothing_made, model):
    refused(atlas("report", model))
    assert not (project / "report").exists()


@pytest.mark.parametrize("taken", ["file", "folder"])
def test_a_report_takes_the_place_of_nothing_else(atlas, project, nothing_made, taken):
    place = project / "my-thesis"
    if taken == "folder":
        place.mkdir()
        (place / "chapter-1.txt").write_text("years of work")
    else:
        place.write_text("years of work")
    assert (
        refused(atlas("report", "./good", "--output", "my-thesis"))
        == "atlas: my-thesis is there and is no report; name another place with --output.\n"
    )
    assert (place / "chapter-1.txt" if taken == "folder" else place).read_text() == "years of work"


@pytest.fixture
def only_computed(monkeypatch) -> list[tuple[Registry, Path]]:
    """Have two findings computed, of which one breaks, and nothing drawn; note what would be made into pages."""
    from generators.site import report
    from generators.site.build import Made
    from generators.site.pages import Rendered

    noted: list[tuple[Registry, Path]] = []

    def breaking(inputs):
        raise ZeroDivisionError("a bug")

    def make_pages(registry, store, *_, **__):
        assert store.finding("good", "whole").status == "computed"
        noted.append((registry, store.root))
        return Made(Rendered([], [], ["A figure is damaged."]), [])

    monkeypatch.setattr(all_findings, "FINDINGS", (toy("broken", measure=breaking), toy("whole")))
    monkeypatch.setattr(report, "make_pages", make_pages)
    monkeypatch.setattr(report, "run_mkdocs", lambda *_, **__: None)
    return noted


def test_a_report_that_lacks_something_says_so_and_is_exit_1(atlas, project, only_computed):
    run = atlas("report", "./good", "--output", "there")
    assert run.code == SOME_FAILED
    assert "atlas: broken failed: ZeroDivisionError: a bug\natlas: A figure is damaged.\n" in run.err
    assert run.out == "The report is in there/; open there/index.html in a browser.\n"


def test_a_report_needs_no_registry_and_keeps_its_results_to_itself(atlas, unharmed, only_computed):
    (unharmed / "models.yml").unlink()
    assert "report/" in atlas("report", "./good").out
    ((registry, root),) = only_computed
    assert [model.name for model in registry.models] == ["good"]
    assert root == Path("report") / ".results"
    assert sorted(path.name for path in (root / "good").glob("*.json")) == ["broken.json", "model.json", "whole.json"]


# Are results what was stored?


def flipped(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])


def the_arrays_of(project: Path, finding: str) -> Path:
    (path,) = (project / "results" / "good").glob(f"{finding}.*.npz")
    return path


def test_verify_says_that_results_are_what_was_stored(atlas, unharmed):
    run = atlas("verify")
    assert (run.code, run.out, run.err) == (0, "All results in results/ are intact.\n", "")


def test_verify_names_everything_that_is_wrong(atlas, project):
    shutil.copytree(project / "results" / "good", project / "results" / "headless")
    (project / "results" / "headless" / "model.json").unlink()
    helix, gains, model = (project / "results" / "good" / f"{name}.json" for name in ("helix", "gains", "model"))
    helix.write_text(helix.read_text().replace('"status": "computed"', '"status": "missing"'))
    flipped(the_arrays_of(project, "channels"))
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


# The better of two folders of results


@pytest.fixture
def other(project) -> Path:
    """Return a copy of the results, as another folder of them."""
    return shutil.copytree(project / "results", project / "other")


def test_adopt_takes_over_what_is_missing_or_damaged(atlas, project, other):
    whole = results_of(project)
    (project / "results" / "good" / "gains.json").unlink()
    flipped(the_arrays_of(project, "helix"))
    run = atlas("adopt", "other")
    assert (run.code, run.out, run.err) == (0, "Copied from other/: good/gains, good/helix\n", "")
    assert results_of(project) == whole
    assert atlas("verify").code == 0


@pytest.mark.parametrize("place", ["results", "nowhere"])
def test_adopt_of_nothing_better_changes_nothing(atlas, unharmed, place):
    run = atlas("adopt", place)
    assert (run.code, run.out) == (0, f"Copied from {place}/: nothing\n")
