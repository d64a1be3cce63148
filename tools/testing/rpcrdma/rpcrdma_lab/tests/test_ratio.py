# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tests of the benchmark's ratios and their intervals, which tables of statistics know."""

import itertools
import math
import random
import statistics

import pytest

from .. import ratio
from ..ratio import Ratio

# Wilcoxon's signed-rank test in tables: of so many numbers, the greatest sum of ranks with which
# it rejects at 5 %
CRITICAL = {6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 15: 25}


@pytest.mark.parametrize(("count", "critical"), CRITICAL.items())
def test_interval_is_that_of_the_signed_rank_test(count: int, critical: int) -> None:
    pytest.importorskip("scipy")
    ratios = [math.exp(random.Random(number).gauss(0.1, 0.05)) for number in range(count)]
    means = sorted(math.sqrt(a * b)
                   for a, b in itertools.combinations_with_replacement(ratios, 2))
    found = ratio.of_rounds(ratios)
    assert found.ends == pytest.approx((means[critical], means[-1 - critical]))
    assert found.middle == pytest.approx(statistics.median(means), rel=0.01)


def test_what_an_interval_says() -> None:
    pytest.importorskip("scipy")
    better = ratio.of_rounds([1.1, 1.12, 1.14, 1.1, 1.13, 1.11, 1.15])
    assert better.text() == "1.12 (1.10 to 1.14)" and better.beyond() == 1
    # One round of seven that contradicts the others is enough.
    assert ratio.of_rounds([1.1, 1.12, 1.14, 1.1, 1.13, 1.11, 0.6]).beyond() == 0
    same = ratio.of_rounds([1.1, 1.1, 0.9, 1, 0.9, 1, 1])
    assert same.text() == "no difference (0.90 to 1.10)"
    assert same.numbers() == "1.00 (0.90 to 1.10)"
    assert ratio.of_rounds(7 * [1]).text() == "no difference (1.00 to 1.00)"
    assert ratio.of_rounds(7 * [0.5]).text() == "0.50 (0.50 to 0.50)"


def test_few_rounds_have_no_interval() -> None:
    few = ratio.of_rounds([0.8, 0.9])
    assert few.text() == "0.85" and few.beyond() == -1
    assert Ratio(1.004).beyond() == 0


@pytest.mark.parametrize("ratios", [[], [1.1, math.nan, 1.2], [1.1, 0]])
def test_no_ratio_if_one_of_them_is_unknown(ratios: list[float]) -> None:
    assert ratio.of_rounds(ratios).text() == ratio.NOTHING
