"""Models: the pictures a user of such a model expects."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.models.margin_svm import MarginSVM
from goldstein.models.networks import ReLUNetwork
from goldstein.reporting.blocks import Facts, Figures, Section, Table
from goldstein.reporting.pictures.course import draw_course
from goldstein.reporting.pictures.models import draw_margins, draw_patterns
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import figure


def model(subject: Subject) -> Section | None:
    """Margins of a support vector machine; activations of a network."""
    if isinstance(subject.fun, MarginSVM):
        return _margins(subject.fun, subject)
    if isinstance(subject.fun, ReLUNetwork):
        return _network(subject.fun, subject)
    return None


def _margins(fun: MarginSVM, subject: Subject) -> Section:
    problem = fun.problem
    margins = problem.product(subject.x)
    low, high = problem.shift, problem.shift + problem.rho
    reach = subject.result.certificate.delta if subject.certificate is not None else 0.0
    reach = reach * problem.row_norms + problem.rounding(subject.x)
    kink = (np.abs(margins - low) <= reach) | (np.abs(margins - high) <= reach)
    states = {
        "outliers, given up (margin below the ramp)": (margins < low) & ~kink,
        "on the ramp": (margins > low) & (margins < high) & ~kink,
        "on a kink, within delta": kink,
        "safe (margin beyond the ramp)": (margins > high) & ~kink,
    }
    facts = [(name, f"{np.count_nonzero(rows)} of {len(margins)}") for name, rows in states.items()]
    words = (
        f"Margins of the {len(margins)} rows. The loss has kinks at {low:.3g} and {high:.3g}; rows "
        "below the first one are outliers and pull no more."
    )
    names = np.full(len(margins), "", dtype=object)
    for name, rows in states.items():
        names[rows] = name.partition(" (")[0]
    listed = np.flatnonzero(kink | states["outliers, given up (margin below the ramp)"])
    found = [(int(i), f"{margins[i]:.6g}", names[i]) for i in listed[np.argsort(margins[listed])]]
    return Section(
        "model",
        "The support vector machine",
        [
            Figures([figure(lambda ax: draw_margins(ax, margins, low, high, kink), words)]),
            Facts(facts),
            Table.of("Outliers and rows on a kink", ("row", "margin", "where"), found),
        ],
    )


def _network(fun: ReLUNetwork, subject: Subject) -> Section:
    weights = fun.weights(subject.x)
    inner = np.asarray(fun.architecture.forward(fun.setting.X, weights).inner)
    active = inner > 0
    share = active.mean(axis=0)
    reach = float(subject.certificate.delta) if subject.certificate is not None else 0.0
    near = np.abs(inner) <= reach * _lengths(fun.setting.X)[:, None]
    patterns = len(np.unique(np.packbits(active, axis=1), axis=0))
    facts = [
        ("neurons", str(active.shape[1])),
        ("dead: off for every row", str(np.count_nonzero(share == 0))),
        ("linear: on for every row", str(np.count_nonzero(share == 1))),
        ("activation patterns", f"{patterns} among {len(active)} rows"),
        ("rows of neurons within delta of a kink", str(np.count_nonzero(near))),
    ]
    eps = None if subject.asked is None else subject.asked[0]
    pictures: list[Any] = [
        figure(
            lambda ax: draw_course(ax, subject.history, eps),
            "Training: the loss above its last value, and the bound beside it.",
        ),
        figure(
            lambda ax: draw_patterns(ax, active),
            "Which neuron is on for which row, neurons sorted by how often.",
        ),
    ]
    rows = [
        (k, f"{100 * share[k]:.1f} %", int(near[:, k].sum()),
         "dead" if share[k] == 0 else "linear" if share[k] == 1 else "bends")
        for k in range(len(share))
    ]  # fmt: skip
    head = ("neuron", "on for", "rows within delta of its kink", "kind")
    return Section(
        "model",
        "The network",
        [Figures(pictures), Facts(facts), Table.of("Neurons", head, rows, folded=True)],
    )


def _lengths(X: Any) -> Any:
    squares = X.multiply(X).sum(axis=1) if hasattr(X, "multiply") else (X * X).sum(axis=1)
    return np.sqrt(np.asarray(squares).ravel())
