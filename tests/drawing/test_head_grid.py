"""The grid of heads: lines of another figure join only where they are of the same heads, at the offsets drawn."""

import json

import numpy as np
import pytest

from generators.drawing.head_grid import ByOffset, Grid, HeadGrid

OFFSETS = np.arange(-2, 3)


def grid(
    layers: int = 2, heads: int = 3, reach: int = 2, name: str = "on text", beside: str | None = None
) -> HeadGrid:
    offsets = np.arange(-reach, reach + 1)
    weights = np.arange(layers * heads * len(offsets)).reshape(layers * heads, -1) / 1000
    return HeadGrid(
        "weight",
        (Grid(name, np.full((layers, heads), 1 / 3)),),
        (ByOffset(name, offsets, weights),),
        beside,
    )


def test_lines_of_the_same_heads_join_at_the_offsets_that_are_drawn():
    joined = grid().joined(grid(reach=5, name="by positions alone"))
    assert [line.name for line in joined.lines] == ["on text", "by positions alone"]
    assert len(joined.grids) == 1
    np.testing.assert_array_equal(joined.lines[1].offsets, OFFSETS)
    np.testing.assert_allclose(joined.lines[1].weights[0], np.arange(3, 8) / 1000)


@pytest.mark.parametrize("other", [None, grid(layers=3), grid(heads=1), "something else"])
def test_nothing_joins_that_is_not_of_these_heads(other):
    assert [line.name for line in grid().joined(other).lines] == ["on text"]


def test_its_data_has_a_row_of_weights_for_every_head():
    data = json.loads(json.dumps(grid().as_json(), allow_nan=False))
    assert data["kind"] == "heads"
    assert data["grids"][0]["values"] == [[0.333] * 3] * 2
    assert [len(row) for row in data["lines"][0]["weights"]] == [5] * 6
