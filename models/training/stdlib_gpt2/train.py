"""Train `stdlib-gpt2`, the atlas's own GPT-2, on the source of Python's standard library; write its folder.

Run by `make demo-model`. It takes about an hour and a half on two cores; interrupted, it continues where it was.
The same library, versions, seed and number of threads give the same model.
"""

import math
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from tokenizers import Tokenizer
from transformers import PreTrainedModel

from models.training import command
from models.training.corpus import Encoded, LibraryFiles, xz_bits_per_byte
from models.training.files import record_of, write_model, write_record
from models.training.gpt2 import new_gpt2
from models.training.losses import held_out_loss
from models.training.recipe import Recipe
from models.training.run import TrainingRun, train
from models.training.stdlib_gpt2.card import FOLDER, write_card
from models.training.stdlib_gpt2.trajectory import steps_of, write_step

WORK = command.ROOT / ".cache" / "stdlib-gpt2"
# How the sample on the model's card is drawn.
PROMPT = "def read_lines(path):\n"
TEMPERATURE, TOP_K = 0.7, 50


@torch.no_grad()
def continuation(model: PreTrainedModel, tokenizer: Tokenizer, prompt: str, n_tokens: int = 120) -> str:
    """What the model writes after `prompt`, drawn with a fixed seed."""
    torch.manual_seed(0)
    start = torch.tensor([tokenizer.encode(prompt).ids])
    ids = model.generate(
        start,
        attention_mask=torch.ones_like(start),
        max_new_tokens=n_tokens,
        do_sample=True,
        temperature=TEMPERATURE,
        top_k=TOP_K,
    )
    return tokenizer.decode(ids[0].tolist(), skip_special_tokens=True)


def publish(run: TrainingRun, corpus: LibraryFiles, text: Encoded, out: Path) -> None:
    """Write the model's folder: what others load, how it came about, and its card."""
    published = write_model(run, text, out)
    held_out = "".join(corpus.held_out.values())
    # Of the rounded weights, as users have them.
    loss = held_out_loss(published, text.held_out, run.recipe.n_ctx, "cpu")
    record = {
        **record_of(run, corpus, text, published),
        "held_out_loss": loss,
        "held_out_bits_per_byte": loss * (len(text.held_out) - 1) / math.log(2) / len(held_out.encode()),
        "xz_bits_per_byte": xz_bits_per_byte(held_out),
        "xz_bits_per_byte_after_training_text": xz_bits_per_byte(held_out, "".join(corpus.trained.values())),
        "temperature": TEMPERATURE,
        "top_k": TOP_K,
        "prompt": PROMPT,
        "continuation": continuation(published, text.tokenizer, PROMPT)[len(PROMPT) :],
    }
    write_record(record, out)
    write_card(out)


def main(
    steps: Annotated[
        int, typer.Option(min=1, help=f"Of {Recipe.batch} x {Recipe.n_ctx} tokens each.")
    ] = Recipe.steps,
    device: command.Device = "cpu",
    seed: Annotated[int, typer.Option(help="Of the first weights and of the order of the text.")] = Recipe.seed,
    threads: Annotated[
        int, typer.Option(min=1, help="The order of sums, so the last digits, depend on it.")
    ] = Recipe.threads,
    library: command.Library = None,
    out: command.Out = FOLDER,
    work: command.Work = WORK,
    trajectory: Annotated[
        Path | None, typer.Option(help="Where the model is also written at some steps of its training.")
    ] = None,
) -> None:
    """Train stdlib-gpt2, or go on with it, and write it."""
    console = Console(stderr=True, highlight=False)
    recipe = Recipe(seed=seed, steps=steps, threads=threads)
    command.steady(threads, device)
    with command.sentences(console):
        corpus, text = command.read(library, console)
        run = TrainingRun(recipe, new_gpt2(recipe), {"corpus": corpus.sha256}, work, device)
        if run.resume():
            console.print(f"Going on from step {run.step}.")
    see = None if trajectory is None else partial(write_step, text=text, steps=steps_of(steps), folder=trajectory)
    train(run, text.trained, text.held_out, console, see)
    publish(run, corpus, text, out)
    console.print(f"Written to {out}")


if __name__ == "__main__":
    typer.run(main)
