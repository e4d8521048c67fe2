"""The statistical test: are accuracies of two orders the same within noise?

Fixed before the experiment was run:

- What is compared is the accuracy on the test pictures after the last epoch (never the best epoch).
- Each order is compared with the global shuffle by the difference of the means over the seeds,
  with Welch's t: the two may vary differently. Not paired by seed: two orders with the same first
  weights drift apart within an epoch.
- The orders *differ* if the two-sided 95 % interval of the difference leaves out 0.
- They are *equivalent* if the two one-sided tests at 5 % (TOST) both reject a difference of MARGIN
  or more, which is to say that the 90 % interval lies within the margin. Not to find a difference
  is no proof that there is none; this is.
- No correction for several comparisons: it would only make it harder to find a difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, variance

MARGIN = 0.5  # percentage points of accuracy: 50 of the 10,000 test pictures


@dataclass
class Comparison:
    """An order's final accuracies against the global shuffle's, in percentage points."""

    difference: float
    low95: float
    high95: float
    p: float  # that chance alone gives such a difference
    p_equivalence: float  # that orders which differ by MARGIN look as close as these
    verdict: str


def compare(accuracies: Sequence[float], reference: Sequence[float]) -> Comparison:
    difference = mean(accuracies) - mean(reference)
    a = variance(accuracies) / len(accuracies)
    b = variance(reference) / len(reference)
    error = math.sqrt(a + b)
    freedom = (a + b) ** 2 / (a**2 / (len(accuracies) - 1) + b**2 / (len(reference) - 1))
    reach = t_quantile(0.975, freedom) * error
    p = 2 * (1 - t_cumulative(abs(difference) / error, freedom))
    p_equivalence = 1 - t_cumulative((MARGIN - abs(difference)) / error, freedom)

    same = "equivalent" if p_equivalence < 0.05 else "not shown to be equivalent"
    found = "no difference found"
    if p < 0.05:
        found = "better" if difference > 0 else "worse"
    return Comparison(
        difference, difference - reach, difference + reach, p, p_equivalence, f"{same}; {found}"
    )


def t_cumulative(t: float, freedom: float) -> float:
    """Student's distribution, by Simpson's rule over the angle whose tangent is t / sqrt(freedom);
    there the density is a power of a cosine, smooth and bounded."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    scale /= math.sqrt(math.pi)
    angle = math.atan(t / math.sqrt(freedom))
    pieces = 2000
    total = 0.0
    for i in range(pieces + 1):
        weight = 1 if i in (0, pieces) else 4 if i % 2 else 2
        total += weight * math.cos(angle * i / pieces) ** (freedom - 1)
    return 0.5 + scale * total * angle / pieces / 3


def t_quantile(probability: float, freedom: float) -> float:
    low, high = -1000.0, 1000.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if t_cumulative(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
