"""What the certificate looks like."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.oracles.problem import Problem
from goldstein.reporting.blocks import Figures, Section, Table, number
from goldstein.reporting.geometry import Grid, grid_around
from goldstein.reporting.pictures.certificate import (
    closer,
    draw_gradients,
    draw_points,
    look_closer,
)
from goldstein.reporting.subject import Subject
from goldstein.reporting.svg import figure

#: Seconds for each grid of values.
_SECONDS = 0.2
_ZOOM = 1.6


def geometry(subject: Subject) -> Section | None:
    """Points and gradients, exactly in two variables, else in the most telling plane."""
    certificate = subject.certificate
    if certificate is None or not np.isfinite(certificate.delta):
        return None
    plane, half = subject.geometry, _ZOOM * float(certificate.delta)
    levels, forbidden = None, None
    if subject.value is not None:
        levels = grid_around(plane, subject.x, subject.value, half, _SECONDS)
    if subject.problem is not None:
        forbidden = _broken(subject, subject.problem, half)
    seen = "" if plane.exact else f", projected on two directions: {' and '.join(plane.axes)}"
    lines = "" if levels is None else " and level lines of f"
    words = f"What was looked at in the ball{lines}{seen}."
    if forbidden is not None:
        words += " The shaded part violates inequalities or bounds."
    square = (4.4, 4.1)
    pictures = [figure(lambda ax: draw_points(ax, plane, _ZOOM, levels, forbidden), words, square)]
    if len(plane.gradients) or plane.mean.any():
        words = (
            "The gradients cancel: their hull comes as close to 0 as eps says."
            if not plane.pushes
            else "Gradients of f and the forces of constraints and bounds cancel up to eps."
        )

        def draw(ax: Any) -> Any:
            draw_gradients(ax, plane, float(certificate.eps))
            return ax

        pictures.append(figure(draw, words, square))
        size = closer(plane)
        if size:
            left = (
                "what is left of the forces" if plane.pushes else "the shortest vector of the hull"
            )
            words = f"The same close to 0: {left} is at most as long as eps."
            pictures.append(figure(lambda ax: look_closer(draw(ax), size), words, square))
    return Section("geometry", "What was found", [Figures(pictures), *_gradient_table(certificate)])


def _broken(subject: Subject, problem: Problem, half: float) -> Grid | None:
    box, system = problem.box, problem.constraints
    sided = ~system.equal

    def broken(y: Any) -> float:
        """How far y is beyond a limit; negative where all inequalities hold."""
        outside = float(np.abs(box.clip(y) - y).max())
        if outside > 0 or not sided.any():
            return outside  # constraints are never asked there
        values = system.values(y)
        beyond = np.maximum(values - system.upper, system.lower - values)[sided]
        return float(beyond.max())

    return grid_around(subject.geometry, subject.x, broken, half, _SECONDS)


def _gradient_table(certificate: Any) -> list[Table]:
    points, gradients = (
        getattr(certificate, "points", None),
        getattr(certificate, "gradients", None),
    )
    if gradients is None:
        return []
    weights = certificate.weights / max(float(certificate.weights.sum()), 1e-300)
    away = None if points is None else np.linalg.norm(points - certificate.x, axis=1)
    rows = [
        (
            j,
            number(float(weights[j])),
            number(float(np.linalg.norm(gradients[j]))),
            "at the pivot" if away is None else number(float(away[j])),
        )
        for j in np.argsort(-weights).tolist()
    ]
    head = ("gradient", "weight", "length", "distance from x")
    return [Table.of("The gradients", head, rows, folded=True)]
