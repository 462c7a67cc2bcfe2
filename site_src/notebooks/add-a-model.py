# ---
# jupyter:
#   atlas:
#     runs_atlas: true
# ---

# %% [markdown]
# # Add a model
#
# The atlas reads a folder with two files: `config.json` gives the size of the model, and `model.safetensors` holds
# its tensors. Here we write such a folder for a small random model. Only its position embedding is not random: it
# winds through three dimensions. The atlas should find that, and nothing else.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

from generators.checkpoint.registry import FolderSource, Model
from generators.checkpoint.sources import Places
from generators.compute.judged import judged_model
from generators.compute.results import Store
from generators.compute.schedule import compute_model

place = tempfile.TemporaryDirectory()
folder = Path(place.name) / "planted-helix"
folder.mkdir()

# %% [markdown]
# ## The sizes
#
# The keys are those of GPT-2's own `config.json`; `model_type` gives the family, which determines the tensor names.

# %%
n_layer, n_head, d, n, vocabulary = 2, 2, 48, 256, 400
config = {
    "model_type": "gpt2",
    "n_layer": n_layer,
    "n_head": n_head,
    "n_embd": d,
    "n_positions": n,
    "vocab_size": vocabulary,
    "layer_norm_epsilon": 1e-5,
}
with (folder / "config.json").open("w") as file:
    json.dump(config, file)

# %% [markdown]
# ## The weights
#
# A helix is a circle and an axis. Three random directions carry it into the model's width, and a little noise is
# added. The rest is noise: token embedding, attention, and layer norms with gains about 1. The MLP is left out: a
# partial checkpoint is welcome.

# %%
rng = np.random.default_rng(0)
t = np.arange(n) / n
turns = 3
helix = np.column_stack([np.cos(2 * np.pi * turns * t), np.sin(2 * np.pi * turns * t), 1.7 * (t - t.mean())])
directions = np.linalg.qr(rng.standard_normal((d, 3)))[0]

weights = {
    "wpe.weight": helix @ directions.T + 0.01 * rng.standard_normal((n, d)),
    "wte.weight": 0.1 * rng.standard_normal((vocabulary, d)),
}
for i in range(n_layer):
    for norm in ("ln_1", "ln_2"):
        weights[f"h.{i}.{norm}.weight"] = 1 + 0.2 * rng.standard_normal(d)
        weights[f"h.{i}.{norm}.bias"] = 0.1 * rng.standard_normal(d)
    weights[f"h.{i}.attn.c_attn.weight"] = 0.1 * rng.standard_normal((d, 3 * d))  # Q, K and V side by side
    weights[f"h.{i}.attn.c_attn.bias"] = 0.1 * rng.standard_normal(3 * d)
    weights[f"h.{i}.attn.c_proj.weight"] = 0.1 * rng.standard_normal((d, d))
save_file({name: tensor.astype(np.float32) for name, tensor in weights.items()}, folder / "model.safetensors")

# %% [markdown]
# ## The answers
#
# On a command line this is `atlas compute ./planted-helix` and `atlas show planted-helix`. From Python it is the same
# two steps: measure and store, then judge what is stored.

# %%
model = Model(name="planted-helix", title="Planted helix", sources=(FolderSource(folder=folder),))
store = Store(Path(place.name) / "results")
outcome = compute_model(model, Places(), store)
print("Computed:", ", ".join(outcome.computed))

found = judged_model(store, model.name).published()
for name, record in found.findings.items():
    if record.status != "computed":
        print(f"Not computed: {name}: {record.reason}")

# %% shows="Every claim about the planted model with its verdict, value, chance baseline and unit"
claims = pd.DataFrame([claim.model_dump() for claim in found.claims]).set_index("id")
claims[["verdict", "value", "baseline", "unit"]].round(3)

# %%
holding = claims[claims.verdict == "holds"]
print(f"{len(holding)} of {(claims.verdict != 'untested').sum()} tested claims hold:")
for claim, answer in holding.answer.items():
    print(f"- {claim}: {answer}")

helix_metrics = found.findings["helix"].metrics
plane, measured = helix_metrics["planes"][0], helix_metrics["explained_variance_3d"]["no_first"]
print(f"\nPlanted: {turns} turns in three dimensions. Found: {plane['turns']:.2f} turns,", end=" ")
print(f"and three components that hold {measured:.1%} of the variance.")

# %% [markdown]
# The other claims that hold here follow from the helix or are accidents of the noise. The chance baselines show how
# surprising each value is. To get a page for a model of your own, build the site with its folder:
# `atlas build ./my-model`.

# %%
place.cleanup()
