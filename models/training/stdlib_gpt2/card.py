"""The model's card, `README.md`, and its picture of the losses, from `training.json` alone.

Written by `train.py` as the last of the model's files; `python -m models.training.stdlib_gpt2.card` writes it anew,
without PyTorch.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from models.training.cards import filled

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "stdlib-gpt2"
TEMPLATE = HERE / "card.md.j2"
CARD = "README.md"
PICTURES = ("loss.svg", "loss-dark.svg")


def write_card(folder: Path) -> None:
    """Write `README.md` and the two pictures (for light and for dark pages) beside the `training.json` in `folder`.

    Raises:
        FileNotFoundError: there is no `training.json`.
        jinja2.UndefinedError: it lacks what the card tells; says what.
    """
    record = json.loads((folder / "training.json").read_text("utf-8"))
    card = card_of(record)
    for name, picture in zip(PICTURES, draw_losses(record), strict=True):
        (folder / name).write_bytes(picture)
    (folder / CARD).write_text(card, "utf-8")


def card_of(record: dict[str, Any]) -> str:
    """Return the card of a training record, in Markdown."""
    return filled(TEMPLATE, record)


def draw_losses(record: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return the picture of both losses over the steps, as SVG for light pages and for dark ones."""
    # Only the picture needs the atlas itself, for its house style.
    from generators.drawing import style

    figure = style.canvas(width=6.8, height=3.4)
    ax = figure.add_subplot()
    ax.plot(*zip(*record["losses"], strict=True), color=style.COLOURS[0], lw=1, label="training text")
    held_out = tuple(zip(*record["held_out_losses"], strict=True))
    ax.plot(*held_out, "o-", color=style.COLOURS[1], ms=3.5, lw=1.2, label="held-out text")
    ax.set_xlabel("step")
    ax.set_ylabel("loss (nats a token)")
    ax.legend()
    return style.svg_pair(figure)


def main(folder: Annotated[Path, typer.Argument(help="Where training.json is.")] = FOLDER) -> None:
    """Write the card of the model in a folder."""
    write_card(folder)


if __name__ == "__main__":
    typer.run(main)
