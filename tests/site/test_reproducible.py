"""Two builds of one model's results, in circumstances that differ, give the same files, byte for byte."""

import shutil

from tests.conftest import ROOT
from tests.processes import copied
from tests.reproducible import CIRCUMSTANCES, differing, rendered

MODEL = "openai-gpt"
REGISTRY = f"- {{name: {MODEL}, title: GPT-1, sources: [{{folder: elsewhere}}]}}\n"


def test_two_builds_give_the_same_files(tmp_path):
    sites = []
    for folder, circumstances in zip(("first", "second, longer/in it"), CIRCUMSTANCES, strict=True):
        project = copied(ROOT, tmp_path / folder, ("mkdocs.yml", "site_src"))
        (project / "models.yml").write_text(REGISTRY)
        shutil.rmtree(project / "site_src" / "notebooks")  # executed by `make reproducible`, which takes minutes
        shutil.copytree(ROOT / "results" / MODEL, project / "results" / MODEL)
        sites.append(rendered(project, circumstances))
    assert len(sites[0]) > 60
    assert differing(*sites) == []


def test_a_difference_is_shown():
    assert differing({"a": b"1", "b": b"2", "c": b"3"}, {"a": b"1", "b": b"0", "d": b"3"}) == ["b", "c", "d"]
