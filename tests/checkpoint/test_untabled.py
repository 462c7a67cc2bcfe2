"""Of types that no table describes, the token side is right, and nothing is said of positions and masks."""

import json

import pytest

from tests.checkpoint.oracle import untabled

CAME = {
    **dict.fromkeys(("mamba", "rwkv", "funnel", "big_bird", "convbert", "nystromformer", "llava"), "read"),
    "owlvit": "read_in_a_part",
    **dict.fromkeys(("hubert", "xlnet"), "refused"),
}


@pytest.mark.oracle
@pytest.mark.parametrize("kind", CAME)
def test_a_type_of_transformers_is_read_rightly_or_refused(kind, tmp_path):
    if kind not in untabled.untabled():
        pytest.skip(f"{kind} has a table by now")
    assert untabled.outcome(kind, tmp_path) == CAME[kind]


def test_what_is_stored_of_all_types_is_right():
    stored = json.loads(untabled.RESULTS.read_text("utf-8"))
    assert stored["wrong"] == {}
    assert sum(len(stored[name]) for name in ("read", "read_in_a_part", "refused")) >= 100
