"""What the atlas's own model does when it is run, against a plain script's numbers."""

import pytest

from generators.findings.heads import FINDING as HEADS
from generators.findings.stream import FINDING as STREAM
from tests.test_stored_numbers import measured_run

pytest.importorskip("torch", reason="torch isn't installed")
pytest.importorskip("transformers", reason="transformers isn't installed")


def test_heads_of_stdlib_gpt2():
    metrics = measured_run(HEADS, "stdlib-gpt2")["metrics"]
    heads = {(row["layer"], row["head"]): row for row in metrics["heads"]}
    for head, as_is, in_groups in (((2, 1), 0.37, 0.35), ((2, 3), 0.29, 0.29), ((3, 1), 0.19, 0.19)):
        assert heads[head]["on_text"] == pytest.approx(as_is, abs=0.015)
        assert heads[head]["in_groups"] == pytest.approx(in_groups, abs=0.015)
        assert heads[head]["removed"] == pytest.approx(0.03, abs=0.01)


def test_positions_in_the_stream_of_stdlib_gpt2():
    rows = measured_run(STREAM, "stdlib-gpt2")["metrics"]["layers"]
    assert [row["ev3"] for row in rows] == pytest.approx([0.889, 0.970, 0.991, 0.948, 0.336], abs=0.02)
    assert [row["share"] for row in rows] == pytest.approx([0.066, 0.114, 0.309, 0.060, 0.000], abs=0.005)
