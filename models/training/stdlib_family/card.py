"""The family's card, `README.md`, and its picture, from the members' `training.json` files alone.

Written after every training; `python -m models.training.stdlib_family.card` writes it anew, without PyTorch.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from models.training.cards import filled
from models.training.stdlib_family.members import MEMBERS

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "stdlib-family"
TEMPLATE = HERE / "card.md.j2"
CARD = "README.md"
PICTURES = ("loss.svg", "loss-dark.svg")
REFERENCE = "learned"
STANDARD_ERRORS = 1.96  # to either side of a mean: 95 % of a normal distribution


@dataclass(frozen=True)
class Interval:
    """A mean in nats a token and its 95 % interval, as far as the windows that it is of are independent."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class MemberRow:
    """What the card says of one member; `difference` is its loss less the reference's, window by window."""

    name: str
    differs: str
    parameters: int
    seed: int
    loss: Interval
    difference: Interval | None


def interval(values: np.ndarray) -> Interval:
    """The mean of `values` (n_windows,) and its interval; of a single window, an interval without a width."""
    mean = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Interval(mean, mean - STANDARD_ERRORS * error, mean + STANDARD_ERRORS * error)


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the members that are in `folder`, in the table's order.

    Raises:
        FileNotFoundError: there is no member.
    """
    paths = [folder / member.name / "training.json" for member in MEMBERS]
    records = [json.loads(path.read_text("utf-8")) for path in paths if path.is_file()]
    if not records:
        raise FileNotFoundError(f"{folder} holds no member of stdlib-family.")
    return records


def reference_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the record that the others are compared with: of `learned`, or as long as there is none, the first."""
    return next((record for record in records if record["name"] == REFERENCE), records[0])


def rows_of(records: list[dict[str, Any]]) -> list[MemberRow]:
    """Return a row a member; losses are compared where the windows are the same ones."""
    reference = reference_of(records)
    return [
        MemberRow(
            record["name"],
            record["differs"],
            record["parameters"],
            record["recipe"]["seed"],
            interval(np.array(record["held_out_window_losses"])),
            None if record is reference else _difference(record, reference),
        )
        for record in records
    ]


def _difference(record: dict[str, Any], reference: dict[str, Any]) -> Interval | None:
    ours, theirs = record["held_out_window_losses"], reference["held_out_window_losses"]
    same = record["corpus"]["sha256"] == reference["corpus"]["sha256"] and len(ours) == len(theirs)
    return interval(np.subtract(ours, theirs)) if same else None


def write_card(folder: Path) -> None:
    """Write `README.md` and the two pictures (for light and for dark pages) above the members' folders in `folder`.

    Raises:
        FileNotFoundError: there is no member.
        KeyError: a record lacks what the card tells.
    """
    records = read_records(folder)
    card = card_of(records)
    for name, picture in zip(PICTURES, draw_losses(rows_of(records)), strict=True):
        (folder / name).write_bytes(picture)
    (folder / CARD).write_text(card, "utf-8")


def card_of(records: list[dict[str, Any]]) -> str:
    """Return the card of these members, in Markdown."""
    reference, rows = reference_of(records), rows_of(records)
    return filled(
        TEMPLATE,
        {
            **reference,
            "rows": rows,
            "n_windows": len(reference["held_out_window_losses"]),
            "repeats": [row for row, record in zip(rows, records, strict=True) if _is_repeat(record, reference)],
            "made_with": _made_with(records),
            "d_head": reference["recipe"]["d_model"] // reference["recipe"]["n_head"],
        },
    )


def _is_repeat(record: dict[str, Any], reference: dict[str, Any]) -> bool:
    """Whether a member differs from the reference in nothing but its seed, if in that."""
    seedless = {**record["recipe"], "seed": reference["recipe"]["seed"]}
    return record["scheme"] == reference["scheme"] and seedless == reference["recipe"]


def _made_with(records: list[dict[str, Any]]) -> list[str]:
    """Return each set of versions and device that members were made with, in words."""
    words = [
        ", ".join([*(f"{name} {version}" for name, version in record["versions"].items()), f"on {record['device']}"])
        for record in records
    ]
    return list(dict.fromkeys(words))


def draw_losses(rows: list[MemberRow]) -> tuple[bytes, bytes]:
    """Return the picture of all held-out losses with their intervals, as SVG for light pages and for dark ones."""
    # Only the picture needs the atlas itself, for its house style.
    from generators.drawing import style

    figure = style.canvas(width=6.8, height=0.9 + 0.28 * len(rows))
    ax = figure.add_subplot()
    for y, row in enumerate(rows):
        ax.plot([row.loss.low, row.loss.high], [y, y], color=style.COLOURS[0], lw=1.6)
        ax.plot(row.loss.mean, y, "o", color=style.COLOURS[0], ms=4.5)
    ax.set_yticks(range(len(rows)), [row.name for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the table's order, from above
    ax.set_xlabel("loss on held-out text (nats a token)")
    return style.svg_pair(figure)


def main(folder: Annotated[Path, typer.Argument(help="Where the members' folders are.")] = FOLDER) -> None:
    """Write the card of the family in a folder."""
    write_card(folder)


if __name__ == "__main__":
    typer.run(main)
