"""Convex quadratic programmes on the simplex: the shortest vector of a hull, and the model.

Minimise w'Kw/2 + a'w by an active-set method (for a = 0 it is Wolfe's, Mathematical Programming 11,
1976). The Cholesky factor of the active rows is updated when one comes or goes, so that a change
costs the square of their number.

Every step inside a face is a correction: it solves for the slopes that are left. A factor that is
not quite right, by rounding or by the floor under its pivots, therefore costs a repetition and not
accuracy. Where the vector is so short that K has lost its digits, the slopes are taken from the
rows (`exact`).
"""

import math
from typing import Any

from goldstein.solvers.compiled.records import face_at, integers, make_kernels, row, unit, vector
from goldstein.solvers.compiled.vectors import add_multiple, copy, dot

#: Pivots of the factor are no smaller than this part of the diagonal.
_FLOOR = 1e-14
#: Below this ratio |m| / |g| the Gram matrix has lost half of its digits: look at the rows.
_GRAM_LIMIT = 1e-5
#: Corrections within one face.
_CORRECTIONS = 4


def square(face: Any, index: Any) -> Any:
    """Return a diagonal entry of K."""
    linear = vector(face.linear, face.count)[index]
    return row(face.gram, face.capacity, index)[index] + face.bend * linear * linear


def start_at(face: Any, index: Any) -> None:
    """All weight to one row."""
    weights = vector(face.weights, face.count)
    for i in range(face.count):
        weights[i] = 0.0
    weights[index] = 1.0
    integers(face.order, 1)[0] = index
    face.active = 1
    face.valid = 0


def collect(face: Any) -> Any:
    """Continue from the weights that are left: scale them, and list those that are positive.

    Returns what they summed up to.
    """
    weights, order = vector(face.weights, face.count), integers(face.order, face.count)
    total = 0.0
    active = 0
    for i in range(face.count):
        if weights[i] > 0.0:
            total += weights[i]
            order[active] = i
            active += 1
        else:
            weights[i] = 0.0
    if total > 0.0:
        for i in range(face.count):
            weights[i] /= total
    face.active = active
    face.valid = 0
    return total


def combine(face: Any, target: Any) -> None:
    """Set target to the weighted sum of the rows."""
    weights, order = vector(face.weights, face.count), integers(face.order, face.active)
    target[:] = 0.0
    for place in range(face.active):
        index = order[place]
        add_multiple(weights[index], row(face.rows, face.width, index), target)


def _append(face: Any, place: Any) -> None:
    """Factorise one row more: that of `order[place]`, all before it being done."""
    order = integers(face.order, place + 1)
    width = face.capacity + 1
    products = row(face.gram, face.capacity, order[place])
    new = row(face.factor, width, place)
    linear = vector(face.linear, face.count)
    bend = face.bend * linear[order[place]]
    whole = square(face, order[place]) + face.shift
    left = whole
    for j in range(place):
        old = row(face.factor, width, j)
        value = products[order[j]] + bend * linear[order[j]] + face.shift
        for i in range(j):
            value -= new[i] * old[i]
        value /= old[j]
        new[j] = value
        left -= value * value
    new[place] = math.sqrt(max(left, _FLOOR * whole))


def _factorise(face: Any) -> None:
    order = integers(face.order, face.active)
    shift = 0.0
    for place in range(face.active):
        shift = max(shift, square(face, order[place]))
    # A constant added to K changes nothing on the simplex, and keeps the factor away from 0.
    face.shift = shift if shift > 0.0 else 1.0
    for place in range(face.active):
        _append(face, place)
    face.valid = 1


def remove(face: Any, place: Any) -> None:
    """Take a row out of the active set, and out of the factor by rotations."""
    order = integers(face.order, face.active)
    width = face.capacity + 1
    last = face.active - 1
    for i in range(place, last):
        order[i] = order[i + 1]
    face.active = last
    if face.valid == 0:
        return
    for i in range(place, last):
        upper, lower = row(face.factor, width, i), row(face.factor, width, i + 1)
        for j in range(i + 2):
            upper[j] = lower[j]
    for i in range(place, last):
        pivots = row(face.factor, width, i)
        size = math.sqrt(pivots[i] * pivots[i] + pivots[i + 1] * pivots[i + 1])
        if not size > 0.0:
            face.valid = 0
            return
        cosine, sine = pivots[i] / size, pivots[i + 1] / size
        pivots[i] = size
        for j in range(i + 1, last):
            entries = row(face.factor, width, j)
            one, other = entries[i], entries[i + 1]
            entries[i] = cosine * one + sine * other
            entries[i + 1] = cosine * other - sine * one


def _solve(face: Any, side: Any, other: Any) -> None:
    """Overwrite two right-hand sides with their solutions: together, neither waits for itself."""
    width = face.capacity + 1
    for i in range(face.active):
        entries = row(face.factor, width, i)
        value, more = side[i], other[i]
        for j in range(i):
            value -= entries[j] * side[j]
            more -= entries[j] * other[j]
        side[i], other[i] = value / entries[i], more / entries[i]
    for i in range(face.active - 1, -1, -1):
        entries = row(face.factor, width, i)
        value, more = side[i] / entries[i], other[i] / entries[i]
        side[i], other[i] = value, more
        for j in range(i):
            side[j] -= entries[j] * value
            other[j] -= entries[j] * more


