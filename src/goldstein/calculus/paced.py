"""A kink form that is asked direction by direction, so that a long proof can be cut short."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.kinks import GradientEnclosure, KinkForm
from goldstein.numerics.budget import Budget

Matrix = NDArray[np.float64]


class Paced:
    """The answers of a kink form, as long as a budget lasts.

    `NearCertificate.prove` accepts it as a function; what it proves is about the form's own.

    Parameters
    ----------
    form : KinkForm
    budget : Budget
    """

    def __init__(self, form: KinkForm, budget: Budget) -> None:
        self.form, self.budget = form, budget
        self.dim = form.dim

    def kink_form(self) -> Paced:
        """Return itself: the form of the function it stands for."""
        return self

    def limiting_boxes(
        self, point: Sequence[Fraction], directions: Any
    ) -> tuple[Matrix, Matrix] | None:
        """Return the enclosures in float64, or None where the form decides for rationals."""
        self.budget.spend()
        if type(self.form).limiting_boxes is not KinkForm.limiting_boxes:
            return self.form.limiting_boxes(point, directions)  # all of them in one pass
        if self.form._affords_rationals(len(directions)):
            return None
        found = self.form.examine(point)
        parts = []
        for v in directions:
            self.budget.spend()
            parts.append(self.form._boxes(found, [self.form.pieces_beside(found, v)]))
        return np.concatenate([mid for mid, _ in parts]), np.concatenate([rad for _, rad in parts])

    def limiting_gradients(
        self, point: Sequence[Fraction], directions: Any
    ) -> list[GradientEnclosure]:
        """Return the enclosures as rationals."""
        answers = []
        for v in directions:
            self.budget.spend()
            answers += self.form.limiting_gradients(point, [v])
        return answers


__all__ = ["Paced"]
