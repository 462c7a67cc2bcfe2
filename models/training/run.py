"""A model in training: its steps, its checkpoint on disk, and going on from there."""

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import PreTrainedModel

from models.training.losses import held_out_loss, next_token_loss, windows
from models.training.recipe import Recipe

# How often (in steps) the training loss is noted, the held-out loss measured, and all of it put on disk.
NOTE_EVERY = 50
MEASURE_EVERY = 500
SAVE_EVERY = 100


See = Callable[["TrainingRun"], None]


def versions() -> dict[str, str]:
    """What the exact weights depend on besides the recipe."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
    }


class TrainingRun:
    """A model in training with all that its next step depends on, and its checkpoint in `folder`.

    `made_of` is what decides the outcome beside the recipe and the versions of the libraries: the digest of the
    corpus, say. A checkpoint of something else is refused.
    """

    def __init__(
        self, recipe: Recipe, model: PreTrainedModel, made_of: Mapping[str, str], folder: Path, device: str
    ) -> None:
        self.recipe, self.device = recipe, device
        self.path = folder / "checkpoint.pt"
        self.identity = json.dumps({"recipe": asdict(recipe), **made_of, **versions()}, sort_keys=True)
        self.model = model.to(device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=recipe.peak_rate,
            betas=recipe.betas,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self.step = 0
        self.losses: list[tuple[int, float]] = []
        self.held_out: list[tuple[int, float]] = []

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one.

        Raises:
            ValueError: it was made by another recipe, corpus or version.
        """
        if not self.path.is_file():
            return False
        state = torch.load(self.path, weights_only=True, map_location=self.device)
        if state["identity"] != self.identity:
            raise ValueError(
                f"{self.path} belongs to another recipe, corpus or version of the libraries: "
                "remove it, or name another folder with --work."
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.losses, self.held_out = state["step"], state["losses"], state["held_out"]
        return True

    def save(self) -> None:
        """Put all of it on disk: the whole of the old checkpoint stays until the whole of the new one is there."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        half_written = self.path.with_suffix(".tmp")
        torch.save(
            {
                "identity": self.identity,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "step": self.step,
                "losses": self.losses,
                "held_out": self.held_out,
            },
            half_written,
        )
        half_written.replace(self.path)

    def advance(self, ids: np.ndarray) -> float:
        """One step on the windows that are its turn; the loss before it, in nats a token."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate(self.step)
        with torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16"):
            loss = next_token_loss(self.model, windows(ids, self.recipe, self.step).to(self.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return loss.item()


def train(
    run: TrainingRun, trained: np.ndarray, held_out: np.ndarray, console: Console, see: See | None = None
) -> None:
    """Take `run` to its last step, with a bar on a terminal and a line with every checkpoint elsewhere.

    `see` is called with it before its first step and after each; after an interruption, again from its checkpoint on.
    """
    steps = run.recipe.steps
    columns = [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}")]
    recent: list[float] = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=steps, completed=run.step)
        if see is not None:
            see(run)
        while run.step < steps:
            recent.append(run.advance(trained))
            if see is not None:
                see(run)
            if run.step % NOTE_EVERY == 0 or run.step == steps:
                run.losses.append((run.step, float(np.mean(recent))))
                recent = []
                progress.update(bar, completed=run.step, description=f"loss {run.losses[-1][1]:.3f}")
            if run.step % MEASURE_EVERY == 0 or run.step == steps:
                run.held_out.append((run.step, held_out_loss(run.model, held_out, run.recipe.n_ctx, run.device)))
                console.print(f"step {run.step}: loss {run.losses[-1][1]:.3f}, held out {run.held_out[-1][1]:.3f}")
            if run.step % SAVE_EVERY == 0 or run.step == steps:
                run.save()
                if not console.is_terminal:
                    console.print(f"step {run.step} of {steps} is on disk; loss {run.losses[-1][1]:.3f}")
