"""When is a run given up that float64 cannot finish?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from goldstein.solvers.tuning import TUNING

if TYPE_CHECKING:
    from goldstein.solvers.auto import AutoState

#: A solver that takes so many steps without asking anything will never ask again.
IDLE_LIMIT = 1000


def look_back(s: AutoState) -> None:
    """Keep in `s.earlier` what f was between a quarter and a half of the steps ago.

    Steps, and not calls: many of these are spent on a proof, and f does not fall meanwhile.
    """
    if s.steps >= s.mark_steps:
        s.earlier = s.mark_value
        s.mark_value = s.fx
        s.mark_steps = s.steps + max(1, s.steps // 4)


def stalled(s: AutoState, calls: int) -> bool:
    """Has nothing improved for long, where float64 cannot even resolve the descent test?

    Where it can, the guarantee holds and giving up would break it.
    """
    bound = s.bound if s.radius <= s.delta else math.inf
    if s.fx < s.progress_value or bound < 0.99 * s.progress_bound:
        s.progress_value = min(s.progress_value, s.fx)
        s.progress_bound = min(s.progress_bound, bound)
        s.progress_calls = calls
        return False
    resolved = 0.25 * s.delta * s.eps >= 8.0 * 2.0**-53 * abs(s.fx)
    idle = calls - s.progress_calls
    patient: bool = idle <= TUNING.patience * (s.dim + 10)
    return not resolved and not patient
