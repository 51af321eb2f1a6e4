"""What the run says: its course, other radii, constraints, many starts, and models."""

from typing import Any

import numpy as np

from goldstein.api import stationarity_curve
from goldstein.calculus.operators import row_norms
from goldstein.errors import GoldsteinError
from goldstein.models.margin_svm import MarginSVM
from goldstein.models.networks import ReLUNetwork
from goldstein.reporting import pictures
from goldstein.reporting.blocks import Facts, Figures, Table, Text, number
from goldstein.reporting.geometry import seconds_per
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import figure

#: Rows of the table of numbers.
_ROWS = 200


def course(subject: Subject) -> list[Any] | None:
    """Pictures over time, and the numbers behind them."""
    history = subject.history
    if not len(history):
        return None
    eps = None if subject.asked is None else subject.asked[0]
    words = f"The value of f, {len(history)} entries."
    drawn = [figure(pictures.draw_value, words, history)]
    if np.isfinite(np.asarray(history.bound, float)).any():
        words = "The bound of the search: how short a combination of gradients it has found."
        drawn.append(figure(pictures.draw_bound, words, history, eps))
    drawn.append(figure(pictures.draw_calls, "Calls of f and its gradient so far.", history))
    if any(v > 0 for v in history.violation):
        words = "The largest violation of a constraint, where there is any."
        drawn.append(figure(pictures.draw_violation, words, history))
    return [Figures(drawn), _numbers(history)]


def _numbers(history: Any) -> Table:
    columns = {name: np.asarray(c, float) for name, c in history.as_arrays().items()}
    kept = pictures.thinned(columns, _ROWS)
    rows = list(zip(*([number(v, 8) for v in column.tolist()] for column in kept.values())))
    part = "" if len(rows) == len(history) else f" ({len(rows)} of {len(history)} entries)"
    return Table.of(f"The numbers{part}", list(kept), rows, folded=True)


#: Seconds for the whole curve; with fewer calls than this for each radius it says nothing.
_CURVE_SECONDS, _FEWEST_CALLS = 0.3, 30
_DECADES, _RADII = 2, 9


def curve(subject: Subject) -> list[Any] | None:
    """The certified eps over two decades of delta on either side, for functions without limits."""
    fun, certificate = subject.fun, subject.certificate
    if fun is None or certificate is None or subject.limits or not fun.has_gradient:
        return None
    middle = subject.asked[1] if subject.asked else float(certificate.delta)
    if not 0 < middle < np.inf:
        return None
    each = seconds_per(lambda: fun.value(subject.x)) + 5e-5  # what a question costs us besides
    calls = int(_CURVE_SECONDS / each)
    if calls < _FEWEST_CALLS * _RADII:
        return [Text("The function is too slow to be asked.")]
    radii = middle * np.logspace(-_DECADES, _DECADES, _RADII)
    try:
        found = stationarity_curve(
            fun, subject.x, deltas=radii, rng=subject.result.seed, max_calls=calls
        )
    except GoldsteinError as failure:
        return [Text(f"There is no curve here: {failure}", "note")]
    words = (
        "The certified eps over delta. It never rises; where it falls, gradients of other pieces "
        "come into reach. A flat part says that a larger ball would not help."
    )
    steps = ["", *(number(s, 3) for s in pictures.slopes(found).tolist())]
    rows = [
        (number(delta, 3), number(eps, 3), slope)
        for delta, eps, slope in zip(found.deltas.tolist(), found.eps.tolist(), steps)
    ]
    caption = "The curve; slope is d log eps / d log delta from the radius before"
    return [
        Figures([figure(pictures.draw_curve, words, found, subject.asked)]),
        Table.of(caption, ("delta", "eps", "slope"), rows),
    ]


def constraints(subject: Subject) -> list[Any] | None:
    """What pushes at x, and what is far away."""
    result = subject.result
    if result.violation is None:
        return None
    facts = [("largest violation at x", number(result.violation))]
    qualification = getattr(subject.certificate, "qualification", None)
    if qualification is not None:
        words = "degenerate: " if getattr(subject.certificate, "degenerate", False) else ""
        facts.append(
            ("how far active constraints are from cancelling", words + number(qualification))
        )
    blocks: list[Any] = [Facts(facts)]
    if subject.problem is not None and subject.problem.constraints.size:
        blocks.append(_constraint_rows(subject))
    elif result.multipliers is not None and result.multipliers.size:
        pairs = [(i, number(v)) for i, v in enumerate(result.multipliers.tolist())]
        blocks.append(Table.of("Multipliers", ("constraint", "multiplier"), pairs))
    blocks += _bound_rows(subject)
    return blocks


