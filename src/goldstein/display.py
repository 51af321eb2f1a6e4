"""What can be looked at: pictures and notebooks. The drawing itself is in `goldstein.reporting`.

The classes of the core derive from these; the room that draws is loaded when it is asked to.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


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
        return _reporting("plots").plot(self, ax)


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
        return _reporting("plots").plot_certificate(self, ax, fun, zoom)


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
