"""What a run hands back: status, history, result.

What can be looked at: pictures and notebooks. The drawing itself is in `goldstein.reporting`.

The classes of the core derive from these; the room that draws is loaded when it is asked to.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def _reporting(module: str) -> Any:
    return importlib.import_module(f"goldstein.reporting.{module}")


class InNotebooks:
    """Shown as a small table where HTML can be shown."""

    def _repr_html_(self) -> str:
        return _reporting("notebook").html_of(self)


class Plotted(InNotebooks):
    """Has a picture in one Axes."""

    def plot(self, ax: Any = None) -> Any:
        """Draw it with matplotlib (extra `report`).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. Your style is respected.

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import numpy as np
        >>> import goldstein as gs
        >>> def f(x): return np.abs(x).sum()
        >>> res = gs.minimize(f, [1.0, -2.0], np.sign, eps=1e-6, delta=1e-3, rng=0)
        >>> res.history.plot().get_xlabel()
        'calls of f and its gradient'
        """
        return _reporting("pictures").plot(self, ax)


class PlottedCertificate(InNotebooks):
    """A certificate: its points and its gradients can be drawn."""

    def plot(self, ax: Any = None, *, fun: Any = None, zoom: float = 1.6) -> Any:
        """Draw the certificate with matplotlib (extra `report`).

        The first panel shows x, the ball of radius `delta` and the points in it; the second one
        their gradients, the hull of these, and its shortest vector. In two variables that is all
        there is to see; otherwise it is the projection on the plane of the shortest vector and the
        direction in which the gradients differ most.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            Where to draw: the gradients if it is one, both panels if it is a pair; a new figure by
            default. Your style is respected.
        fun : callable, Oracle or Expression, optional
            The function, for its level lines (on the plane through x).
        zoom : float
            How far the first panel reaches, in units of `delta`.

        Returns
        -------
        the Axes that was given, or an array of two

        Examples
        --------
        >>> import numpy as np
        >>> import goldstein as gs
        >>> def f(x): return np.abs(x).sum()
        >>> cert = gs.certify(f, [0.01, -0.01], np.sign, delta=0.1, rng=0)
        >>> points, gradients = cert.plot(fun=f)
        >>> gradients.get_title()
        'their gradients'
        """
        return _reporting("pictures").plot_certificate(self, ax, fun, zoom)


class Reported(InNotebooks):
    """A result, or several: there is a page about it."""

    def report(
        self,
        path: str | Path,
        fun: Any = None,
        jac: Callable[..., Any] | bool | str | None = None,
        *,
        limits: dict[str, Any] | None = None,
        title: str = "",
    ) -> Path:
        """Write a page about the run: one HTML file that needs nothing else (extra `report`).

        It says what is proved and what is trusted, verifies the certificate, draws the course of
        the run, the certificate and how stationary x is at other radii, and carries the certificate
        for whoever wants to check it.

        Parameters
        ----------
        path : str or Path
            The suffix .html is added if there is none.
        fun, jac
            As in `minimize`; by default those of the run. They are needed again only for a result
            that was pickled, or came from another process: without the function nothing can be
            verified, and there are no level lines and no curve.
        limits : dict, optional
            `bounds`, `constraints` and `plus` as in `minimize`, if there were any; with `fun`.
        title : str
            By default the name of the function.

        Returns
        -------
        Path

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import goldstein as gs
        >>> def f(x): return np.abs(x).sum()
        >>> res = gs.minimize(f, [1.0, -2.0], np.sign, eps=1e-6, delta=1e-3, rng=0)
        >>> res.report(tempfile.mkdtemp() + "/run").name
        'run.html'
        """
        return _reporting("page").write_report(self, path, fun, jac, limits, title)


def minimality(certificate: Any) -> str:
    """Say in a few words what is known about minimality.

    Examples
    --------
    >>> minimality(None)
    "not known; ask stationarity='minimum'"
    """
    said = getattr(certificate, "said", None)
    return str(said()) if callable(said) else "not known; ask stationarity='minimum'"


class Status(enum.Enum):
    """Why a run ended. Each member carries the message and what to do next."""

    VERIFIED = ("the requested stationarity was verified", "")
    OUT_OF_CALLS = ("the budget of oracle calls is used up", "raise max_calls, eps or delta")
    OUT_OF_TIME = ("the time limit was reached", "raise max_time, eps or delta")
    ROUNDS_EXHAUSTED = (
        "no certificate within the rounds the theory allows at one point",
        "the Lipschitz constant is probably too small: pass a larger `lipschitz`, or none",
    )
    STEPS_EXHAUSTED = (
        "more descent steps than f(x1) - inf f allows",
        "the initial gap is larger than stated: raise `gap`, or leave it out",
    )
    STALLED = (
        "no further progress is possible in float64 at this delta",
        "raise delta or eps; certificate.eps is what was reached",
    )
    BALL_TOO_SMALL = (
        "the ball of radius delta is too small for float64",
        "raise delta, or rescale the variables",
    )
    UNBOUNDED = ("the function fell below the value limit", "check that it is bounded below")
    STOPPED = ("the run was stopped, by the callback or by Ctrl-C", "")
    NOT_VERIFIED = (
        "the point was found, but the requested stationarity could not be proved",
        "see certificate.eps and certificate.label for what was proved",
    )
    NOT_DETERMINISTIC = (
        "the function is not deterministic: it gave two different answers at one point",
        "fix its random numbers, or say that it is noisy: gs.FiniteSum, a gradient grad(x, rng), "
        "and gs.confidence_bound for what samples prove",
    )
    WRONG_GRADIENT = (
        "the gradient is wrong: differences of values along random directions say otherwise",
        "look at it with gs.check_gradient(fun, jac, x)",
    )
    INFEASIBLE = (
        "no feasible point: the violation of the constraints is stationary where it is positive",
        "look at res.violation and the constraints; if they are not convex, another start may do",
    )
    DEGENERATE = (
        "the constraints are degenerate at the point found: their gradients cancel each other, or "
        "vanish, so that multipliers say nothing about f",
        "state the constraints otherwise, for example |x| <= 0 or x == 0 in place of x^2 <= 0",
    )
    ESTIMATED = (
        "a stochastic method ended; its output carries a guarantee in expectation only",
        "call certify() with full gradients for a statement about this point",
    )

    def __init__(self, message: str, advice: str) -> None:
        self.message = message
        self.advice = advice


@dataclass
class History(Plotted):
    """The course of a run: one entry per accepted step, and one at the end.

    `violation` is empty where there are no constraints.
    """

    calls: list[int] = field(default_factory=list)
    fun: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    radius: list[float] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    violation: list[float] = field(default_factory=list)

    def append(
        self, calls: int, fun: float, bound: float, radius: float, time: float,
        violation: float | None = None,
    ) -> None:  # fmt: skip
        entries = (calls, fun, bound, radius, time, violation)
        for column, entry in zip(vars(self).values(), entries):
            if entry is not None:
                column.append(entry)

    def extend(self, later: History) -> None:
        """Add a later run, on one clock."""
        shift = self.time[-1] if self.time else 0.0
        self.time += [shift + t for t in later.time]
        for name in ("calls", "fun", "bound", "radius", "violation"):
            getattr(self, name).extend(getattr(later, name))

    def __len__(self) -> int:
        return len(self.calls)

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Return the columns that there are as arrays, for plots and files."""
        columns = {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}
        return {
            name: column for name, column in columns.items() if column.size or name != "violation"
        }


