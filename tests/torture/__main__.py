"""The commands of this package, as `make` calls them: `python -m tests.torture fuzz --help`."""

import sys
from importlib import import_module

import typer

HOMES = {"fuzz": "fuzz", "crash": "crash", "large": "costs"}
app = typer.Typer(help=__doc__, callback=lambda: None)
asked = [name for name in sys.argv[1:2] if name in HOMES]
for name in asked or HOMES:  # other modules would count as memory of what is measured
    app.command()(getattr(import_module(f"tests.torture.{HOMES[name]}"), name))
app()