def _correct(face: Any) -> Any:
    """Step to the minimum over the affine hull of the face, or to where a weight vanishes.

    Returns True where the whole step was taken.
    """
    if face.valid == 0:
        _factorise(face)
    count = face.active
    order, weights = integers(face.order, count), vector(face.weights, face.count)
    slopes = vector(face.slopes, face.count)
    ones, step = vector(face.ones, count), vector(face.step, count)
    for i in range(count):
        ones[i] = 1.0
        step[i] = -slopes[order[i]]
    _solve(face, ones, step)
    sum_ones, sum_step = 0.0, 0.0
    for i in range(count):
        sum_ones += ones[i]
        sum_step += step[i]
    ratio = sum_step / sum_ones
    if not math.isfinite(ratio):
        face.valid = 0
        return True
    reach, leaving = 1.0, -1
    for i in range(count):
        step[i] -= ratio * ones[i]
        have = weights[order[i]]
        if have + step[i] <= 0.0:
            part = have / -step[i] if step[i] < 0.0 else 0.0
            if part < reach or leaving < 0:
                reach, leaving = part, i
    total = 0.0
    for i in range(count):
        weight = max(weights[order[i]] + reach * step[i], 0.0)
        if i == leaving:
            weight = 0.0
        weights[order[i]] = weight
        total += weight
    for i in range(count):
        weights[order[i]] /= total
    if leaving < 0:
        return True
    remove(face, leaving)
    return False


def _find_slopes(face: Any) -> None:
    weights, order = vector(face.weights, face.count), integers(face.order, face.active)
    slopes, linear = vector(face.slopes, face.count), vector(face.linear, face.count)
    steeper = 1.0
    for place in range(face.active):
        steeper += face.bend * weights[order[place]] * linear[order[place]]
    for i in range(face.count):
        slopes[i] = steeper * linear[i]
    if face.exact == 1:
        point = vector(face.point, face.width)
        combine(face, point)
        for i in range(face.count):
            slopes[i] += dot(row(face.rows, face.width, i), point)
        return
    for place in range(face.active):
        index = order[place]
        products = vector(face.gram + 8 * face.capacity * index, face.count)
        add_multiple(weights[index], products, slopes)


def _is_uneven(face: Any, level: Any, length: Any) -> Any:
    """Do slopes of active rows differ from their level by more than rounding explains?"""
    order, slopes = integers(face.order, face.active), vector(face.slopes, face.count)
    for place in range(face.active):
        index = order[place]
        gap, least = abs(slopes[index] - level), face.relative * abs(level)
        if gap > least:
            noise = face.noise * math.sqrt(abs(length * square(face, index)))
            if gap > least + noise:
                return True
    return False


@unit
def minimise(address: Any) -> Any:
    """Improve the weights until no row wants to enter.

    A row enters when its slope is below the level of the others by more than `relative` times the
    level plus `noise` times the lengths of the rows.
    """
    face = face_at(address)
    count = face.count
    weights, order = vector(face.weights, count), integers(face.order, count + 1)
    slopes, linear = vector(face.slopes, count), vector(face.linear, count)
    kept = vector(face.kept, count)
    best = math.inf
    corrections = 0
    for _ in range(6 * count + 20):
        _find_slopes(face)
        level = 0.0
        offset = 0.0
        for place in range(face.active):
            index = order[place]
            level += weights[index] * slopes[index]
            offset += weights[index] * linear[index]
        goal = 0.5 * (level + offset)
        if not math.isfinite(goal):
            start_at(face, shortest_row(face))
            return 0
        length = level if face.exact == 1 else square(face, order[0])
        if face.active > 1 and corrections < _CORRECTIONS and _is_uneven(face, level, length):
            corrections = corrections + 1 if _correct(face) else 0
            continue
        corrections = 0
        if not goal < best:
            # Rounding has the last word: stay with the better weights.
            copy(kept, weights)
            collect(face)
            return 0
        entering = -1
        lowest = math.inf
        for i in range(count):
            if slopes[i] < lowest and weights[i] <= 0.0:
                entering, lowest = i, slopes[i]
        if entering < 0:
            return 0
        noise = face.noise * math.sqrt(abs(length * square(face, entering)))
        if not lowest < level - face.relative * abs(level) - noise:
            return 0
        best = goal
        copy(weights, kept)
        if face.valid == 0:
            _factorise(face)
        order[face.active] = entering
        face.active += 1
        _append(face, face.active - 1)
    return 0


def shortest_point(face: Any) -> Any:
    """Minimise, leave the combination of the rows in `point`, and return its square."""
    point = vector(face.point, face.width)
    square_of_point = 0.0
    for exact in range(2):
        face.exact = exact
        minimise(face.address)
        combine(face, point)
        square_of_point = dot(point, point)
        order = integers(face.order, face.active)
        longest = 0.0
        for place in range(face.active):
            longest = max(longest, square(face, order[place]))
        if square_of_point > _GRAM_LIMIT**2 * longest:
            break
    return square_of_point


def shortest_row(face: Any) -> Any:
    """Return the row with the smallest diagonal entry."""
    best = 0
    for index in range(1, face.count):
        if square(face, index) < square(face, best):
            best = index
    return best


make_kernels(globals())
