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
# matrix, P. In 2023, Adam Yedidia saw that the position vectors of GPT-2 lie on a helix. Here we look at P of
# `stdlib-gpt2` in the same way, in a dozen lines. It is a small GPT-2 whose weights are in the atlas's repository.
#
# It runs in the folder `site_src/notebooks` of a copy of the repository; `make site` installs what it needs.

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
# The first position is left out. In many GPT-2s it lies far away from all the others and would pull every direction
# toward itself. The mean row is subtracted, and a singular value decomposition finds the directions in which the rows
# differ most, the principal components. If the rows were noise, all components would hold about as much.

# %%
rows = P[1:]
centred = rows - rows.mean(axis=0)
U, S, Vt = np.linalg.svd(centred, full_matrices=False)
share = S**2 / (S**2).sum()
scores = U * S  # row i: where position i + 1 lies along each component
positions = np.arange(1, n)

noise = np.random.default_rng(0).standard_normal(rows.shape)
by_chance = np.linalg.svd(noise - noise.mean(axis=0), compute_uv=False) ** 2

print(f"Three components hold {share[:3].sum():.1%} of the variance of P, one by one:")
print(", ".join(f"{s:.1%}" for s in share[:3]) + ".")
print(f"Of Gaussian noise of the same shape they hold {by_chance[:3].sum() / by_chance.sum():.1%}.")

# %% [markdown]
# ## The curve
#
# Every dot below is one position, at the place that the three components give it. Where neighbors in the text are
# also neighbors in this plot, the dots join into a curve. A curve that winds around an axis is a helix.

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
print(f"through the same dots in random order it would move {by_chance_step:.3f},", end=" ")
print(f"{by_chance_step / step:.1f} times as far.")

# %% [markdown]
# ## Its components
#
# Against position, each component of a helix is a wave or a drift: two waves of the same period, a quarter apart,
# make the circle, and the third component carries the curve along.

# %% shows="The first three principal components of P against position: three lines, one per component"
figure, axes = plt.subplots(figsize=(6.5, 3.2))
for i in range(3):
    axes.plot(positions, scores[:, i], label=f"PC {i + 1} ({share[i]:.0%} of the variance)")
axes.set(xlabel="position (tokens)", ylabel="component (units of P)")
axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=3, columnspacing=1)
plt.show()

# %% [markdown]
# The spectrum of each component shows how often it goes round: we take the whole number of cycles, over all
# positions, that holds most of its variance.

# %%
for i in range(3):
    power = np.abs(np.fft.rfft(scores[:, i])) ** 2
    cycles = power.argmax()
    print(f"PC {i + 1}: cycles: {cycles}, of {len(rows) / cycles:.0f} tokens each,", end=" ")
    print(f"{power[cycles] / power.sum():.0%} of its variance.")
most = max(np.abs(np.fft.rfft(scores[:, i])).argmax() for i in range(3))
if most > 1:
    print(f"One of them goes round {most} times: whether two of them do so together makes it a helix or not.")
else:
    print("None goes round more than once: that is a slow drift, an arc, and no helix.")

# %% [markdown]
# This page judges nothing: the atlas does, with thresholds and chance baselines, in the same way for every model.
