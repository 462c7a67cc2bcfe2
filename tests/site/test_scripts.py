"""What scripts of pages compute, tried in node: numbers, addresses, projections, attention (`tests/site/js/`)."""

import shutil
import subprocess

from tests.site.conftest import ROOT


def test_what_scripts_compute() -> None:
    node = shutil.which("node")
    assert node, "scripts are tried in node, which isn't installed"
    done = subprocess.run([node, "--test", ROOT / "tests" / "site" / "js"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert "# pass " in done.stdout
    assert "# pass 0\n" not in done.stdout
