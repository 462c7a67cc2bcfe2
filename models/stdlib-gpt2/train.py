"""Train `stdlib-gpt2`, the atlas's own GPT-2, on the source of Python's standard library; write it beside this file.

Run by `make demo-model`. It takes about an hour and a half on two cores; stopped, it goes on where it was. The same
library, versions, seed and number of threads give the same model.
"""

import json
import math
import pickle
import platform
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import corpus as stdlib
import numpy as np
import tokenizers
import torch
import transformers
import typer
from card import write_card
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel

HERE = Path(__file__).resolve().parent
WORK = HERE.parents[1] / ".cache" / "stdlib-gpt2"
# How the sample on the model's card is drawn.
PROMPT = "def read_lines(path):\n"
TEMPERATURE, TOP_K = 0.7, 50


@dataclass(frozen=True)
class Recipe:
    """Everything that was chosen. Lengths in tokens, rates per step."""

    seed: int = 0
    steps: int = 10_000
    threads: int = 2
    n_layer: int = 4
    n_head: int = 4
    d_model: int = 128
    n_ctx: int = 256
    batch: int = 16
    peak_rate: float = 2e-3
    warmup_steps: int = 100
    betas: tuple[float, float] = (0.9, 0.95)
    # On every parameter, as the position and token embeddings of this size would else keep their random start.
    weight_decay: float = 0.1
    clip: float = 1.0

    def rate(self, step: int) -> float:
        """The learning rate: a linear rise, then half a cosine down to zero."""
        if step < self.warmup_steps:
            return self.peak_rate * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        return self.peak_rate * 0.5 * (1 + math.cos(math.pi * done))


# How often (in steps) the training loss is noted, the held-out loss measured, and all of it put on disk.
NOTE_EVERY = 50
MEASURE_EVERY = 500
SAVE_EVERY = 250


