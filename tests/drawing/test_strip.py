"""The strip beside a claim: everything where its number puts it."""

import re

import pytest

from generators.drawing.strip import MARGIN, WIDTH, strip

VALUE = re.compile(r'class="strip-value" cx="([\d.]+)"')
THRESHOLD = re.compile(r'class="strip-threshold" x1="([\d.]+)"')


def places(svg):
    return float(VALUE.search(svg)[1]), float(THRESHOLD.search(svg)[1])


def test_numbers_stand_in_their_order_within_the_frame():
    svg = strip(0.91, (0.88, 0.93), 0.9, (0.5, 0.7), "share of variance", "stability range")
    value, threshold = places(svg)
    assert MARGIN <= threshold < value <= WIDTH - MARGIN
    assert 'aria-label="value 0.91 share of variance, stability range 0.88 to 0.93, threshold 0.9, ' in svg
    assert "chance 0.5, its limit 0.7" in svg


def test_far_apart_numbers_are_on_a_logarithmic_scale():
    value, threshold = places(strip(100.0, None, 1.0, (0.01, 0.1), ""))
    assert threshold == pytest.approx(WIDTH / 2, abs=0.1)
    assert value == WIDTH - MARGIN


@pytest.mark.parametrize(("value", "threshold", "chance"), [(None, 1.0, (0.0, 1.0)), (0.3, None, None)])
def test_where_there_is_nothing_to_compare_there_is_no_strip(value, threshold, chance):
    assert strip(value, None, threshold, chance) == ""


def test_equal_numbers_are_no_trouble():
    assert places(strip(0.0, (0.0, 0.0), 0.0, (0.0, 0.0))) == (MARGIN, MARGIN)


def test_a_unit_is_text():
    assert "<b>" not in strip(1.0, None, 2.0, None, '"><b>')


def test_a_value_short_of_the_cutoff_never_reads_like_it():
    short, beyond = (strip(value, None, 0.99, None, "of variance", sense="at least") for value in (0.9856, 0.9906))
    assert ">98.6\xa0%</text>" in short
    assert beyond.count(">99\xa0%</text>") == 2


def test_a_logarithmic_scale_is_marked():
    far, near = strip(100.0, None, 1.0, None), strip(10.0, None, 1.0, None)
    assert ("log scale" in far, "log scale" in near) == (True, False)
    assert ", logarithmic scale" in far
