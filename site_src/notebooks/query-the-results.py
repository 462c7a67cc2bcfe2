# ---
# jupyter:
#   atlas:
#     reads:
#       - ../data/models.json
#       - ../data/*/findings.json
# ---

# %% [markdown]
# # Query the results
#
# All numbers of the atlas are published as JSON: `data/models.json` lists the models, and
# `data/<model>/findings.json` holds each one's claims with verdict, effect size, threshold and chance baseline. Here
# they become one pandas table.
#
# The files can be read from a built copy of the atlas, or straight from the web: set `DATA` to the address of a
# published atlas, followed by `/data`.

# %%
import json
from pathlib import Path
from urllib.request import urlopen

import matplotlib.pyplot as plt
import pandas as pd

DATA = Path("../data").resolve().as_uri()
pd.set_option("display.max_columns", None, "display.max_rows", None)


def read(path):
    with urlopen(f"{DATA}/{path}") as file:
        return json.load(file)


claims = pd.concat(
    pd.DataFrame(read(f"{model['name']}/findings.json")["claims"]).assign(model=model["title"])
    for model in read("models.json")
)
print(f"{claims.model.nunique()} models, {claims.id.nunique()} claims:")
print(", ".join(f"{count} x {verdict}" for verdict, count in claims.verdict.value_counts().items()) + ".")

# %% [markdown]
# ## Verdicts and values
#
# One row per claim, two columns per model. A value is the claim's effect size in the unit of its row; NaN stands
# where there is no such number: the claim could not be tested, or there was nothing to count. The table scrolls
# sideways.

# %% shows="Claims by models: unit, verdict and value of every claim in every model"
order = claims.id.unique()
rounded = claims.assign(value=pd.to_numeric(claims.value).round(3))
table = rounded.pivot(index=["id", "unit"], columns="model", values=["verdict", "value"])
table = table.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)
table.reindex(order, level="id")

# %% [markdown]
# ## One claim in all models
#
# Which claim is drawn is chosen in the first line; any id of the table can stand there. A bar is the model's value,
# the cross is what chance gives, and the dotted line is the threshold from which the claim holds.

# %% shows="The claim's effect size: a bar per model, a cross at its chance baseline, a dotted line at the threshold"
chosen = claims[claims.id == "three-components"].dropna(subset=["value"])

figure, axes = plt.subplots(figsize=(6.5, 1.4 + 0.4 * len(chosen)))
axes.barh(chosen.model, chosen.value, height=0.6, label="measured")
axes.plot(chosen.baseline, chosen.model, "x", color="C1", markersize=8, label="by chance")
for threshold in chosen.threshold.dropna().unique():
    axes.axvline(threshold, linestyle=":", color="C2", label="threshold")
axes.invert_yaxis()
axes.set(xlabel=f"effect size ({', '.join(chosen.unit.unique())})", ylabel="model")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
plt.show()

for statement in chosen.statement.unique():
    print(statement)
for row in chosen.itertuples():
    print(f"- {row.model}: {row.answer}")

# %% [markdown]
# ## Where models differ
#
# The claims on which tested models disagree say most about what a finding depends on.

# %% shows="Claims on which tested models disagree, with every model's verdict"
tested = claims[claims.verdict != "untested"]
differing = tested.groupby("id").verdict.nunique().loc[lambda count: count > 1].index
print(f"Models disagree on {len(differing)} of {tested.id.nunique()} tested claims.")
claims[claims.id.isin(differing)].pivot(index="id", columns="model", values="verdict").reindex(
    [claim for claim in order if claim in differing]
)
