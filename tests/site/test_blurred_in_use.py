"""What blurring costs running models, in a sentence: of none, of one, of several, of many."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from generators.site.words import environment

LOSS, TURNING = "nats per token", "1 - cosine"


def model(name: str, share: float | None = None, unit: str = LOSS) -> Any:
    """Return a page of a model that pays so much of what all but the first position cost; None: it wasn't run.

    `damage`, the share of what removing the first as well costs, is another number, by which nothing is judged.
    """
    row = SimpleNamespace(kind="groups", amount=10, share=share, damage=0.5)
    ran = share is not None
    return SimpleNamespace(
        name=name,
        title=name.upper(),
        claims={"exact-positions": SimpleNamespace(verdict="fails")} if ran else {},
        measured={"position_use": SimpleNamespace(damages=[row], unit=unit)} if ran else {},
    )


def said(where: str, *pages: Any) -> str:
    words = environment().get_template("findings/position_use.md.j2").make_module({"root": ""})
    return re.sub(r"<[^>]*>", "", " ".join(getattr(words, where)(pages).split()))


def test_of_each_model_its_share_the_cheapest_first():
    assert said("here", model("b", 0.631), model("a", 0.033)) == (
        "Compared with removing all positions but the first, averaging positions in groups of ten costs 3.3 % as "
        "much in A and 63 % in B."
    )


def test_of_many_only_how_they_range():
    text = said("here", *(model(f"m{i}", i / 10) for i in range(9)))
    assert text.endswith("costs between 0 % (M0) and 80 % (M8) as much in 9 models, 40 % in the median.")


@pytest.mark.parametrize(
    ("units", "told"),
    [
        ([LOSS], "in A."),
        ([TURNING], "in A. For encoders without a head, cost is measured in the last hidden states."),
        (
            [LOSS, TURNING],
            "in A. Cost is measured in loss; for encoders without a head, in the last hidden states.",
        ),
    ],
)
def test_units_are_named_where_it_is_not_loss_alone(units, told):
    assert said("here", *(model("a", 0.1, unit) for unit in units)).endswith(told)


def test_where_it_is_known_of_no_model_nothing_is_begun():
    assert said("here", model("gpt2")) == ""
    text = said("blurred_in_all", model("a"))
    assert text == (
        "The effect on a running model is measured under Use of positions. This page looks at positions alone, "
        "without text."
    )


def test_of_the_model_that_it_was_reported_of_it_is_said_that_it_is_not_checked():
    assert "The effect was reported for GPT2, which can't be run here." in said(
        "here", model("gpt2"), model("a", 0.1)
    )
    assert "reported" not in said("here", model("gpt2", 0.2), model("a", 0.1))
