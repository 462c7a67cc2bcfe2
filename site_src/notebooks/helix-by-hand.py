# ---
# jupyter:
#   atlas:
#     reads:
#       - ../../models/stdlib-gpt2/model.safetensors
# ---

# %% [markdown]
# # The helix by hand
#
# A GPT-2 adds a vector to every token. The vector encodes the token's position. These vectors are the rows of one
# matrix, P. In 2023, Adam Yedidia saw that the position vectors of GPT-2 lie on a helix. Here we look at P of another
# model in the same way, in a dozen lines. It is `stdlib-gpt2`, a small GPT-2 whose weights are in the atlas's
# repository.
#
# The notebook runs in the folder `site_src/notebooks` of a copy of the repository. `make site` installs what it
# needs.

# %%
import matplotlib.pyplot as plt
import numpy as np
from safetensors.numpy import load_file

from generators.drawing.style import position_colours

P = load_file("../../models/stdlib-gpt2/model.safetensors")["transformer.wpe.weight"].astype(float)
n, d = P.shape
print(f"P has {n} rows, one per position, of {d} numbers each.")

# %% [markdown]
# ## Three directions
#
# We leave out the first position. In many GPT-2s it lies far away from all other positions and would pull every
# direction toward itself. We subtract the mean row. A singular value decomposition then finds the directions in which
# the rows differ most, the principal components. If the rows were noise, all components would hold about the same
# variance.

# %%
rows = P[1:]
centred = rows - rows.mean(axis=0)
U, S, Vt = np.linalg.svd(centred, full_matrices=False)
share = S**2 / (S**2).sum()
scores = U * S  # row i: where position i + 1 lies along each component
positions = np.arange(1, n)

noise = np.random.default_rng(0).standard_normal(rows.shape)
by_chance = np.linalg.svd(noise - noise.mean(axis=0), compute_uv=False) ** 2

print(f"Three components hold {share[:3].sum():.1%} of the variance of P. Each of them holds:")
print(", ".join(f"{s:.1%}" for s in share[:3]) + ".")
print(f"Three components of Gaussian noise of the same shape hold {by_chance[:3].sum() / by_chance.sum():.1%}.")

# %% [markdown]
# ## The curve
#
# Every dot below is one position, plotted by its three components. Where neighbors in the text are also neighbors in
# this plot, the dots form a curve. A curve that winds around an axis is a helix.

# %% shows="The rows of P in three dimensions: one dot per position, coloured by position, joined by a line"
figure = plt.figure(figsize=(6, 5))
axes = figure.add_subplot(projection="3d")
axes.plot(*scores[:, :3].T, linewidth=0.5, color="grey")
dots = axes.scatter(*scores[:, :3].T, c=positions, s=8, cmap=position_colours(), depthshade=False)
axes.set(xlabel="PC 1 (units of P)", ylabel="PC 2 (units of P)", zlabel="PC 3 (units of P)")
axes.locator_params(nbins=4)
axes.xaxis.labelpad = axes.yaxis.labelpad = axes.zaxis.labelpad = 8
figure.colorbar(dots, label="position (tokens)", shrink=0.7, pad=0.14)
plt.show()

# %%
step = np.linalg.norm(np.diff(scores[:, :3], axis=0), axis=1).mean()
shuffled = np.random.default_rng(0).permutation(scores[:, :3])
by_chance_step = np.linalg.norm(np.diff(shuffled, axis=0), axis=1).mean()
print(f"From one position to the next, the curve moves {step:.3f} on average;")
print(f"in random order of the same dots, it would move {by_chance_step:.3f},", end=" ")
print(f"{by_chance_step / step:.1f} times as far.")

# %% [markdown]
# ## Its components
#
# Plotted against position, two components of a helix are waves of the same period, a quarter of a period apart. They
# make the circle. The third component drifts and carries the curve along the axis.

# %% shows="The first three principal components of P against position: three lines, one per component"
figure, axes = plt.subplots(figsize=(6.5, 3.2))
for i in range(3):
    axes.plot(positions, scores[:, i], label=f"PC {i + 1} ({share[i]:.0%} of the variance)")
axes.set(xlabel="position (tokens)", ylabel="component (units of P)")
axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=3, columnspacing=1)
plt.show()

# %% [markdown]
# The spectrum of each component shows how many cycles it completes over all positions. We take the whole number of
# cycles that holds most of the component's variance.

# %%
for i in range(3):
    power = np.abs(np.fft.rfft(scores[:, i])) ** 2
    cycles = power.argmax()
    print(f"PC {i + 1}: cycles: {cycles}, of {len(rows) / cycles:.0f} tokens each,", end=" ")
    print(f"{power[cycles] / power.sum():.0%} of its variance.")
most = max(np.abs(np.fft.rfft(scores[:, i])).argmax() for i in range(3))
if most > 1:
    print(f"One component completes {most} cycles. The curve is a helix if two components do so together.")
else:
    print("No component completes more than one cycle: the curve is an arc, and no helix.")

# %% [markdown]
# This notebook judges nothing. The atlas judges every model in the same way, with thresholds and chance baselines.