@dataclass(frozen=True)
class Asked:
    """What a run was asked: a function, and how stationary its answer should be.

    Attributes
    ----------
    eps, delta : float
    stationarity : str
    fun : Oracle or None
        None where only a record of the run is left: after pickling, or read from files.
    limits : dict
        `bounds`, `constraints` and `plus`, where there are any.
    """

    eps: float
    delta: float
    stationarity: str = "goldstein"
    fun: Any = None
    limits: dict[str, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        # Functions are often closures, which cannot be pickled.
        return {**self.__dict__, "fun": None, "limits": {}}


@dataclass
class Result(Reported):
    """The answer of `minimize`: the point, and what was proved about it.

    Works like SciPy's OptimizeResult: attributes or `result["x"]`.
    """

    x: Any
    fun: float
    success: bool
    status: Status
    message: str
    nit: int
    nfev: int
    ngev: int
    certificate: Any
    history: History
    seed: int
    time: float
    method: str = ""
    #: Length of the first gradient: what the bound may be compared with.
    gradient_scale: float | None = None
    #: One for each component of the constraints: positive at ub, negative at lb.
    multipliers: NDArray[np.float64] | None = None
    #: One for each variable: negative at its lower bound, positive at the upper one.
    bound_multipliers: NDArray[np.float64] | None = None
    #: The largest violation of a constraint at x.
    violation: float | None = None
    #: Points at which the constraints were asked for values, and for Jacobians.
    constr_nfev: int | None = None
    constr_njev: int | None = None
    #: Where the gradients come from: "given", "traced" (the code of fun), "differences", "oracle".
    gradient_source: str = "given"
    #: "Ctrl-C" or "the callback" where one of them ended the run; what was proved remains proved.
    stopped_by: str | None = None
    #: What was asked; pictures and reports need it.
    asked: Asked | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, key: str) -> Any:
        try:
            return getattr(self, key)
        except AttributeError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Names of the fields."""
        return [f.name for f in fields(self) if f.name != "asked"]

    def __repr__(self) -> str:
        claim, traced = self.certificate, self.gradient_source == "traced"
        asked = f"{self.constr_nfev} values + {self.constr_njev} Jacobians"
        rows = {
            "status": f"{self.status.name} ({self.message})",
            "success": str(self.success),
            "fun": f"{self.fun:.12g}",
            "x": shown(self.x),
            "layout": self._layout(),
            "certificate": str(None if claim is None else claim.summary()),
            "minimum": minimality(claim),
            "gradient": "derived from the code of fun" if traced else "",
            "violation": "" if self.violation is None else f"{self.violation:.3g}",
            "relative": self._relative(),
            "calls": f"{self.nfev} values + {self.ngev} gradients, {self.nit} steps, "
            f"{self.time:.3g} s, method {self.method}, seed {self.seed}",
            "constraints": asked if self.constr_nfev else "",
        }
        return "\n".join(f"{name:>11}: {said}" for name, said in rows.items() if said)

    def _layout(self) -> str:
        """Say how a vector becomes what an oracle was made from."""
        made = self.asked and hasattr(self.asked.fun, "unflatten")
        return "x is a vector; fun.unflatten(x) is laid out as params" if made else ""

    @property
    def njev(self) -> int:
        """SciPy's name for `ngev`."""
        return self.ngev

    def plot(self, ax: Any = None) -> Any:
        """Draw the run with matplotlib (extra `report`): its course, and what it proved.

        Parameters
        ----------
        ax : Axes or pair of Axes, optional
            Where to draw: the course of f and of the bound if it is one, that and the gradients of
            the certificate if it is a pair; a new figure by default. Your style is respected.

        Returns
        -------
        the Axes that was given, or an array of two

        Examples
        --------
        >>> import goldstein as gs
        >>> def f(x): return np.abs(x).sum()
        >>> res = gs.minimize(f, [1.0, -2.0], np.sign, eps=1e-6, delta=1e-3, rng=0)
        >>> course, gradients = res.plot()
        >>> gradients.get_title()
        'their gradients'
        """
        return _reporting("pictures").plot_result(self, ax)

    def _relative(self) -> str:
        """The numbers of the claim against what they are to be compared with."""
        if self.certificate is None or not self.gradient_scale:
            return ""
        eps = self.certificate.eps / self.gradient_scale
        said = f"eps = {eps:.2g} of the first gradient"
        size = float(np.abs(self.certificate.x).max())
        if size > self.certificate.delta:  # at x = 0 there is nothing to compare with
            said += f", delta = {self.certificate.delta / size:.2g} of the largest |x_i|"
        return said


def shown(point: Any) -> str:
    """Show a point of any layout in a line or two."""
    if isinstance(point, dict):
        return "{" + ", ".join(f"{key}: {shown(part)}" for key, part in point.items()) + "}"
    if isinstance(point, list | tuple):
        return "(" + ", ".join(shown(part) for part in point) + ")"
    return np.array2string(np.asarray(point), threshold=8, edgeitems=3, precision=8)
