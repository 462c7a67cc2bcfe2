"""`atlas report` that was stopped: what it measured is stored in the report, shown, and not measured again."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from generators import options
from generators.base.errors import InputError
from generators.compute import jobs
from generators.findings import FINDINGS
from generators.site import report as module
from tests.checkpoints import write_checkpoint
from tests.compute.test_results import TINY

REPORT = ("report", "./my-model", "--skip-runs", "--jobs", "1")  # in this process, which the tests watch


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Return the findings that are measured, in order; `stop_at` presses Ctrl-C at the n-th."""
    monkeypatch.chdir(tmp_path)
    write_checkpoint(tmp_path / "my-model")
    measure = jobs.measure

    class Measured(list):
        stop_at = None

        def __call__(self, planned, *given):
            if len(self) == self.stop_at:
                raise KeyboardInterrupt
            self.append(planned.finding.name)
            return measure(planned, *given)

    found = Measured()
    monkeypatch.setattr(jobs, "measure", found)
    return found


def pressed(*given, **named):
    raise KeyboardInterrupt


def not_measured(report: Path) -> list[str]:
    """Return the findings of which the report's first page says that they were not measured."""
    page = re.sub(r"<[^>]*>", "", (report / "index.html").read_text("utf-8"))
    said = re.search(r"findings were not measured: (.*?)\. Run the same atlas report command again", page, re.DOTALL)
    assert ("This report isn't finished" in page) == (said is not None)
    titles = {finding.title: finding.name for finding in FINDINGS}
    return [titles[title] for title in said[1].split(", ")] if said else []


def test_a_page_of_what_is_done_and_the_next_call_goes_on(atlas, measured):
    measured.stop_at = 3
    run = atlas(*REPORT)
    assert run.code == 130
    assert run.out == ""
    stored = module.Store(Path("report") / module.KEPT).finding_names("my-model")
    assert run.err.splitlines()[-1] == (
        "Stopped. What was measured is in the report: open report/index.html in a browser. The same command goes on."
    )
    left = not_measured(Path("report"))
    assert sorted([*stored, *left]) == sorted(finding.name for finding in FINDINGS)
    assert len(left) > 3 and not {*left} & {*measured[:3]}
    assert "This report isn't finished" in (Path("report") / "models" / "my-model" / "index.html").read_text("utf-8")
    first, measured.stop_at = list(measured), None
    run = atlas(*REPORT)
    assert run.code == 0
    assert run.out == "The report is in report/; open report/index.html in a browser.\n"
    assert measured[:3] == first and len(set(measured)) == len(measured)
    assert not_measured(Path("report")) == []
    document = json.loads(Path("report/data/my-model/findings.json").read_text())
    assert "computed" in {record["status"] for record in document["findings"].values()}
    assert atlas(*REPORT).code == 0
    assert len(set(measured)) == len(measured)


def test_stopped_before_anything_was_measured_nothing_is_left(atlas, measured, monkeypatch):
    monkeypatch.setattr(jobs, "open_model", pressed)
    run = atlas(*REPORT)
    assert (run.code, run.err) == (130, "Stopped. Nothing was measured yet.\n")
    assert not Path("report").exists()


def test_stopped_again_while_the_page_is_written_what_is_stored_stays(atlas, measured, monkeypatch):
    measured.stop_at = 2
    with monkeypatch.context() as patch:
        patch.setattr(module, "make_pages", pressed)
        assert atlas(*REPORT).code == 130
    assert not Path("report/index.html").exists()
    before, measured.stop_at = list(measured), None
    assert atlas(*REPORT).code == 0
    assert measured[:2] == before and len(set(measured)) == len(measured)


def test_a_report_of_another_model_takes_its_place(atlas, measured):
    write_checkpoint(Path("other"), seed=5)
    assert atlas(*REPORT).code == 0
    assert atlas("report", "./other", *REPORT[2:]).code == 0
    assert [path.name for path in Path("report/models").iterdir()] == ["other"]
    assert module.Store(Path("report") / module.KEPT).folders() == ["other"]


def test_results_of_others_and_what_comes_meanwhile_stay(atlas, measured, monkeypatch):
    module.Store(Path("report") / module.KEPT).save_model(TINY)
    run = atlas(*REPORT)
    assert (run.code, "has results of tiny and no report" in run.err) == (2, True)
    assert module.Store(Path("report") / module.KEPT).folders() == ["tiny"]
    shutil.rmtree("report")
    made = module.make_pages

    def meanwhile(*given, **named):
        Path("report/notes.txt").write_text("mine")
        return made(*given, **named)

    monkeypatch.setattr(module, "make_pages", meanwhile)
    run = atlas(*REPORT)
    assert (run.code, "holds notes.txt" in run.err) == (2, True)
    assert Path("report/notes.txt").read_text() == "mine"


def test_two_reports_at_one_place_take_turns(atlas, measured, monkeypatch):
    codes = []
    made = module.make_pages

    def meanwhile(*given, **named):
        codes.append(atlas(*REPORT).code)
        return made(*given, **named)

    monkeypatch.setattr(module, "make_pages", meanwhile)
    assert (atlas(*REPORT).code, codes) == (0, [1])


def test_a_checkpoint_that_cannot_be_used_leaves_no_folder(atlas, measured):
    Path("my-model/config.json").write_text("{")
    assert atlas(*REPORT).code == 2
    assert not Path("report").exists()


@pytest.mark.parametrize(("arguments", "budget_s"), [([], 60.0), (["--budget", "10"], 600.0)])
def test_a_report_reads_text_for_a_minute_unless_it_may_take_longer(
    atlas, measured, monkeypatch, arguments, budget_s
):
    asked = []

    def noted(*given, settings, processes):
        asked.append((settings.budget_s, processes))
        raise InputError("Enough.")

    monkeypatch.setattr(module, "compute_model", noted)
    assert atlas("report", "./my-model", *arguments).code == 2
    assert asked == [(budget_s, min(2, os.cpu_count()))], "two processes, where there are two cores"
    assert options.DEFAULT_BUDGET == 10.0, "other commands have ten minutes, as before"
