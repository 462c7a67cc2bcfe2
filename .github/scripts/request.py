"""Turn a filled-in form “Request a model” into an entry of the registry.

Reads the event in $GITHUB_EVENT_PATH. What somebody typed goes from there through the registry's own checks into the
file, and nowhere else. Exit 2: it is no such form, or the registry refuses it; says why.
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from generators.base.errors import InputError
from generators.checkpoint.registry import Model, explain, load_registry, slug

COMMIT = re.compile(r"[0-9a-f]{40}")
EMPTY = "_No response_"  # what the form leaves of a field
HUB_ID, REVISION, LICENCE, GROUP = "Hub id", "Revision", "Licence", "Group"  # labels, as on the form
NOT_IN_TITLES = re.compile(r"[^\w ,.:;()+/'’–-]+")
LAST = "\n# Last:"  # the comment before the entry that stays at the end


def answers(body: str) -> dict[str, str]:
    """Return what was answered, by the labels of the form; if a label is there twice, the first answer."""
    parts = re.split(r"^### (.+?)[ \t]*$", body.replace("\r\n", "\n"), flags=re.MULTILINE)
    found: dict[str, str] = {}
    for label, answer in zip(parts[1::2], parts[2::2], strict=True):
        found.setdefault(label, answer.strip())
    return {label: answer for label, answer in found.items() if answer != EMPTY}


def entry(form: dict[str, str]) -> dict[str, Any]:
    """Return the entry that a form asks for, checked as every entry is.

    Raises:
        InputError: something is absent, or can't be.
    """
    for label in (HUB_ID, REVISION, LICENCE, GROUP):
        if not form.get(label):
            raise InputError(f"The form says nothing under “{label}”.")
    if not COMMIT.fullmatch(form[REVISION]):
        raise InputError("The revision is no commit of 40 hexadecimal digits.")
    title = NOT_IN_TITLES.sub(" ", form[HUB_ID].rpartition("/")[2]).strip()
    asked = {
        "name": slug(title),
        "title": title,
        "group": form[GROUP],
        "sources": [{"hub": form[HUB_ID], "revision": form[REVISION]}],
        "frequency": "wordfreq",
        "licence": form[LICENCE],
    }
    try:
        Model.model_validate(asked)
    except ValidationError as error:
        raise InputError(f"The registry refuses it: {explain(error)}.") from error
    return asked


def write(asked: dict[str, Any], registry: Path) -> None:
    """Write an entry into the registry, whose comments stay as they are.

    Raises:
        InputError: the registry has that model, or has no such group; the file stays as it was.
    """
    known, text = load_registry(registry), registry.read_text("utf-8")
    hubs = {getattr(source, "hub", "").lower() for model in known.models for source in model.sources}
    if asked["sources"][0]["hub"].lower() in hubs or asked["name"] in {model.name for model in known.models}:
        raise InputError("The registry has this model already.")
    if asked["group"] not in {model.group for model in known.models}:
        raise InputError("The registry has no such group.")
    written = yaml.safe_dump([asked], sort_keys=False, allow_unicode=True, width=110)
    head, last, tail = text.partition(LAST)
    registry.write_text(f"{head.rstrip()}\n\n{written}{last}{tail}", "utf-8")
    try:
        load_registry(registry)
    except InputError:
        registry.write_text(text, "utf-8")
        raise


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--registry", type=Path, default=Path("models.yml"))
    registry = parser.parse_args().registry
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    try:
        write(entry(answers(event["issue"]["body"] or "")), registry)
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
