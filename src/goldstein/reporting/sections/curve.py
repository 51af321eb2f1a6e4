"""How stationary is x at other radii?"""

from __future__ import annotations

import numpy as np

from goldstein.api import stationarity_curve
from goldstein.errors import GoldsteinError
from goldstein.reporting.blocks import Figures, Section, Table, Text, number
from goldstein.reporting.geometry import seconds_per
from goldstein.reporting.pictures.curve import draw_curve, slopes
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import figure

#: Seconds for the whole curve; with fewer calls than this for each radius it says nothing.
_SECONDS, _FEWEST = 0.3, 30
_DECADES, _RADII = 2, 9


def curve(subject: Subject) -> Section | None:
    """The certified eps over two decades of delta on either side, for functions without limits."""
    fun, certificate = subject.fun, subject.certificate
    if fun is None or certificate is None or subject.limits or not fun.has_gradient:
        return None
    middle = subject.asked[1] if subject.asked else float(certificate.delta)
    if not 0 < middle < np.inf:
        return None
    each = seconds_per(lambda: fun.value(subject.x)) + 5e-5  # what a question costs us besides
    calls = int(_SECONDS / each)
    if calls < _FEWEST * _RADII:
        return Section("curve", "Other radii", [Text("The function is too slow to be asked.")])
    radii = middle * np.logspace(-_DECADES, _DECADES, _RADII)
    try:
        found = stationarity_curve(
            fun, subject.x, deltas=radii, rng=subject.result.seed, max_calls=calls
        )
    except GoldsteinError as failure:
        return Section("curve", "Other radii", [Text(f"There is no curve here: {failure}", "note")])
    words = (
        "The certified eps over delta. It never rises; where it falls, gradients of other pieces "
        "come into reach. A flat part says that a larger ball would not help."
    )
    steps = ["", *(number(s, 3) for s in slopes(found).tolist())]
    rows = [
        (number(delta, 3), number(eps, 3), slope)
        for delta, eps, slope in zip(found.deltas.tolist(), found.eps.tolist(), steps)
    ]
    caption = "The curve; slope is d log eps / d log delta from the radius before"
    return Section(
        "curve",
        "Other radii",
        [
            Figures([figure(lambda ax: draw_curve(ax, found, subject.asked), words)]),
            Table.of(caption, ("delta", "eps", "slope"), rows),
        ],
    )
