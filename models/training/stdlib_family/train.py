"""Train the members of `stdlib-family`, all or one, and write their folders and the family's card.

Run by `make stdlib-family`. A member takes about three quarters of an hour on one core; stopped, it goes on where it
was, and two can be trained side by side. The same library, versions and seed give the same models.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from models.training import command
from models.training.corpus import Encoded, LibraryFiles
from models.training.files import record_of, write_model, write_record
from models.training.losses import token_losses
from models.training.run import TrainingRun, train
from models.training.stdlib_family.card import FOLDER, write_card
from models.training.stdlib_family.members import MEMBERS, RECIPE, FamilyMember, named
from models.training.stdlib_family.schemes import SCHEMES

WORK = command.ROOT / ".cache" / "stdlib-family"
# Of held-out text, in tokens: the same windows for every member, so that their losses can be compared in pairs.
WINDOW = RECIPE.n_ctx


def begin(member: FamilyMember, corpus: LibraryFiles, work: Path, device: str) -> TrainingRun:
    """Return the training of `member` before its first step; its checkpoint is in a folder of its name."""
    model = SCHEMES[member.scheme](member.recipe)
    return TrainingRun(
        member.recipe, model, {"corpus": corpus.sha256, "scheme": member.scheme}, work / member.name, device
    )


def window_losses(losses: np.ndarray) -> list[float]:
    """Mean losses in nats a token of successive windows, each of `WINDOW` tokens or a few more: none is left over."""
    n_windows = max(1, len(losses) // WINDOW)
    return [round(float(window.mean(dtype=np.float64)), 6) for window in np.array_split(losses, n_windows)]


def publish(member: FamilyMember, run: TrainingRun, corpus: LibraryFiles, text: Encoded, out: Path) -> None:
    """Write the member's folder: what others load, and how it came about."""
    published = write_model(run, text, out)
    # Of the rounded weights, as users have them.
    losses = token_losses(published, text.held_out, run.recipe.n_ctx, "cpu")
    record = {
        "name": member.name,
        "scheme": member.scheme,
        "differs": member.differs,
        **record_of(run, corpus, text, published),
        "held_out_loss": float(losses.mean(dtype=np.float64)),
        "held_out_window": WINDOW,
        "held_out_window_losses": window_losses(losses),
    }
    write_record(record, out)


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MEMBER]...", help=f"{', '.join(member.name for member in MEMBERS)}; all of them."),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help=f"Of {RECIPE.batch * RECIPE.n_ctx} tokens each.")] = RECIPE.steps,
    device: command.Device = "cpu",
    library: command.Library = None,
    out: Annotated[Path, typer.Option(help="Where the models' folders and their card are written.")] = FOLDER,
    work: command.Work = WORK,
) -> None:
    """Train members of stdlib-family, or go on with them, and write them."""
    console = Console(stderr=True, highlight=False)
    command.steady(RECIPE.threads, device)
    with command.sentences(console):
        members = [named(name).trained_for(steps) for name in names or (member.name for member in MEMBERS)]
        corpus, text = command.read(library, console)
    for member in members:
        with command.sentences(console):
            run = begin(member, corpus, work, device)
            console.print(f"{member.name}: going on from step {run.step}." if run.resume() else f"{member.name}:")
        train(run, text.trained, text.held_out, console)
        publish(member, run, corpus, text, out / member.name)
        write_card(out)
        console.print(f"Written to {out / member.name}")


if __name__ == "__main__":
    typer.run(main)
