"""Ask whether a pinned version has a known vulnerability, where the database that pip-audit asks can be reached."""

import subprocess
import sys
from pathlib import Path

from cpu_torch import answers
from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
DATABASE = f"{PyPI.pypi_url}/pip/24.0/json"  # one answer of the many that pip-audit asks for
SECONDS = 120
PINS = ("requirements-dev.txt", "requirements-models.txt", "requirements-sbom.txt")  # the first holds the others'


def main() -> None:
    """Do what the command line asks."""
    if not answers(DATABASE):
        print("The database of vulnerabilities doesn't answer now: the pinned versions weren't audited.", flush=True)
        return
    files = [word for name in PINS for word in ("--requirement", str(ROOT / name))]
    plain = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--timeout=5"]
    try:
        audited = subprocess.run([sys.executable, "-m", "pip_audit", *plain, *files], check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        print(f"The pinned versions couldn't be audited within {SECONDS} seconds.", flush=True)
        return
    sys.exit(audited.returncode)


if __name__ == "__main__":
    main()
