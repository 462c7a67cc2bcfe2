"""The grid of heads: numbers of every head, and the lines of the one that is chosen."""

import json

import numpy as np

from generators.drawing.head_grid import ByOffset, Grid, HeadGrid


def test_its_data_has_a_row_of_weights_for_every_head():
    offsets, weights = np.arange(-2, 3), np.arange(30).reshape(6, 5) / 1000
    grid = HeadGrid("weight", (Grid("on text", np.full((2, 3), 1 / 3)),), (ByOffset("on text", offsets, weights),))
    data = json.loads(json.dumps(grid.as_json(), allow_nan=False))
    assert data["kind"] == "heads"
    assert data["grids"][0]["values"] == [[0.333] * 3] * 2
    assert [len(row) for row in data["lines"][0]["weights"]] == [5] * 6