def _constraint_rows(subject: Subject) -> Table:
    assert subject.problem is not None
    system = subject.problem.constraints
    values = system.values(subject.problem.box.clip(subject.x))
    slack = np.minimum(values - system.lower, system.upper - values)
    multipliers = subject.result.multipliers
    if multipliers is None or multipliers.size != system.size:
        multipliers = np.full(system.size, np.nan)
    rows = [
        (i, system.name(i), number(low), number(value), number(high), number(room), number(force))
        for i, (low, value, high, room, force) in enumerate(
            zip(*(a.tolist() for a in (system.lower, values, system.upper, slack, multipliers)))
        )
    ]
    rows.sort(key=lambda row: -abs(multipliers[row[0]]) if np.isfinite(multipliers[row[0]]) else 0)
    head = ("number", "constraint", "lower", "value at x", "upper", "slack", "multiplier")
    return Table.of("Constraints, the strongest first", head, rows)


def _bound_rows(subject: Subject) -> list[Table]:
    forces = subject.result.bound_multipliers
    if forces is None or not np.any(forces):
        return []
    rows = [
        (i, number(float(subject.x[i]), 8), "lower" if forces[i] < 0 else "upper",
         number(float(forces[i])))
        for i in np.argsort(-np.abs(forces)).tolist() if forces[i] != 0
    ]  # fmt: skip
    return [Table.of("Active bounds", ("variable", "value", "bound", "multiplier"), rows)]


def starts(subject: Subject) -> list[Any] | None:
    """Which stationary points were met, and how often."""
    many = subject.starts
    if many is None:
        return None
    points = sorted(many.points, key=lambda point: float(point.fun))
    failed = len(many.failures)
    words = f"{sum(int(p.count) for p in points)} runs ended at {len(points)} distinct points"
    words += f"; {failed} failed." if failed else "."
    values = np.array([float(p.fun) for p in points])
    counts = np.array([int(p.count) for p in points])
    claims = [p.certificate for p in points]
    proved = [(number(c.eps), number(c.delta), c.label) if c is not None
              else ("", "", "nothing proved") for c in claims]  # fmt: skip
    rows = [(k, number(f, 10), int(n), *proved[k]) for k, (f, n) in enumerate(zip(values, counts))]
    caption = "Values of the distinct points, and how many runs ended there."
    head = ("point", "f", "runs", "eps", "delta", "label")
    return [
        Text(words),
        Figures([figure(pictures.draw_values, caption, values, counts)]),
        Table.of("Distinct stationary points", head, rows),
    ]


def machine(subject: Subject) -> list[Any] | None:
    """Margins of a support vector machine."""
    fun = subject.fun
    if not isinstance(fun, MarginSVM):
        return None
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
    return [
        Figures([figure(pictures.draw_margins, words, margins, low, high, kink)]),
        Facts(facts),
        Table.of("Outliers and rows on a kink", ("row", "margin", "where"), found),
    ]


def network(subject: Subject) -> list[Any] | None:
    """Activations of a network."""
    fun = subject.fun
    if not isinstance(fun, ReLUNetwork):
        return None
    inner = np.asarray(fun.architecture.forward(fun.setting.X, fun.weights(subject.x)).inner)
    active = inner > 0
    share = active.mean(axis=0)
    reach = float(subject.certificate.delta) if subject.certificate is not None else 0.0
    near = np.abs(inner) <= reach * row_norms(fun.setting.X)[:, None]
    patterns = len(np.unique(np.packbits(active, axis=1), axis=0))
    facts = [
        ("neurons", str(active.shape[1])),
        ("dead: off for every row", str(np.count_nonzero(share == 0))),
        ("linear: on for every row", str(np.count_nonzero(share == 1))),
        ("activation patterns", f"{patterns} among {len(active)} rows"),
        ("rows of neurons within delta of a kink", str(np.count_nonzero(near))),
    ]
    eps = None if subject.asked is None else subject.asked[0]
    words = "Training: the loss above its last value, and the bound beside it."
    drawn = [figure(pictures.draw_course, words, subject.history, eps)]
    words = "Which neuron is on for which row, neurons sorted by how often."
    drawn.append(figure(pictures.draw_patterns, words, active))
    rows = [
        (k, f"{100 * share[k]:.1f} %", int(near[:, k].sum()),
         "dead" if share[k] == 0 else "linear" if share[k] == 1 else "bends")
        for k in range(len(share))
    ]  # fmt: skip
    head = ("neuron", "on for", "rows within delta of its kink", "kind")
    return [Figures(drawn), Facts(facts), Table.of("Neurons", head, rows, folded=True)]
