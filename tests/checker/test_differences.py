"""What differences of values say of gradients: each threshold, from both of its sides.

Nothing here can accept a claim, but a threshold that moves refuses less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from goldstein.checker.blackbox import differences
from goldstein.checker.blackbox.differences import Differences
from goldstein.checker.blackbox.errors import ContradictedError, UnresolvedError
from goldstein.checker.constrained.limits import Box, as_box
from goldstein.checker.errors import KinkError

DELTA = 2.0**-10


class Counted:
    """A function of some variables that counts how often it is asked."""

    has_value = True

    def __init__(self, value: Callable[[Any], float], gradient: Callable[[Any], Any]) -> None:
        self._value, self._gradient, self.values, self.gradients = value, gradient, 0, 0

    def value(self, x: Any) -> float:
        self.values += 1
        return float(self._value(x))

    def gradient(self, x: Any) -> Any:
        self.gradients += 1
        return np.array(self._gradient(x), dtype=float)


def linear(slope: Any, said: Any = None, wrong: float = 0.0) -> Counted:
    """<slope, x>, whose gradient is said to be something else, or wrong by a part of its length."""
    slope = np.array(slope, dtype=float)
    said = slope * (1.0 + wrong) if said is None else np.array(said, dtype=float)
    return Counted(lambda x: slope @ x, lambda x: said)


def looked(f: Any, x: Any = (0.0,), delta: float = DELTA, seed: int = 0, box: Any = None) -> Any:
    x = np.array(x, dtype=float)
    return Differences(f, x, delta, box or as_box(None, x.size), seed)


def resolved(f: Any, x: Any = (0.0,), delta: float = DELTA, seed: int = 0, **more: Any) -> float:
    some = looked(f, x, delta, seed)
    known = [(some.x, f.gradient(some.x))]
    return float(some.resolution(known, **more).max())


def judged(
    rise: float, most: float, largest: float = 0.0, loose: bool = False, constant: bool = False,
    way: float = 2.0**-20,
) -> bool | None:  # fmt: skip
    """The verdict on a difference of values, where <g, way> is `most`."""
    some = looked(linear([1.0]))
    high, low = max(largest, rise), max(largest, rise) - rise
    g = np.array([most / way])
    verdict: bool | None = some._difference(g, np.array([way]), high, low, constant, loose)[0]
    return verdict


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_difference_agrees_up_to_a_part_and_contradicts_beyond_another(sign: float) -> None:
    """1e-4 of it is agreement, 5e-3 a mistake; between them nothing is said."""
    for wrong, verdict in ((0.9e-4, True), (1.2e-4, None), (4.8e-3, None), (5.2e-3, False)):
        assert judged(sign * (1.0 + wrong), sign) is verdict
        assert judged(sign * (1.0 - wrong), sign) is verdict


def test_loose_looks_agree_up_to_an_eighth_of_the_step_in_the_ball() -> None:
    way = 2.0**-2 * DELTA  # 1 / 8 of half of it
    for wrong, verdict in ((0.9 / 64, True), (1.1 / 64, False)):
        assert judged(1.0 + wrong, 1.0, loose=True, way=way) is verdict
    assert judged(1.0 + 0.9 / 64, 1.0, way=way) is False
    assert looked(linear([1.0]))._allowed(2.0**-20 * DELTA) == 1e-4
    assert looked(linear([1.0]))._allowed(DELTA) == 2.0**-3


def test_values_that_are_too_large_say_nothing() -> None:
    """128 units in the last place may blur a twentieth of a difference."""
    unit = 2.0**-53
    for share, verdict in ((0.9, False), (1.1, None)):
        largest = share * 0.05 / (128.0 * unit)
        assert judged(0.5, 1.0, largest=0.999 * largest) is verdict
    assert judged(math.inf, 1.0) is None
    assert judged(math.nan, 1.0) is None
    assert judged(0.0, 0.0) is None


def test_values_that_do_not_change_contradict_only_where_they_have_to() -> None:
    assert judged(0.0, 1.0) is None
    assert judged(0.0, 1.0, constant=True) is False
    assert judged(1.0, 0.0) is False


def test_single_precision_is_rounded_to_its_own_units() -> None:
    f = linear([1.0])
    f.coarse = "float32"  # type: ignore[attr-defined]
    assert looked(f)._unit == 2.0**-24
    assert looked(linear([1.0]))._unit == 2.0**-53


def test_the_finest_step_is_a_speck_of_the_ball_or_what_rounding_leaves() -> None:
    some, one = looked(linear([1.0])), np.ones(1)
    assert some.finest(np.zeros(1), one) == 2.0**-24 * DELTA
    # 512 units in the last place of the point.
    assert some.finest(np.array([2.0**30]), one) >= 2.0**-14
    # Eight units of a value of 2^20 are a ten-thousandth of this step, or half of its square
    # is that part of the ball which a loose look allows for.
    large = looked(Counted(lambda x: 2.0**20, lambda x: [1.0]))
    blur = 8.0 * 2.0**-53 * 2.0**20
    step = large.finest(np.zeros(1), one)
    assert step == pytest.approx(min(blur / 1e-4, 2.0 * math.sqrt(blur * DELTA * 8.0)))
    assert large.finest(np.zeros(1), np.zeros(1)) == math.inf
    assert large.finest(np.zeros(1), one, np.zeros(1, dtype=bool)) == math.inf


@pytest.mark.parametrize("wrong", [0.01, -0.01, 0.1, -1.0, -2.0, 5.0])
def test_a_wrong_gradient_is_found_out(wrong: float) -> None:
    """By a hundredth of its length in one variable; among several the mistake may be hidden."""
    for seed in range(5):
        for slope, worse in (([1.0], 1.0), ([3.0, -1.0, 2.0], 3.0)):
            with pytest.raises(ContradictedError):
                resolved(linear(slope, wrong=worse * wrong), np.zeros(len(slope)), seed=seed)


@pytest.mark.parametrize("wrong", [0.0, 5e-5])
def test_a_right_one_is_acquitted_at_the_finest_step_at_once(wrong: float) -> None:
    f = linear([1.0, -2.0], wrong=wrong)
    assert resolved(f, np.zeros(2)) == 0.5 * 2.0**-24 * DELTA
    assert f.values <= 3
    assert f.gradients == 1


def test_one_direction_is_enough_for_each_of_several_gradients() -> None:
    f = linear([1.0, -2.0])
    known = [(np.full(2, k * 0.1 * DELTA), np.array([1.0, -2.0])) for k in range(3)]
    looked(f, np.zeros(2)).resolution(known)
    assert f.values == 7
    some = looked(linear([1.0, -2.0]), np.zeros(2))
    some._clear = True  # values have disagreed somewhere
    some.resolution(known)
    assert some.f.values == 19


def test_the_only_gradient_of_a_claim_is_looked_at_in_other_directions() -> None:
    """A mistake at right angles to the first one is not seen there."""
    slope, wrong = np.array([3.0, -1.0, 2.0, 1.0]), np.array([0.1, 0.2, -0.1, 0.05])
    first = looked(linear(slope), np.zeros(4))._direction()
    f = linear(slope, said=slope + wrong - (wrong @ first) / (first @ first) * first)
    known = [(np.zeros(4), f.gradient(np.zeros(4)))]
    looked(f, np.zeros(4)).resolution(known)
    with pytest.raises(ContradictedError):
        looked(f, np.zeros(4)).resolution(known, closely=True)


def test_another_answer_to_the_same_question_accuses() -> None:
    """A gradient that differs by more than 1e-4 when it is asked for again is noise."""
    for wrong in (2e-4, 1e-2):
        answers = iter([1.04, *[1.04 + wrong] * 100])
        f = Counted(lambda x: x[0], lambda x, answers=answers: [next(answers)])
        with pytest.raises(ContradictedError):
            resolved(f)


def test_a_staircase_is_resolved_by_steps_longer_than_its_own() -> None:
    """f rounded to multiples of h is f in steps that are long against h, and in no other."""
    for h in (2.0**-20, 2.0**-17):
        f = Counted(lambda x, h=h: round(x[0] / h) * h, lambda x: [1.0])
        for seed in range(10):
            assert resolved(f, delta=2.0**-4, seed=seed) >= h
    coarse = Counted(lambda x: round(x[0] / DELTA) * DELTA, lambda x: [1.0])
    for seed in range(10):
        with pytest.raises(UnresolvedError):
            resolved(coarse, seed=seed)


def test_a_kink_at_the_point_acquits_by_what_is_beside_it() -> None:
    """|x| with either slope, or with one that no side has: the last is a lie at one place."""
    for said in (1.0, -1.0):
        f = Counted(
            lambda x: abs(x[0]), lambda x, said=said: [said if x[0] == 0 else np.sign(x[0])]
        )
        for seed in range(10):
            assert resolved(f, seed=seed) <= 2.0**-4 * DELTA
    f = Counted(lambda x: x[0], lambda x: [0.5 if abs(x[0]) < 0.5 * DELTA else 1.0])
    for seed in range(10):
        with pytest.raises(ContradictedError):
            resolved(f, seed=seed)


class Seen:
    """Stands for the look at one point: the later, the coarser."""

    def __init__(self) -> None:
        self.places: list[float] = []
        self.slopes: list[float] = []

    def __call__(self, y: Any, g: Any) -> float:
        self.places.append(float(y[0]))
        self.slopes.append(float(g[0]))
        return 2.0**-20 * len(self.places)


def test_the_coarsest_of_the_heavy_points_counts_and_no_more_than_three_of_them() -> None:
    f = Counted(lambda x: x[0], lambda x: [1.0])
    some = looked(f)
    points = [np.array([k * 0.1 * DELTA]) for k in range(30)]
    some._resolved = Seen()
    step = some.resolution([(y, np.ones(1)) for y in points])
    assert some._resolved.places == [float(y[0]) for y in points[:3]]
    assert step.tolist() == [0.5 * 3 * 2.0**-20]


def test_values_must_not_contradict_the_first_24_points() -> None:
    f = Counted(lambda x: x[0], lambda x: [1.0])
    wrong, right = np.array([1.2]), np.ones(1)
    for place, found in ((3, True), (23, True), (24, False)):
        known = [(np.zeros(1), wrong if k == place else right) for k in range(30)]
        some = looked(f)
        some._resolved = Seen()
        some.resolution(known)
        assert (1.2 in some._resolved.slopes) is found


def test_what_other_coordinates_hide_is_looked_at_outside_the_ball() -> None:
    """A slope of 1 beside one of 1e6, and a gradient that does not say so."""
    for said, wrong in ((1.0, False), (0.0, True), (2.0, True), (-1.0, True)):
        f = linear([1e6, 1.0], said=[1e6, said])
        for seed in range(5):
            if wrong:
                with pytest.raises((ContradictedError, UnresolvedError)):
                    resolved(f, [0.0, 0.0], seed=seed)
            else:
                assert resolved(f, [0.0, 0.0], seed=seed) < 2.0**-10 * DELTA


def test_gradients_of_zeros_have_to_be_level() -> None:
    """Values that rise in proportion, here or a thousand balls away, accuse; curvature does not."""
    flat = Counted(lambda x: 3.0, np.zeros_like)
    assert resolved(flat) == pytest.approx(0.5 * 2.0**-24 * DELTA)
    for seed in range(5):
        with pytest.raises(ContradictedError):
            resolved(Counted(lambda x: 1e-3 * x[0], np.zeros_like), seed=seed)
    bent = Counted(lambda x: x[0] ** 2, lambda x: 2 * x)
    for seed in range(5):
        assert resolved(bent, seed=seed) <= 2.0**-4 * DELTA


def test_random_points_of_the_ball_accuse_where_two_of_them_do() -> None:
    for seed in range(5):
        looked(linear([1.0, 2.0]), np.zeros(2), seed=seed).at_random()
        with pytest.raises(ContradictedError):
            looked(linear([1.0, 2.0], wrong=0.02), np.zeros(2), seed=seed).at_random()
    f = linear([1.0], wrong=1.0)
    with pytest.raises(ContradictedError):
        looked(f).at_random()
    assert f.gradients == differences.POINTS
    kinks = Counted(lambda x: x[0], lambda x: [1.0])
    kinks.gradient = _kink  # type: ignore[method-assign]
    looked(kinks).at_random()


def _kink(x: Any) -> Any:
    raise KinkError("on a kink", x)


def test_directions_are_long_in_every_coordinate() -> None:
    some = looked(linear([1.0] * 16), np.zeros(16))
    drawn = np.array([some._direction() for _ in range(200)]) * 4.0
    assert 0.5 <= np.abs(drawn).min() < 0.52
    assert 1.48 < np.abs(drawn).max() <= 1.5
    along = np.arange(16) % 2 == 0
    assert not some._direction(along)[~along].any()


def test_no_step_leaves_the_bounds() -> None:
    asked: list[Any] = []

    def value(x: Any) -> float:
        asked.append(x.copy())
        return float(x.sum())

    box = Box(np.array([0.0, -1.0]), np.array([2.0**-40, 0.0]))
    f = Counted(value, lambda x: [1.0, 1.0])
    some = looked(f, [0.0, 0.0], box=box)
    some.resolution([(some.x, np.ones(2))])
    assert asked
    assert all(box.contains(x) for x in asked)


def test_one_direction_at_right_angles_to_a_mistake_acquits_nobody() -> None:
    """A fixed error of 1 to 5 % of the length in a random direction: 36 of 180 checks passed."""
    passed = 0
    for seed in range(30):
        for d in (3, 10):
            for part in (0.01, 0.02, 0.05):
                rng = np.random.default_rng([seed, d])
                g, error = rng.standard_normal((2, d))
                error *= part * np.linalg.norm(g) / np.linalg.norm(error)
                try:
                    resolved(linear(g, said=g + error), np.zeros(d), seed=seed)
                    passed += 1
                except (ContradictedError, UnresolvedError):
                    pass
    assert passed <= 9


class Scripted(Differences):
    """The look at one point, where what is seen beside it is written down: (alike, verdict)."""

    def __init__(self, first: bool | None, beside: list[tuple[bool | None, bool | None]]) -> None:
        super().__init__(linear([1.0]), np.zeros(1), DELTA, as_box(None, 1), 0)
        self._coarsest = 2.0**-4 * DELTA
        self.first, self.beside, self.smooth = first, beside, 0.0
        self.steps: list[float] = []

    place: Any = None  # of the last look

    def finest(self, y: Any, g: Any, along: Any = None) -> float:
        return 2.0**-24 * DELTA

    def agree(self, y: Any, g: Any, step: float, along: Any = None) -> tuple[bool | None, float]:
        if not y.any():
            self.steps.append(step)
            return self.first, step
        if y is self.place:  # a longer step at the place of the last look
            return self.longer, step
        (_, verdict, *longer), self.place = self.beside.pop(0), y
        self.longer = longer[0] if longer else verdict
        return verdict, step

    def _gradient(self, z: Any) -> Any:
        alike = self.beside[0][0] if self.beside else None
        if alike is None and self.beside:
            self.beside.pop(0)
        return None if alike is None else np.array([1.0 if alike else -1.0])

    def _require_same(self, y: Any, g: Any) -> None:
        pass

    def _require_kink(self, y: Any, g: Any, step: float) -> None:
        pass

    def _smoothly(self, y: Any, g: Any) -> float:
        return self.smooth


def said(first: bool | None, *beside: tuple[bool | None, ...], smooth: float = 0.0) -> Any:
    some = Scripted(first, list(beside))
    some.smooth, some._closely = smooth, True
    try:
        return some._resolved(np.zeros(1), np.ones(1)) / DELTA
    except (ContradictedError, UnresolvedError) as refusal:
        return type(refusal)


OTHER, NOTHING, AGAINST = (False, True), (True, None), (True, False)


def test_one_look_that_agrees_acquits_a_gradient() -> None:
    assert said(True) == 2.0**-24
    assert said(None, (True, True)) == 2.0**-24
    assert said(None, NOTHING, AGAINST, AGAINST, AGAINST, (True, True)) < 2.0**-4
    assert said(None, (None, None), (True, True)) < 2.0**-4


def test_what_a_short_step_leaves_open_a_longer_one_may_decide() -> None:
    assert said(None, (True, None, True)) == 2.0**-22
    assert said(None, *[(True, None, False)] * 3) is ContradictedError
    assert said(None, *[(False, None, True)] * 30) is UnresolvedError  # of another piece


def test_other_pieces_leave_a_point_behind_if_they_are_four_times_as_many() -> None:
    assert said(None, OTHER, OTHER, OTHER, OTHER) < 2.0**-4
    assert said(None, *[OTHER] * 3) < 2.0**-4  # nothing else is seen then
    assert said(None, NOTHING, *[OTHER] * 3) is UnresolvedError
    assert said(None, NOTHING, *[OTHER] * 4) < 2.0**-4
    assert said(None, NOTHING, NOTHING, *[OTHER] * 7) is UnresolvedError
    assert said(None, NOTHING, NOTHING, *[OTHER] * 8) < 2.0**-4
    assert said(None, *[(False, None)] * 30) is UnresolvedError


def test_who_leaves_a_point_behind_must_not_meet_what_contradicts_it() -> None:
    assert said(None, AGAINST, *[OTHER] * 8) is UnresolvedError
    assert said(None, AGAINST, AGAINST, *[OTHER] * 12) is UnresolvedError
    assert said(None, AGAINST, AGAINST, AGAINST, *[OTHER] * 12) is ContradictedError
    assert said(None, *[(False, False)] * 8) is UnresolvedError


def test_a_gradient_that_changes_in_proportion_will_do_where_values_say_nothing() -> None:
    assert said(None, smooth=0.25 * DELTA) == 0.25
    some = Scripted(None, [])
    some.smooth, some._clear = DELTA, True
    with pytest.raises(UnresolvedError):
        some._resolved(np.zeros(1), np.ones(1))
    large = Counted(lambda x: 1e30, lambda x: 1.0 + 2.0 * x)
    look = looked(large)
    assert look.resolution([(np.zeros(1), np.ones(1))]).max() <= 2.0**-4 * DELTA
    assert not look.clear
    rounded = Counted(lambda x: 1e30, lambda x: 1.0 + np.round(x / DELTA))
    for seed in range(5):
        with pytest.raises(UnresolvedError):
            resolved(rounded, seed=seed)


def test_the_point_itself_is_looked_at_again_with_longer_steps() -> None:
    some = Scripted(None, [])
    with pytest.raises(UnresolvedError):
        some._resolved(np.zeros(1), np.ones(1))
    steps = np.array(some.steps) / DELTA
    assert steps[0] == 2.0**-24
    assert steps[-1] == 2.0**-4
    assert set(steps[2:] / steps[1:-1]) == {4.0}


def test_a_lie_at_one_point_is_no_kink() -> None:
    """f is straight there: what is beside the point does not acquit it."""
    lie = Counted(lambda x: x[0], lambda x: [1.0 if x[0] else 0.5])
    for seed in range(10):
        with pytest.raises(ContradictedError):
            resolved(lie, seed=seed)


def test_noise_is_called_noise() -> None:
    answers = iter([1.04, *[1.0] * 100])
    f = Counted(lambda x: x[0], lambda x: [next(answers)])
    some = looked(f)
    with pytest.raises(ContradictedError) as refusal:
        some.resolution([(some.x, f.gradient(some.x))])
    assert refusal.value.gap == pytest.approx(0.04)
