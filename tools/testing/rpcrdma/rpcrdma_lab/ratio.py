# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The ratio of two figures that were measured in turn in several rounds, and how sure it is."""

import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence

# The package that it needs, and other parts of the lab do not
PACKAGES = ("python3-scipy",)

CONFIDENCE = 0.95
# In fewer rounds not even the same result of all of them is so sure.
LEAST_ROUNDS = 6

NOTHING = "–"                   # in a cell: this is not measured here


@dataclasses.dataclass(frozen=True)
class Ratio:
    """
    A ratio, and the ends of its confidence interval. They are nan if there is none, as is the
    ratio if nothing was measured.
    """
    middle: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def measured(self) -> bool:
        """Whether there is one."""
        return not math.isnan(self.middle)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of its interval, or itself twice if it has none."""
        return (self.middle, self.middle) if math.isnan(self.low) else (self.low, self.high)

    def beyond(self, limit: float = 1) -> int:
        """
        1 if it is above a limit, -1 if it is below, 0 if the interval, as it is printed, has the
        limit in it.
        """
        low, high = self.ends
        return (round(low, 2) > limit) - (round(high, 2) < limit)

    def numbers(self) -> str:
        """The ratio and its interval."""
        if not self.measured:
            return NOTHING
        return f"{self.middle:.2f}{self.interval()}"

    def interval(self) -> str:
        """Its interval, if it has one."""
        return "" if math.isnan(self.low) else f" ({self.low:.2f} to {self.high:.2f})"

    def text(self) -> str:
        """The ratio in a cell, or that there is no difference."""
        same = self.interval() and not self.beyond()
        return f"no difference{self.interval()}" if same else self.numbers()


def of_rounds(ratios: Sequence[float]) -> Ratio:
    """
    The ratio of which those of single rounds are samples: the Hodges-Lehmann estimate of their
    logarithms, and with enough rounds the exact interval that Wilcoxon's signed-rank test does
    not reject. The estimate is the median of the means of all pairs. They are also where the
    test's result changes.
    """
    if not known(ratios):
        return Ratio()
    logs = [math.log(ratio) for ratio in ratios]
    means = sorted(statistics.fmean(pair)
                   for pair in itertools.combinations_with_replacement(logs, 2))
    middle = statistics.median(means)
    if len(logs) < LEAST_ROUNDS:
        return Ratio(math.exp(middle))
    low, high = (next((outer for outer, inner in itertools.pairwise(side)
                       if outer != inner and likely(logs, (outer + inner) / 2)), middle)
                 for side in (means, means[::-1]))
    return Ratio(math.exp(middle), math.exp(low), math.exp(high))


def likely(numbers: Sequence[float], centre: float) -> bool:
    """Whether numbers may be samples from around a centre."""
    from scipy import stats     # pylint: disable=import-outside-toplevel
    result = stats.wilcoxon([number - centre for number in numbers], method="exact")
    return bool(result.pvalue > 1 - CONFIDENCE)


def quotients(numbers: Sequence[float], bases: Sequence[float]) -> list[float]:
    """The ratio in each round; nan where it is not known."""
    return [number / base if base else math.nan for number, base in zip(numbers, bases)]


def known(ratios: Sequence[float]) -> bool:
    """Whether there are ratios, and none of them is unknown."""
    return bool(ratios) and all(ratio > 0 for ratio in ratios)
