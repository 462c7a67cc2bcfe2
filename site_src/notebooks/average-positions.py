# ---
# jupyter:
#   atlas:
#     reads:
#       - ../../models/stdlib-gpt2/model.safetensors
#       - ../../models/stdlib-gpt2/held_out_tokens.npy
# ---

# %% [markdown]
# # Average the positions
#
# Does a language model need to know the exact position of a token? In 2023, Adam Yedidia asked what happens to GPT-2
# if its position embeddings are averaged in groups of ten, so that ten neighboring positions share one embedding.
# Here we do this by hand with `stdlib-gpt2`, a small GPT-2 whose weights are in the atlas's repository. Then we
# measure its loss on text that it was not trained on.
#
# The notebook runs in the folder `site_src/notebooks` of a copy of the repository. `make site` installs what it
# needs.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from transformers import AutoModelForCausalLM, logging

logging.set_verbosity_error()
logging.disable_progress_bar()
folder = "../../models/stdlib-gpt2"
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
P = model.transformer.wpe.weight.detach().clone()  # one row per position
n = len(P)
ids = torch.from_numpy(np.load(f"{folder}/held_out_tokens.npy").astype(np.int64))
texts = ids[: len(ids) // n * n].reshape(-1, n)[:16]  # pieces as long as the model can read

# %% [markdown]
# ## Ten lines
#
# We replace the rows of P by the means of their groups and compute the model's loss, in nats per token, averaged over
# the text. If one group contains all rows, the model has no information about positions.


# %%
def loss_in_groups_of(size):
    means = [P[begin : begin + size].mean(dim=0, keepdim=True) for begin in range(0, n, size)]
    rows = torch.cat(means).repeat_interleave(size, dim=0)[:n]
    with torch.no_grad():
        model.transformer.wpe.weight.copy_(rows)
        return np.mean([float(model(text[None], labels=text[None]).loss) for text in texts])


sizes = [1, 2, 5, 10, 20, 50, 100, n]
losses = {size: loss_in_groups_of(size) for size in sizes}
for size, loss in losses.items():
    print(f"in groups of {size:3}: {loss:.3f} nats per token")

# %% [markdown]
# ## What it costs
#
# Alone, these losses say little. So we compare what averaging costs with the cost of having no positions.

# %% shows="What averaging positions costs as a share of removing them, by the size of the groups: a rising line"
removed = losses[n] - losses[1]
damage = {size: (loss - losses[1]) / removed for size, loss in losses.items()}

figure, axes = plt.subplots(figsize=(6, 3.5))
axes.plot(sizes, [damage[size] for size in sizes], marker="o")
axes.set(xscale="log", xlabel="positions in a group", ylabel="cost, as a share of removing positions")
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
plt.show()

print(f"Without positions a token costs {removed:.2f} nats more.")
print(f"Averaging positions in groups of ten costs {damage[10]:.1%} of that.")

# %% [markdown]
# The atlas measures these costs for every model that it can run, on more text and with intervals. It also tests
# positions that are smoothed, projected, or shuffled. The page *Use of positions* has the results.
