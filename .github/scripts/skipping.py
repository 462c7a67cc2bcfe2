"""Say on a workflow's page which models were skipped, and why: as notices, and as a table in its summary."""

import html
import os
import re
from collections.abc import Mapping
from pathlib import Path


def say(skipped: Mapping[str, str]) -> None:
    """Say why each model was skipped. What a hub or a file says of a model is text and nothing else there."""
    for name, why in skipped.items():
        print(f"::notice title=Skipped: {name}::{_one_line(why).replace('%', '%25')}", flush=True)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if skipped and summary:
        rows = "".join(f"| {name} | {_cell(why)} |\n" for name, why in skipped.items())
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"| skipped | why |\n| --- | --- |\n{rows}\n")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(_one_line(text), quote=False))