def new_model(recipe: Recipe) -> GPT2LMHeadModel:
    """GPT-2's architecture at this recipe's sizes, as Hugging Face's library starts it."""
    torch.manual_seed(recipe.seed)
    config = GPT2Config(
        vocab_size=stdlib.N_VOCAB,
        n_positions=recipe.n_ctx,
        n_embd=recipe.d_model,
        n_layer=recipe.n_layer,
        n_head=recipe.n_head,
        activation_function="gelu_pytorch_tanh",  # gelu_new in one kernel; the published config says gelu_new
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    return GPT2LMHeadModel(config)


def windows(ids: np.ndarray, recipe: Recipe, step: int) -> torch.Tensor:
    """The windows of one step, int64 (batch, n_ctx).

    The seed and the step alone choose them, so a resumed run meets the same.
    """
    starts = np.random.default_rng([recipe.seed, step]).integers(len(ids) - recipe.n_ctx + 1, size=recipe.batch)
    return torch.from_numpy(np.stack([ids[start : start + recipe.n_ctx] for start in starts]))


def next_token_loss(model: GPT2LMHeadModel, ids: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Cross-entropy in nats of every token of `ids` (batch, n) but the first, given those before it."""
    logits = model(ids, use_cache=False).logits[:, :-1]
    return cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction=reduction)


@torch.no_grad()
def held_out_loss(model: GPT2LMHeadModel, ids: np.ndarray, n_ctx: int, device: str) -> float:
    """Mean cross-entropy in nats a token over all of `ids`.

    Each token is given at least half a context, where there is one before it.
    """
    half = n_ctx // 2
    total = 0.0
    for start in range(0, len(ids) - 1, half):
        window = torch.from_numpy(ids[start : start + n_ctx])[None].to(device)
        losses = next_token_loss(model, window, reduction="none")
        # The first half of a window was the second half of the one before.
        total += losses[0 if start == 0 else half - 1 :].sum().item()
        if start + n_ctx >= len(ids):
            break
    return total / (len(ids) - 1)


class Run:
    """A model in training with all that its next step depends on, and its checkpoint on disk."""

    def __init__(self, recipe: Recipe, made_of: str, folder: Path, device: str):
        self.recipe, self.device = recipe, device
        self.path = folder / "checkpoint.pt"
        self.identity = json.dumps({"recipe": asdict(recipe), "corpus": made_of, **versions()}, sort_keys=True)
        self.model = new_model(recipe).to(device)
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
            ValueError: it was made by another recipe, corpus or version, or is no checkpoint.
        """
        if not self.path.is_file():
            return False
        try:
            state = torch.load(self.path, weights_only=True, map_location=self.device)
            identity = state["identity"]
        except (OSError, EOFError, RuntimeError, pickle.UnpicklingError, TypeError, KeyError) as error:
            raise ValueError(f"{self.path} is no checkpoint that can be read: remove it.") from error
        if identity != self.identity:
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
        loss = next_token_loss(self.model, windows(ids, self.recipe, self.step).to(self.device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return loss.item()


def train(run: Run, trained: np.ndarray, held_out: np.ndarray, console: Console) -> None:
    """Take `run` to its last step, with a bar on a terminal and a line now and then elsewhere."""
    steps = run.recipe.steps
    columns = [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}")]
    recent: list[float] = []
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=steps, completed=run.step)
        while run.step < steps:
            recent.append(run.advance(trained))
            if run.step % NOTE_EVERY == 0 or run.step == steps:
                run.losses.append((run.step, float(np.mean(recent))))
                recent = []
                progress.update(bar, completed=run.step, description=f"loss {run.losses[-1][1]:.3f}")
            if run.step % MEASURE_EVERY == 0 or run.step == steps:
                run.held_out.append((run.step, held_out_loss(run.model, held_out, run.recipe.n_ctx, run.device)))
                console.print(f"step {run.step}: loss {run.losses[-1][1]:.3f}, held out {run.held_out[-1][1]:.3f}")
            if run.step % SAVE_EVERY == 0 or run.step == steps:
                run.save()


def versions() -> dict[str, str]:
    """What the exact weights depend on besides the recipe."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
    }


@torch.no_grad()
def continuation(model: GPT2LMHeadModel, tokenizer: Tokenizer, prompt: str, n_tokens: int = 120) -> str:
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


def publish(run: Run, corpus: stdlib.Corpus, tokenizer: Tokenizer, counts: np.ndarray, out: Path) -> None:
    """Write the model's folder: weights in float16, config, tokenizer, counts, how it came about, and its card."""
    out.mkdir(parents=True, exist_ok=True)
    held_out = stdlib.encode(corpus.held_out, tokenizer)
    text = "".join(corpus.held_out.values())
    run.model.to("cpu").half()
    run.model.config.activation_function = "gelu_new"
    run.model.save_pretrained(out)
    (out / "model.safetensors").chmod(0o644)  # written for its owner alone
    tokenizer.save(str(out / "tokenizer.json"))
    (out / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_max_length": run.recipe.n_ctx,
                **dict.fromkeys(("bos_token", "eos_token", "pad_token", "unk_token"), stdlib.END_OF_TEXT),
            },
            indent=1,
        )
        + "\n"
    )
    np.save(out / "token_counts.npy", counts)
    # The rounded weights, as users will have them.
    published = GPT2LMHeadModel.from_pretrained(out, dtype=torch.float32)
    loss = held_out_loss(published, held_out, run.recipe.n_ctx, "cpu")
    record = {
        "recipe": asdict(run.recipe),
        "versions": versions(),
        "device": run.device,
        "corpus": {
            "sha256": corpus.sha256,
            "files": {part: len(getattr(corpus, part)) for part in ("trained", "held_out", "tokenizer_only")},
            "tokenizer_only_folders": list(stdlib.TOKENIZER_ONLY),
            "held_out_files": sorted(corpus.held_out),
            "trained_tokens": int(counts.sum()),
            "held_out_tokens": len(held_out),
            "held_out_bytes": len(text.encode()),
        },
        "parameters": published.num_parameters(),
        "vocab_size": len(counts),
        "never_seen_tokens": int((counts == 0).sum()),
        "token_counts_sha256": sha256(counts.tobytes()).hexdigest(),
        "losses": run.losses,
        "held_out_losses": run.held_out,
        "held_out_loss": loss,
        "held_out_bits_per_byte": loss * (len(held_out) - 1) / math.log(2) / len(text.encode()),
        "xz_bits_per_byte": stdlib.xz_bits_per_byte(text),
        "xz_bits_per_byte_after_training_text": stdlib.xz_bits_per_byte(text, "".join(corpus.trained.values())),
        "temperature": TEMPERATURE,
        "top_k": TOP_K,
        "prompt": PROMPT,
        "continuation": continuation(published, tokenizer, PROMPT)[len(PROMPT) :],
    }
    (out / "training.json").write_text(json.dumps(record, indent=1) + "\n")
    write_card(out)


def main(
    steps: Annotated[
        int, typer.Option(min=1, help=f"Of {Recipe.batch} x {Recipe.n_ctx} tokens each.")
    ] = Recipe.steps,
    device: Annotated[str, typer.Option(help="cpu, cuda or mps. The published weights were made on cpu.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Of the first weights and of the order of the text.")] = Recipe.seed,
    threads: Annotated[int, typer.Option(min=1, help="The order of sums, so the last digits, depend on it.")] = 2,
    library: Annotated[Path | None, typer.Option(help="The folder of a standard library; this Python's own.")] = None,
    out: Annotated[Path, typer.Option(help="Where the model is written.")] = HERE,
    work: Annotated[Path, typer.Option(help="Where the checkpoint is kept.")] = WORK,
) -> None:
    """Train stdlib-gpt2, or go on with it, and write it."""
    console = Console(stderr=True, highlight=False)
    recipe = Recipe(seed=seed, steps=steps, threads=threads)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    try:
        corpus = stdlib.read_library(library)
        tokenizer = stdlib.train_tokenizer(corpus.everything)
        trained = stdlib.encode(corpus.trained, tokenizer)
        counts = stdlib.token_counts(trained)
        console.print(
            f"{len(corpus.trained)} files, {len(trained):,} tokens; "
            f"{(counts == 0).sum()} of {len(counts)} tokens never seen."
        )
        run = Run(recipe, corpus.sha256, work, device)
        if run.resume():
            console.print(f"Going on from step {run.step}.")
    except (FileNotFoundError, ValueError, RuntimeError, AssertionError) as problem:
        # AssertionError: how a PyTorch that was built without CUDA says so
        console.print(str(problem))
        raise typer.Exit(2) from problem
    train(run, trained, stdlib.encode(corpus.held_out, tokenizer), console)
    publish(run, corpus, tokenizer, counts, out)
    console.print(f"Written to {out}")


if __name__ == "__main__":
    typer.run(main)
