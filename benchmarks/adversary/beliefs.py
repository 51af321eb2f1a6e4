"""What is believed, so that a claim which is false by it alone is counted apart.

A certificate about a black box rests on what the box answers. Each entry names a way in which an
answer can be wrong without anybody who asks finitely often being able to see it; an instance that
is false by nothing else is `believed`, not `false conditional`. What is not listed here must be
refused.
"""

from __future__ import annotations

#: A gradient that is wrong by less than this part of its length shows in no difference of values.
SMALL_PART = 0.01

#: Noise of values that is no smaller than this part of what f changes by across the ball hides what
#: the gradient says.
NOISY_PART = 0.01

BELIEFS: dict[str, str] = {
    "small part of a gradient": (
        f"a gradient that is wrong by at most {100 * SMALL_PART:g} % of its length is believed: "
        "kinks beside a point and rounding of values hide more than that"
    ),
    "noise hides the error": (
        f"a wrong gradient is believed where the noise of values is at least {NOISY_PART:g} times "
        "what the error makes f change by across the ball"
    ),
    "lies at pseudo-random places": (
        "a gradient that is wrong at places which no neighbouring point shares (by the bits of x, "
        "by the number of the call) is found out by chance, or not at all"
    ),
    "slopes of values": (
        "claims from values alone believe the bound of the slopes that they state; a cliff that "
        "random points miss is beyond statistics"
    ),
    "bound of samples": (
        "a ConfidenceBound believes the gradient_bound that its caller states for all samples"
    ),
    "declared curvature": (
        "a minimum inside a box believes the curvature that its owner declares, as far as the "
        "values and gradients of its own cuts obey it"
    ),
}
