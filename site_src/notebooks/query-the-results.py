# ---
# jupyter:
#   atlas:
#     reads:
#       - ../data/atlas.parquet
# ---

# %% [markdown]
# # Query the results
#
# All results of the atlas are published as one table with a row for each claim of each model: verdict, effect size,
# threshold, chance baseline. The page *Data*, next to *About*, explains every column.
# The file `data/<model>/findings.json` holds everything measured for one model.
#
# The table can be read from a built copy of the atlas, or from the web. For the web, set `DATA` to the address of a
# published atlas, followed by `/data`.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

DATA = Path("../data").resolve().as_uri()
pd.set_option("display.max_columns", None, "display.max_rows", None)

results = pd.read_parquet(f"{DATA}/atlas.parquet")
claims = results[~results.only_in_series].fillna({"unit": ""})  # one recipe trained ten times is no ten models
print(f"{claims.model.nunique()} models, {claims.claim.nunique()} claims:")
print(", ".join(f"{count} x {verdict}" for verdict, count in claims.verdict.value_counts().items()) + ".")

# %% [markdown]
# ## Verdicts and values
#
# The table below has one row per claim and two columns per model. A value is the claim's effect size, in the unit of
# its row. It is NaN if the claim could not be tested, or if there was nothing to count. The table scrolls sideways.

# %% shows="Claims by models: unit, verdict and value of every claim in every model"
order = claims.claim.unique()
rounded = claims.assign(value=pd.to_numeric(claims.value).round(3))
table = rounded.pivot(index=["claim", "unit"], columns="title", values=["verdict", "value"])
table = table.swaplevel(axis=1).sort_index(axis=1, level=0, sort_remaining=False)
table.reindex(order, level="claim")

# %% [markdown]
# ## One claim in all models
#
# The first line of the code names the claim to draw. You can put any claim of the table there. A bar is the model's
# value, and a cross is the value that chance gives. The dotted line is the threshold from which the claim holds.

# %% shows="The claim's effect size: a bar per model, a cross at its chance baseline, a dotted line at the threshold"
chosen = claims[claims.claim == "three-components"].dropna(subset=["value"])

figure, axes = plt.subplots(figsize=(6.5, 1.4 + 0.4 * len(chosen)))
axes.barh(chosen.title, chosen.value, height=0.6, label="measured")
axes.plot(chosen.baseline, chosen.title, "x", color="C1", markersize=8, label="by chance")
for threshold in chosen.threshold.dropna().unique():
    axes.axvline(threshold, linestyle=":", color="C2", label="threshold")
axes.invert_yaxis()
axes.set(xlabel=f"effect size ({', '.join(chosen.unit.unique())})", ylabel="model")
axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
plt.show()

for statement in chosen.statement.unique():
    print(statement)
for row in chosen.itertuples():
    print(f"- {row.title}: {row.answer}")

# %% [markdown]
# ## Where models differ
#
# Models disagree on some claims. These claims show best what a finding depends on.

# %% shows="Claims on which tested models disagree, with every model's verdict"
tested = claims[claims.verdict != "untested"]
differing = tested.groupby("claim").verdict.nunique().loc[lambda count: count > 1].index
print(f"Models disagree on {len(differing)} of {tested.claim.nunique()} tested claims.")
claims[claims.claim.isin(differing)].pivot(index="claim", columns="title", values="verdict").reindex(
    [claim for claim in order if claim in differing]
)
