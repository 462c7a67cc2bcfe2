"""Bring the hooks in .pre-commit-config.yaml to the versions that requirements-dev.txt pins; --check only looks.

A hook that mirrors a tool bears the tool's version as its revision; what a hook installs beside its tool is pinned.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / ".pre-commit-config.yaml"
MIRRORS = {
    "astral-sh/ruff-pre-commit": "ruff",
    "codespell-project/codespell": "codespell",
    "pre-commit/mirrors-mypy": "mypy",
    "zizmorcore/zizmor-pre-commit": "zizmor",
}


def brought(config: str, pins: dict[str, str]) -> str:
    """Return the text of the hooks with every version as it is pinned."""
    for repository, tool in MIRRORS.items():
        config, count = re.subn(rf"(/{repository}\n    rev: v)\S+", rf"\g<1>{pins[tool]}", config)
        if count != 1:
            sys.exit(f"{CONFIG.name} names {repository} {count} times.")
    return re.sub(r"( - ([\w-]+)==)\S+", lambda found: found[1] + pins[found[2]], config)


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    pins = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements-dev.txt").read_text("utf-8"), re.MULTILINE))
    config = CONFIG.read_text("utf-8")
    wanted = brought(config, pins)
    if wanted != config and check:
        sys.exit(f"{CONFIG.name} has other versions than requirements-dev.txt: make hooks")
    CONFIG.write_text(wanted, "utf-8")


if __name__ == "__main__":
    main()
